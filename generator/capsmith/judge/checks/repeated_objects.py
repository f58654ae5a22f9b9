"""Check that no object of a release has a second copy that differs."""

from __future__ import annotations

from collections.abc import Iterator

from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.parse import Manifest, text_of

_CRD = "CustomResourceDefinition"
_METADATA = ("labels", "annotations")


@check("objects-once", is_shared=True)
def check_objects_once(context: Context) -> Iterator[Violation]:
    """CC-49: Copies of an object do not differ."""
    is_built = bool(context.bundle.files(Artefact.COMPONENTS))
    first: dict[tuple[str, str, str, str], Manifest] = {}
    for manifest in context.bundle.objects:
        # In a source tree, other objects may be patches of one another.
        if not is_built and not (manifest.kind == _CRD and manifest.listing("spec", "versions")):
            continue
        namespace = text_of(manifest.document, "metadata", "namespace")
        key = (manifest.api_group, manifest.kind, namespace, manifest.name)
        other = first.setdefault(key, manifest)
        differences = _list_differences(other, manifest)
        if differences and manifest.name:
            place = f"{other.file}:{other.line}"
            message = f"{manifest} is also in {place}, with other {', '.join(differences)}"
            metadata = ("metadata",) if differences[0] in _METADATA else ()
            yield Violation(manifest, message, path=(*metadata, differences[0]))


def _list_differences(one: Manifest, other: Manifest) -> list[str]:
    """Return which parts of two objects of the same name differ."""
    parts = [
        key
        for key in _METADATA
        if (one.mapping("metadata", key) or {}) != (other.mapping("metadata", key) or {})
    ]
    keys = sorted({*one.document, *other.document} - {"metadata"})
    return parts + [key for key in keys if one.document.get(key) != other.document.get(key)]
