"""Check the objects of Kubernetes and cert-manager in a release as the API server does.

The schemas are part of the rule.  They declare what providers use; all other fields are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from capsmith.judge.checks.admission_expressions import POLICIES, find_expression_faults
from capsmith.judge.checks.apiextensions.definition import find_client_faults
from capsmith.judge.checks.apiextensions.model import is_label_value, is_subdomain
from capsmith.judge.checks.built_in_limits import find_limit_faults
from capsmith.judge.checks.built_in_pods import (
    find_key_faults,
    find_pod_faults,
    find_pod_path,
    is_finalizer,
    list_values,
)
from capsmith.judge.checks.built_in_types import KubernetesKinds, decode, find_type_mismatches
from capsmith.judge.checks.mismatches import (
    Mismatch,
    find_metadata_mismatches,
    find_value_mismatches,
)
from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.crds import OPEN
from capsmith.manifests.parse import (
    Manifest,
    find_value,
    has_variable,
    list_of,
    mapping_of,
    may_vary,
    text_of,
    texts_of,
)
from capsmith.yamldoc.compose import Path

_HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
_RBAC = "rbac.authorization.k8s.io"
_STARRED = ("operations", "apiGroups", "apiVersions", "resources")
"""Fields of a webhook's rule in which a star includes all other values."""
_INTERNAL = "ClusterIP"
_MATCHED = (*POLICIES, *(f"{kind}Binding" for kind in POLICIES))
_MATCHING = ("matchConstraints", "matchResources")
_POLICY_RULES = ("resourceRules", "excludeResourceRules")
_SERVED = frozenset({"v1", "v1beta1"})
"""Versions of AdmissionReview that API servers send."""
_PATH_NAME = re.compile(r"(?!\.{1,2}$)[^/%]+")
_PATH_NAMED = (_RBAC, "policy")
"""API groups whose objects have any name that a path can have."""


@dataclass(frozen=True, slots=True)
class RequiredAlternatives:
    """Fields of which an object needs at least one."""

    path: str
    """Path to the object; ``[]`` stands for each item of a list."""
    keys: tuple[str, ...]
    most: int = 0
    """How many of the fields an object may have; 0 if it may have all."""


@dataclass(frozen=True, slots=True, eq=False)
class KindSchema:
    """Schema of the kinds that declare the same fields, for the check ``components-fit``."""

    group: str
    kinds: tuple[str, ...]
    schema: Mapping[str, Any]
    """OpenAPI schema of what is checked; fields that it does not declare are accepted."""
    one_of: tuple[RequiredAlternatives, ...] = ()
    """Fields of which at least one is needed, which cert-manager's webhook checks, too."""


@dataclass(frozen=True, slots=True)
class KindSchemas:
    """What is known of kinds of Kubernetes and cert-manager."""

    kinds: tuple[KindSchema, ...]
    """Their schemas."""
    pods: tuple[RequiredAlternatives, ...] = ()
    """Fields of which at least one is needed in the spec of Pods, with paths in that spec."""


class _Known:
    """What is known of kinds, by group and kind."""

    def __init__(self, params: KindSchemas, types: KubernetesKinds) -> None:
        self.pods = params.pods
        self.types = types
        self._kinds = {(each.group, kind): each for each in params.kinds for kind in each.kinds}

    def find(self, manifest: Manifest) -> KindSchema | None:
        """Return the schema of an object's kind; None if there is none."""
        return self._kinds.get((manifest.api_group, manifest.kind))


@check("components-fit", KindSchemas, is_shared=True)
def check_components_fit(context: Context, params: KindSchemas) -> Iterator[Violation]:
    """CC-81: The API server accepts the objects of Kubernetes and cert-manager in a release."""
    known = _Known(params, context.contract.kubernetes_kinds)
    # In a source tree, an object may be a patch of another one.
    is_complete = bool(context.bundle.files(Artefact.COMPONENTS))
    for manifest in context.bundle.objects:
        mismatches = _find_mismatches(manifest, known, is_complete)
        if not is_complete:
            mismatches = (each for each in mismatches if not _is_placeholder(manifest, each.path))
        yield from _report(manifest, mismatches)
    for artefact in (Artefact.CLUSTER_TEMPLATE, Artefact.CLUSTER_CLASS):
        for manifest in context.bundle.files(artefact):
            yield from _report(manifest, _names(manifest, True))
            yield from _report(manifest, _of_kind(manifest, known, True))


def _is_placeholder(manifest: Manifest, path: Path) -> bool:
    """Return whether a shell replaces a part of a value, such as ``$NAME``."""
    value = find_value(manifest.document, path)
    return isinstance(value, str) and "$" in value


def _report(manifest: Manifest, mismatches: Iterable[Mismatch]) -> Iterator[Violation]:
    for mismatch in mismatches:
        where = mismatch.varies_with
        if where is None or not may_vary(manifest, where, mismatch.is_deep):
            place = ".".join(map(str, mismatch.path))
            message = f"{manifest}: {place} {mismatch.message}"
            yield Violation(manifest, message, path=mismatch.path, when=mismatch.when)


@cache
def _open_schema(kind: KindSchema) -> Any:
    return _open(kind.schema)


def _open(schema: Any) -> Any:
    """Return a schema that accepts fields that it does not declare."""
    if isinstance(schema, list):
        return [_open(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    is_open = schema.get("type") == "object" and "additionalProperties" not in schema
    more = {OPEN: True} if is_open else {}
    return {key: _open(value) for key, value in schema.items()} | more


def _find_mismatches(manifest: Manifest, known: _Known, is_complete: bool) -> Iterator[Mismatch]:
    yield from find_metadata_mismatches(manifest)
    yield from _names(manifest, is_complete)
    if is_complete and not manifest.document.get("apiVersion"):
        yield Mismatch(("apiVersion",), "is required")
        return
    kind = (manifest.api_group, manifest.kind)
    yield from _of_kind(manifest, known, is_complete)
    if manifest.kind in _HOOKS:
        yield from _of_webhooks(manifest, is_complete)
    if manifest.kind in (*_HOOKS, *POLICIES):
        yield from find_expression_faults(manifest)
    for path in product(("spec",), _MATCHING, _POLICY_RULES) if manifest.kind in _MATCHED else ():
        yield from _of_rules(manifest.listing(*path), path)
    if kind == ("", "Service"):
        yield from _of_ports(manifest, is_complete)
    if kind == (_RBAC, "Role"):
        for number, rule in enumerate(manifest.listing("rules")):
            if list_of(rule, "nonResourceURLs"):
                message = "is only allowed in a ClusterRole"
                yield Mismatch(("rules", number, "nonResourceURLs"), message)
    if manifest.kind in _BINDINGS and is_complete:
        yield from _of_binding(manifest)


def _of_kind(manifest: Manifest, known: _Known, is_complete: bool) -> Iterator[Mismatch]:
    """Yield what does not fit the schema of a kind; then the values of other types."""
    seen = set()
    if is_complete:
        manifest = decode(manifest, known.types)
    for mismatch in _of_schema(manifest, known, is_complete):
        seen.add(mismatch.path)
        yield mismatch
    for mismatch in find_type_mismatches(manifest, known.types, is_complete):
        if mismatch.path not in seen:
            yield mismatch


def _of_schema(manifest: Manifest, known: _Known, is_complete: bool) -> Iterator[Mismatch]:
    kind = known.find(manifest)
    if kind is None:
        return
    yield from find_value_mismatches(_open_schema(kind), manifest.document, (), is_complete)
    if not is_complete:
        return
    for each in kind.one_of:
        yield from _lacking(manifest.document, each)
    if manifest.kind == "LimitRange":
        yield from find_limit_faults(manifest)
    pod = find_pod_path(manifest)
    if pod is not None:
        for each in known.pods:
            yield from _lacking(manifest.mapping(*map(str, pod)), each, pod)
        yield from find_pod_faults(manifest)


def _lacking(document: Any, needed: RequiredAlternatives, place: Path = ()) -> Iterator[Mismatch]:
    """Yield the objects that have none of the needed fields, or too many."""
    for below, part in list_values(document, needed.path):
        path = (*place, *below)
        found = [key for key in needed.keys if mapping_of(part).get(key) not in (None, [])]
        # The API server drops null, which has no fields.
        if not found and part is not None:
            yield Mismatch(path, f"has none of {', '.join(needed.keys)}")
        elif needed.most and len(found) > needed.most:
            yield Mismatch(path, f"has both {' and '.join(found)}")


def _of_binding(manifest: Manifest) -> Iterator[Mismatch]:
    if manifest.kind != "RoleBinding" and text_of(manifest.document, "roleRef", "kind") == "Role":
        yield Mismatch(("roleRef", "kind"), "is 'Role'; expected 'ClusterRole'")
    for number, subject in enumerate(manifest.listing("subjects")):
        is_account = text_of(subject, "kind") == "ServiceAccount"
        # In a RoleBinding, it is that of the binding. clusterctl adds no namespace.
        is_global = manifest.kind != "RoleBinding"
        if is_account and is_global and not text_of(subject, "namespace"):
            yield Mismatch(("subjects", number, "namespace"), "is required")
        group, expected = text_of(subject, "apiGroup"), "" if is_account else _RBAC
        if group and group != expected and not has_variable(group):
            message = f"is {group!r}; expected {expected!r}"
            yield Mismatch(("subjects", number, "apiGroup"), message)


def _names(manifest: Manifest, is_complete: bool) -> Iterator[Mismatch]:
    """Yield the names, keys and values in an object's metadata that the API server refuses."""
    # CRD-26 checks CRDs, and clusterctl the names of Namespaces.
    if manifest.kind == "CustomResourceDefinition":
        return
    is_service = (manifest.api_group, manifest.kind) == ("", "Service")
    yield from find_key_faults(manifest.document, ("spec.selector",) if is_service else ())
    for key in manifest.listing("metadata", "finalizers"):
        if isinstance(key, str) and not has_variable(key) and not is_finalizer(key):
            yield Mismatch(("metadata", "finalizers"), f"has {key!r}, which is not a valid name")
    for key, value in manifest.mapping("metadata", "labels").items():
        text = value if isinstance(value, str) else ""
        if not has_variable(text) and not is_label_value(text):
            yield Mismatch(
                ("metadata", "labels", key), f"is {text!r}, which is not a valid value of a label"
            )
    name = manifest.mapping("metadata").get("name")
    is_form = _PATH_NAME.fullmatch if manifest.api_group in _PATH_NAMED else is_subdomain
    if isinstance(name, str) and not has_variable(name) and name and not is_form(name):
        yield Mismatch(("metadata", "name"), f"is {name!r}, which is not a valid name of an object")
    if is_complete and not name and not manifest.mapping("metadata").get("generateName"):
        yield Mismatch(("metadata", "name"), "is required")


def _of_webhooks(manifest: Manifest, is_complete: bool) -> Iterator[Mismatch]:
    for number, hook in enumerate(manifest.listing("webhooks")):
        path: Path = ("webhooks", number)
        versions = texts_of(hook, "admissionReviewVersions")
        known = [each for each in versions if each in _SERVED or has_variable(each)]
        if versions and not known:
            yield Mismatch((*path, "admissionReviewVersions"), "has none of v1, v1beta1")
        yield from _of_rules(list_of(hook, "rules"), (*path, "rules"))
        client = mapping_of(hook).get("clientConfig")
        if isinstance(client, Mapping) and is_complete:
            for fault in find_client_faults(client):
                if not has_variable(fault.message):
                    yield Mismatch(
                        (*path, "clientConfig", *fault.path), f"is wrong: {fault.message}"
                    )


def _of_rules(rules: Sequence[Any], path: Path) -> Iterator[Mismatch]:
    """Yield the rules of a webhook or policy that have a star beside what it includes."""
    for place, name in product(range(len(rules)), _STARRED):
        if _has_star_beside(name, texts_of(rules[place], name)):
            yield Mismatch((*path, place, name), "has other values beside a star")


def _has_star_beside(field: str, values: Sequence[str]) -> bool:
    """Return whether a list has a star, and another value that the star includes."""
    if field != "resources":
        return "*" in values and len(values) > 1
    if "*/*" in values:
        return len(values) > 1
    split = [each.partition("/") for each in values]
    return any(
        (name != "*" and f"*/{below}" in values) or (below != "*" and f"{name}/*" in values)
        for name, slash, below in split
        if slash
    ) or ("*" in values and any(not slash and name != "*" for name, slash, _ in split))


def _of_type(ports: Sequence[Any], spec: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Yield the fields of a Service that another type of Service has."""
    if spec.get("type", _INTERNAL) != _INTERNAL:
        return
    message = f"is not allowed with the type {_INTERNAL}"
    for number, port in enumerate(ports):
        if mapping_of(port).get("nodePort"):
            yield Mismatch(("spec", "ports", number, "nodePort"), message)
    for key in ("healthCheckNodePort", "loadBalancerClass"):
        if spec.get(key):
            yield Mismatch(("spec", key), message)
    # An address from outside makes such a Service one for traffic from outside.
    if spec.get("externalTrafficPolicy") and not spec.get("externalIPs"):
        yield Mismatch(("spec", "externalTrafficPolicy"), message)


def _of_ports(manifest: Manifest, is_complete: bool) -> Iterator[Mismatch]:
    path = ("spec", "ports")
    ports, spec = manifest.listing(*path), manifest.mapping("spec")
    yield from _of_type(ports, spec)
    needs_ports = spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName"
    if is_complete and needs_ports and not ports:
        yield Mismatch(path, "is required")
    for number, port in enumerate(ports if len(ports) > 1 else ()):
        if not text_of(port, "name"):
            yield Mismatch((*path, number, "name"), "is required beside other ports")
    for key in ("name", "port"):
        seen: set[tuple[Any, str]] = set()
        for number, port in enumerate(ports):
            value = mapping_of(port).get(key)
            protocol = "" if key == "name" else text_of(port, "protocol") or "TCP"
            if value and (str(value), protocol) in seen and not has_variable(str(value)):
                yield Mismatch((*path, number, key), f"is {value} for the second time")
            seen.add((str(value), protocol))
