"""Check the objects of Kubernetes and cert-manager in a release as the API server does.

The schemas are part of the rule.  They declare what providers use; all other fields are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from capsmith.judge.checks.apiextensions.definition import find_client_faults
from capsmith.judge.checks.apiextensions.model import is_label_value, is_subdomain
from capsmith.judge.checks.objects import Mismatch, find_metadata_mismatches, find_value_mismatches
from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.crds import OPEN
from capsmith.manifests.parse import Manifest, has_variable, mapping_of, may_vary, text_of
from capsmith.yamldoc.compose import Path

_HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
_RBAC = "rbac.authorization.k8s.io"
_SERVED = frozenset({"v1", "v1beta1"})
"""Versions of AdmissionReview that API servers send."""
_PATH_NAME = re.compile(r"(?!\.{1,2}$)[^/%]+")
"""Names of objects of RBAC."""


@dataclass(frozen=True, slots=True)
class RequiredAlternatives:
    """Fields of which an object needs at least one."""

    path: str
    """Path to the object, or to a list of objects if it ends with ``[]``."""
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KindSchema:
    """Schema of the kinds that declare the same fields, for the check ``components-fit``."""

    group: str
    kinds: tuple[str, ...]
    schema: Mapping[str, Any] = field(hash=False)
    """OpenAPI schema of what is checked; fields that it does not declare are accepted."""
    one_of: tuple[RequiredAlternatives, ...] = ()
    """Fields of which at least one is needed, which cert-manager's webhook checks, too."""


@dataclass(frozen=True, slots=True)
class KindSchemas:
    """What is known of kinds of Kubernetes and cert-manager."""

    kinds: tuple[KindSchema, ...]
    """Their schemas."""


@check("components-fit", KindSchemas, is_shared=True)
def check_components_fit(context: Context, params: KindSchemas) -> Iterator[Violation]:
    """CC-81: The API server accepts the objects of Kubernetes and cert-manager in a release."""
    known = {(each.group, kind): each for each in params.kinds for kind in each.kinds}
    # In a source tree, an object may be a patch of another one.
    is_complete = bool(context.bundle.files(Artefact.COMPONENTS))
    for manifest in context.bundle.objects:
        for mismatch in _find_mismatches(manifest, known, is_complete):
            where = mismatch.varies_with
            if where is None or not may_vary(manifest, where, mismatch.is_deep):
                place = ".".join(map(str, mismatch.path))
                message = f"{manifest}: {place} {mismatch.message}"
                yield Violation(manifest, message, path=mismatch.path)


def _open(schema: Any) -> Any:
    """Return a schema that accepts fields that it does not declare."""
    if isinstance(schema, list):
        return [_open(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    is_open = schema.get("type") == "object" and "additionalProperties" not in schema
    more = {OPEN: True} if is_open else {}
    return {key: _open(value) for key, value in schema.items()} | more


def _find_mismatches(
    manifest: Manifest, known: Mapping[tuple[str, str], KindSchema], is_complete: bool
) -> Iterator[Mismatch]:
    yield from _metadata(manifest, is_complete)
    if is_complete and not manifest.document.get("apiVersion"):
        yield Mismatch(("apiVersion",), "is required")
        return
    kind = (manifest.api_group, manifest.kind)
    if kind in known:
        schema = _open(known[kind].schema)
        yield from find_value_mismatches(schema, manifest.document, (), is_complete)
        for each in known[kind].one_of if is_complete else ():
            yield from _lacking(manifest, each)
    if manifest.kind in _HOOKS:
        yield from _of_webhooks(manifest, is_complete)
    if kind == ("", "Service"):
        yield from _of_ports(manifest)
    if manifest.kind in _BINDINGS and is_complete:
        yield from _of_binding(manifest)


def _lacking(manifest: Manifest, needed: RequiredAlternatives) -> Iterator[Mismatch]:
    """Yield the objects that have none of the needed fields."""
    field = needed.path.removesuffix("[]")
    found: list[tuple[Path, Any]] = [((field,), manifest.mapping(field))]
    if field != needed.path:
        found = [((field, number), each) for number, each in enumerate(manifest.listing(field))]
    for path, part in found:
        if not set(needed.keys) & set(mapping_of(part)):
            yield Mismatch(path, f"has none of {', '.join(needed.keys)}")


def _of_binding(manifest: Manifest) -> Iterator[Mismatch]:
    if manifest.kind != "RoleBinding" and text_of(manifest.document, "roleRef", "kind") == "Role":
        yield Mismatch(("roleRef", "kind"), "is 'Role'; expected 'ClusterRole'")
    for number, subject in enumerate(manifest.listing("subjects")):
        is_account = text_of(subject, "kind") == "ServiceAccount"
        # clusterctl replaces a namespace, but adds none.
        if is_account and not text_of(subject, "namespace"):
            yield Mismatch(("subjects", number, "namespace"), "is required")


def _metadata(manifest: Manifest, is_complete: bool) -> Iterator[Mismatch]:
    yield from find_metadata_mismatches(manifest)
    # CRD-26 checks CRDs, and clusterctl the names of Namespaces.
    if manifest.kind == "CustomResourceDefinition":
        return
    for key, value in manifest.mapping("metadata", "labels").items():
        text = value if isinstance(value, str) else ""
        if not has_variable(text) and not is_label_value(text):
            yield Mismatch(
                ("metadata", "labels", key), f"is {text!r}, which is not a valid value of a label"
            )
    name = manifest.mapping("metadata").get("name")
    is_form = _PATH_NAME.fullmatch if manifest.api_group == _RBAC else is_subdomain
    if isinstance(name, str) and not has_variable(name) and name and not is_form(name):
        yield Mismatch(("metadata", "name"), f"is {name!r}, which is not a valid name of an object")
    if is_complete and not name and not manifest.mapping("metadata").get("generateName"):
        yield Mismatch(("metadata", "name"), "is required")


def _of_webhooks(manifest: Manifest, is_complete: bool) -> Iterator[Mismatch]:
    for number, hook in enumerate(manifest.listing("webhooks")):
        path: Path = ("webhooks", number)
        versions = mapping_of(hook).get("admissionReviewVersions")
        known = [each for each in versions or () if each in _SERVED or has_variable(str(each))]
        if versions and not known:
            yield Mismatch((*path, "admissionReviewVersions"), "has none of v1, v1beta1")
        client = mapping_of(hook, "clientConfig")
        if client and is_complete:
            for fault in find_client_faults(client):
                if not has_variable(fault.message):
                    yield Mismatch(
                        (*path, "clientConfig", *fault.path), f"is wrong: {fault.message}"
                    )


def _of_ports(manifest: Manifest) -> Iterator[Mismatch]:
    ports = manifest.listing("spec", "ports")
    for number, port in enumerate(ports if len(ports) > 1 else ()):
        if not text_of(port, "name"):
            yield Mismatch(("spec", "ports", number, "name"), "is required beside other ports")
