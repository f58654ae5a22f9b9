"""Check CRDs as the API server does on creation: schemas, defaults, and the rest of the CRD."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from capsmith.judge.checks.apiextensions.defaults import find_default_faults
from capsmith.judge.checks.apiextensions.definition import Values, find_definition_faults, is_base64
from capsmith.judge.checks.apiextensions.limits import find_limit_faults
from capsmith.judge.checks.apiextensions.model import Fault
from capsmith.judge.checks.apiextensions.structural import Keywords, find_structural_faults
from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.crds import find_wrong_types
from capsmith.manifests.parse import Manifest, mapping_of, text_of
from capsmith.yamldoc.compose import Path

_KEPT = 256
_STEPS = {"items": "[]", "additionalProperties": "{}"}
_CA = ("spec", "conversion", "webhook", "clientConfig", "caBundle")


@check("crd-structural", Keywords, is_shared=True)
def check_crd_structural(context: Context, params: Keywords) -> Iterator[Violation]:
    """CRD-24: Each version's schema is structural."""
    for manifest, number in _list_versions(context):
        for fault in _structural(manifest, number, params):
            yield _violation(manifest, number, fault)


@check("crd-defaults", Keywords, is_shared=True)
def check_crd_defaults(context: Context, params: Keywords) -> Iterator[Violation]:
    """CRD-25: Each default matches its field's schema."""
    for manifest, number in _list_versions(context):
        # Only a structural schema shows what a default has to match.
        if not _structural(manifest, number, params):
            for fault in _defaults(manifest, number):
                yield _violation(manifest, number, fault)


@check("crd-definition", Values, is_shared=True)
def check_crd_definition(context: Context, params: Values) -> Iterator[Violation]:
    """CRD-26: The API server accepts the CRD; its schemas are checked separately."""
    for manifest in _manifests(context):
        for fault in _undecodable(manifest) or find_definition_faults(manifest.document, params):
            yield Violation(manifest, f"{manifest}: {fault.message}", path=fault.path)


@check("crd-limits", is_shared=True)
def check_crd_limits(context: Context) -> Iterator[Violation]:
    """CRD-27: Each numeric limit is a number of its field's type and format."""
    for manifest, number in _list_versions(context):
        version = manifest.listing("spec", "versions")[number]
        if mapping_of(version).get("served") is True:
            schema = mapping_of(version, "schema", "openAPIV3Schema")
            for fault in find_limit_faults(schema):
                yield _violation(manifest, number, fault)


@check("crd-storage-served", is_shared=True)
def check_crd_storage_served(context: Context) -> Iterator[Violation]:
    """MV-12: The API server serves the version in which clusterctl lists the objects of a kind."""
    for manifest, number in _list_versions(context):
        version = mapping_of(manifest.listing("spec", "versions")[number])
        if version.get("storage") is True and version.get("served") is False:
            message = f"{manifest}: {version.get('name')} is stored, but not served"
            yield Violation(manifest, message, path=("spec", "versions", number, "served"))


def _manifests(context: Context) -> Iterator[Manifest]:
    is_built = bool(context.bundle.files(Artefact.COMPONENTS))
    for crd in context.bundle.crds:
        # In a source tree, a CRD without versions is a kustomize patch.
        # The single version of apiextensions.k8s.io/v1beta1 is in spec.version.
        if (
            is_built
            or crd.manifest.listing("spec", "versions")
            or text_of(crd.manifest.document, "spec", "version")
        ):
            yield crd.manifest


def _list_versions(context: Context) -> Iterator[tuple[Manifest, int]]:
    """Yield each CRD that can be decoded, with the number of each of its versions."""
    for crd in context.bundle.crds:
        if not _undecodable(crd.manifest):
            for number in range(len(crd.manifest.listing("spec", "versions"))):
                yield crd.manifest, number


def _violation(manifest: Manifest, number: int, fault: Fault) -> Violation:
    version = manifest.listing("spec", "versions")[number]
    kind = text_of(manifest.document, "spec", "names", "kind")
    where = _describe(fault.path) or "the object"
    message = f"{kind} {text_of(version, 'name')}: {where}: {fault.message}"
    return Violation(manifest, message, path=(*_root(number), *fault.path))


def _root(number: int) -> Path:
    return ("spec", "versions", number, "schema", "openAPIV3Schema")


def _describe(path: Path) -> str:
    """Return the field at a path in a schema, such as ``spec.disks[].size``."""
    text, steps = "", iter(path)
    for step in steps:
        if step == "properties":
            name = next(steps, "")
            text += f".{name}" if name else ""
        else:
            text += _STEPS.get(str(step), "")
    return text.removeprefix(".")


# Several rules and contracts judge the same CRDs.
@lru_cache(_KEPT)
def _undecodable(manifest: Manifest) -> tuple[Fault, ...]:
    found = [
        Fault(path, f"{'.'.join(map(str, path))} must be {what}")
        for path, what in find_wrong_types(manifest.document)
    ]
    if not found and not is_base64(text_of(manifest.document, *_CA)):
        found.append(Fault(_CA, "caBundle must be base64"))
    return tuple(found)


@lru_cache(_KEPT)
def _structural(manifest: Manifest, number: int, words: Keywords) -> tuple[Fault, ...]:
    version = manifest.listing("spec", "versions")[number]
    if mapping_of(version, "schema").get("openAPIV3Schema") is None:
        return ()
    schema = mapping_of(version, "schema", "openAPIV3Schema")
    has_status = mapping_of(version, "subresources").get("status") is not None
    return tuple(find_structural_faults(schema, words, has_status))


@lru_cache(_KEPT)
def _defaults(manifest: Manifest, number: int) -> tuple[Fault, ...]:
    version = manifest.listing("spec", "versions")[number]
    return tuple(find_default_faults(mapping_of(version, "schema", "openAPIV3Schema")))
