"""Machines of cluster.x-k8s.io/v1beta2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.constants import CORE_GROUP, MACHINE_KIND
from capsmith_runtime.contract.control_plane_machine import (
    DEFAULT_DELETION_SECONDS,
    ControlPlaneMachine,
    MachineDraft,
    MachineSettings,
    read_machine,
    set_or_remove,
)
from capsmith_runtime.contract.model import Condition, Object, ObjectRef


class CoreMachinesV1Beta2:
    """Implements CoreMachines for v1beta2."""

    version = "v1beta2"

    def read(self, obj: Object) -> ControlPlaneMachine:
        """Return the view of a Machine."""
        return read_machine(
            obj,
            infrastructure=_reference(metadata.mapping(obj, "spec", "infrastructureRef")),
            bootstrap=_reference(metadata.mapping(obj, "spec", "bootstrap", "configRef")),
            conditions=metadata.items(obj, "status", "conditions"),
        )

    def failure_domains(self, cluster: Object) -> tuple[str, ...]:
        """Read a list whose entries have names."""
        domains = metadata.items(cluster, "status", "failureDomains")
        return tuple(sorted(d["name"] for d in domains if d.get("controlPlane") is True))

    def new(self, draft: MachineDraft) -> dict[str, Any]:
        """Return the object to create."""
        spec: dict[str, Any] = {
            "clusterName": draft.cluster_name,
            "version": draft.version,
            "bootstrap": {"configRef": _reference_to(draft.bootstrap)},
            "infrastructureRef": _reference_to(draft.infrastructure),
        }
        set_or_remove(spec, "failureDomain", draft.failure_domain)
        return {
            "apiVersion": f"{CORE_GROUP}/{self.version}",
            "kind": MACHINE_KIND,
            "metadata": dict(draft.metadata),
            "spec": self.spec({"spec": spec}, draft.settings),
        }

    def spec(self, obj: Object, settings: MachineSettings) -> dict[str, Any]:
        """Write timeouts in seconds; ``minReadySeconds`` always, as 0 is a value, too (CP-32)."""
        deletion = settings.deletion_seconds
        timeouts = {
            "nodeDrainTimeoutSeconds": settings.drain_seconds,
            "nodeVolumeDetachTimeoutSeconds": settings.volume_detach_seconds,
            "nodeDeletionTimeoutSeconds": (
                DEFAULT_DELETION_SECONDS if deletion is None else deletion
            ),
        }
        spec = dict(metadata.mapping(obj, "spec"))
        spec["deletion"] = dict(metadata.mapping(spec, "deletion"))
        for name, seconds in timeouts.items():
            set_or_remove(spec["deletion"], name, seconds)
        spec["minReadySeconds"] = metadata.lookup(obj, "spec", "minReadySeconds") or 0
        set_or_remove(spec, "readinessGates", [dict(gate) for gate in settings.readiness_gates])
        set_or_remove(spec, "taints", [dict(taint) for taint in settings.taints])
        return spec

    def status(
        self, obj: Object, present: Sequence[Condition], absent: Iterable[str], now: str
    ) -> dict[str, Any]:
        """Set and remove conditions in the only list."""
        listed: Sequence[Object] = metadata.items(obj, "status", "conditions")
        for name in absent:
            listed = conditions.without(listed, name)
        generation = metadata.generation(obj)
        return {
            **metadata.mapping(obj, "status"),
            "conditions": conditions.merged(listed, present, generation=generation, now=now),
        }


def _reference(reference: Object) -> ObjectRef | None:
    name = metadata.text(reference, "name")
    if not name:
        return None
    group = metadata.text(reference, "apiGroup")
    return ObjectRef(group, metadata.text(reference, "kind"), name)


def _reference_to(obj: Object) -> dict[str, Any]:
    group = metadata.text(obj, "apiVersion").partition("/")[0]
    return {"apiGroup": group, "kind": obj["kind"], "name": metadata.name(obj)}
