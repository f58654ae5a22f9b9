"""Check that references in cluster templates and ClusterClasses find the objects beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.parse import Manifest, has_variable, mapping_of, text_of
from capsmith.yamldoc.compose import Path

_CLUSTER_API = "cluster.x-k8s.io"


@dataclass(frozen=True, slots=True)
class ReferenceFields:
    """Names of fields that refer to other objects, for the check ``template-references``."""

    fields: tuple[str, ...]


@check("template-references", ReferenceFields, is_shared=True)
def check_template_references(context: Context, params: ReferenceFields) -> Iterator[Violation]:
    """CC-82: A reference names an object of the file, if the file has objects of its kind.

    So does the name of a Cluster.
    """
    files: dict[str, list[Manifest]] = {}
    for artefact in (Artefact.CLUSTER_TEMPLATE, Artefact.CLUSTER_CLASS):
        for manifest in context.bundle.files(artefact):
            files.setdefault(manifest.file, []).append(manifest)
    for found in files.values():
        names: dict[tuple[str, str], list[str]] = {}
        for manifest in found:
            names.setdefault((manifest.api_group, manifest.kind), []).append(manifest.name)
        for manifest in found:
            if f".{manifest.api_group}".endswith(f".{_CLUSTER_API}"):
                yield from _unresolved(manifest, names, params.fields)


def _unresolved(
    manifest: Manifest, names: Mapping[tuple[str, str], list[str]], fields: tuple[str, ...]
) -> Iterator[Violation]:
    cluster = text_of(manifest.document, "spec", "clusterName")
    named = {"apiGroup": _CLUSTER_API, "kind": "Cluster", "name": cluster}
    for path, reference in (
        (("spec", "clusterName"), named),
        *_references(manifest.document, (), fields),
    ):
        version = text_of(reference, "apiVersion")
        group = text_of(reference, "apiGroup") or version.rpartition("/")[0]
        kind, name = text_of(reference, "kind"), text_of(reference, "name")
        # Without an object of the kind, all of them are in the cluster before.
        known = names.get((group, kind), [])
        if name and known and name not in known and not any(map(has_variable, (name, *known))):
            message = f"{manifest}: no {kind} in the file is called {name}; found: "
            message += ", ".join(dict.fromkeys(known))
            yield Violation(manifest, message, path=path)


def _references(data: Any, path: Path, fields: tuple[str, ...]) -> Iterator[tuple[Path, Any]]:
    below = enumerate(data) if isinstance(data, list) else mapping_of(data).items()
    for step, value in below:
        if step in fields and isinstance(value, dict):
            yield (*path, step, "name"), value
        elif isinstance(value, dict | list):
            yield from _references(value, (*path, step), fields)
