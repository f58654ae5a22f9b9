"""The part of a Machine that managers keep in memory.

Most Machines are workers of other controllers, of which providers read little, and write nothing.
Control planes read and write their own Machines, so those are kept as they are.
"""

from __future__ import annotations

from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import (
    CONTROL_PLANE_LABEL,
    CORE_GROUP,
    MACHINE_POOL_KIND,
)
from capsmith_runtime.contract.machine_pool import OWNER_REMEDIATED_CONDITION
from capsmith_runtime.contract.model import Object

_WORKER_OWNERS: Final = ("MachineSet", MACHINE_POOL_KIND)
_SPEC: Final = ("clusterName", "version", "failureDomain", "infrastructureRef")
_STATUS: Final = ("nodeRef", "phase")


def project_machine(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a Machine that any controller reads: all of a control plane's."""
    if CONTROL_PLANE_LABEL in metadata.labels(obj) or not _is_worker(obj):
        return obj
    spec = _kept(metadata.mapping(obj, "spec"), _SPEC)
    spec["bootstrap"] = _kept(metadata.mapping(obj, "spec", "bootstrap"), ("dataSecretName",))
    status = _kept(metadata.mapping(obj, "status"), _STATUS)
    conditions = [
        condition
        for condition in metadata.items(obj, "status", "conditions")
        if condition.get("type") == OWNER_REMEDIATED_CONDITION
    ]
    if conditions:
        status["conditions"] = conditions
    projected = _kept(obj, ("apiVersion", "kind", "metadata"))
    return {**projected, "spec": spec, "status": status}


def _is_worker(obj: Object) -> bool:
    return any(metadata.owner_name(obj, kind, CORE_GROUP) for kind in _WORKER_OWNERS)


def _kept(fields: Object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: fields[name] for name in names if name in fields}
