"""Check objects of core's and kubeadm's own kinds against the schemas of these kinds.

The CRDs are no part of a provider's release, so their schemas are data of capsmith.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.judge.checks.mismatches import Mismatch, find_value_mismatches
from capsmith.manifests.crds import OPEN
from capsmith.manifests.parse import Manifest, find_value, mapping_of, text_of
from capsmith.yamldoc.compose import Path

CoreKinds = Mapping[str, Mapping[str, Any]]

_SET = {"MachineDeployment": "selector", "MachineSet": "selector"}
"""Required fields that core's webhook sets."""
_STRATEGIES = (("rollout", "strategy", "type"), ("spec", "rolloutStrategy", "type"))
"""Ends of paths to a type of which the webhook of control planes writes the only value."""
_EMPTY = frozenset({"extraEnvs", "taints"})
"""Lists of Kubernetes' types, whose missing texts the webhook of control planes writes as empty."""
_DROPPED: Mapping[str, tuple[str, ...]] = {"ClusterResourceSet": ("strategy",)}
"""Fields that webhooks of core write if they are empty texts."""
_OF_MACHINES = ("failureDomain", "polarity", "providerID", "value", "version")
_OF_SETS = (*_OF_MACHINES, "deletePolicy", "template", "type")
_DROPPED_IN_V1BETA1: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("Machine", "MachinePool"), _OF_MACHINES),
    **dict.fromkeys(("MachineDeployment", "MachineSet"), _OF_SETS),
    "MachineHealthCheck": ("unhealthyRange",),
}
"""Fields of v1beta1 that core's conversion drops if they are empty texts."""
_EMPTY_IN_V1BETA1 = {
    **dict.fromkeys(
        ("Machine", "MachineDeployment", "MachinePool", "MachineSet"), "infrastructureRef"
    ),
    "MachineHealthCheck": "timeout",
}
"""Required fields of v1beta1 that core's conversion writes with empty values."""


_WITHOUT_SPEC = ("KubeadmConfig", "KubeadmConfigTemplate", "KubeadmControlPlaneTemplate")
"""Kinds that the API server takes without a spec."""
_CREATED = "an object is created from the template"
_FORMER, _CURRENT = "v1beta1", "v1beta2"
"""Contract versions; core v1.10 chooses the former one, which is its API version, too."""
_ZERO_VALUES: Mapping[Any, Any] = {"boolean": False, "integer": 0, "string": ""}


def find_core_mismatches(manifest: Manifest, kinds: CoreKinds) -> Iterator[Mismatch]:
    """Yield each mismatch between an object and its kind in core or kubeadm.

    Objects of other kinds have none.
    """
    api_version = text_of(manifest.document, "apiVersion")
    served = [name for name in kinds if name.rpartition("/")[0] == manifest.api_group]
    of_kind = [name for name in served if manifest.kind in kinds[name]]
    if not of_kind:
        return
    if api_version not in of_kind:
        yield Mismatch(("apiVersion",), f"{api_version} is not served; use {', '.join(of_kind)}")
        return
    schema = kinds[api_version][manifest.kind]
    others = {name: kinds[name][manifest.kind] for name in of_kind if name != api_version}
    spec = manifest.document.get("spec")
    if spec is None and manifest.kind in _WITHOUT_SPEC:
        if manifest.kind.endswith("Template"):
            yield Mismatch(("spec",), "is missing, and core finds no template", when=_CREATED)
        return
    for mismatch in find_value_mismatches(schema, {} if spec is None else spec, ("spec",), True):
        if _is_set_by_core(manifest, mismatch):
            continue
        is_former = api_version.rpartition("/")[2] == _FORMER
        only = _CURRENT if is_former and _is_empty_valid(schema, mismatch) else ""
        yield mismatch._replace(message=mismatch.message + _where(mismatch, others), only=only)


def _is_empty_valid(schema: Any, mismatch: Mismatch) -> bool:
    """Return whether a required field is missing that may have the zero value of its type.

    Core v1.10 has defaulting webhooks for each of its kinds, which write such values.
    """
    if mismatch.message != "is required":
        return False
    part = mapping_of(_find(schema, mismatch.path[1:]))
    value = _ZERO_VALUES.get(part.get("type"))
    return value is not None and not any(find_value_mismatches(part, value, (), True))


def _is_set_by_core(manifest: Manifest, mismatch: Mismatch) -> bool:
    """Return whether core writes a required field that is missing, or another value."""
    is_former = text_of(manifest.document, "apiVersion").endswith("/v1beta1")
    if find_value(manifest.document, mismatch.path) == "":
        dropped = _DROPPED.get(manifest.kind, ())
        if is_former:
            dropped = _DROPPED_IN_V1BETA1.get(manifest.kind, dropped)
        if mismatch.path[-1] in dropped:
            return True
    # The webhook writes a timeout into the checks.
    if manifest.kind == "MachineHealthCheck" and mismatch.path == ("spec", "checks"):
        return not manifest.mapping(*map(str, mismatch.path))
    is_required = mismatch.message == "is required"
    if manifest.kind == "KubeadmControlPlane":
        is_empty = "kubeadmConfigSpec" in mismatch.path and not _EMPTY.isdisjoint(mismatch.path)
        is_written = is_required and is_empty and not is_former
        return mismatch.path[-3:] in _STRATEGIES or is_written
    fields = [_SET.get(manifest.kind)]
    if is_former:
        fields.append(_EMPTY_IN_V1BETA1.get(manifest.kind))
    return is_required and mismatch.path[-1] in fields


def _where(mismatch: Mismatch, others: Mapping[str, Any]) -> str:
    """Return which other API version has an unknown field, as the end of a message."""
    if mismatch.message != "is not a field":
        return ""
    found = [name for name, schema in others.items() if _declares(schema, mismatch.path[1:])]
    return f", other than in {', '.join(found)}" if found else ""


def _declares(schema: Any, path: Path) -> bool:
    return _find(schema, path) is not None


def _find(schema: Any, path: Path) -> Any:
    """Return the schema at a path; None if it is not declared."""
    for step in path:
        data = mapping_of(schema)
        if data.get(OPEN) is True:
            return {}
        schema = data.get("items") if isinstance(step, int) else _property(data, str(step))
        if schema is None:
            return None
    return schema


def _property(schema: Mapping[str, Any], name: str) -> Any:
    return mapping_of(schema, "properties").get(name, schema.get("additionalProperties"))
