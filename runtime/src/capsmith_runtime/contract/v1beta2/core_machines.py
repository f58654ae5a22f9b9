"""Machines of cluster.x-k8s.io/v1beta2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.control_plane_machine import (
    DEFAULT_DELETION_SECONDS,
    ControlPlaneMachine,
    MachineDraft,
    MachineSettings,
    new_machine,
    read_machine,
    set_or_remove,
)
from capsmith_runtime.contract.model import Condition, Object
from capsmith_runtime.contract.v1beta2.references import read_reference, reference_to


class CoreMachinesV1Beta2:
    """Implements CoreMachines for v1beta2."""

    version = "v1beta2"

    def read(self, obj: Object) -> ControlPlaneMachine:
        """Return the view of a Machine."""
        return read_machine(
            obj,
            infrastructure=read_reference(metadata.mapping(obj, "spec", "infrastructureRef")),
            bootstrap=read_reference(metadata.mapping(obj, "spec", "bootstrap", "configRef")),
            conditions=metadata.items(obj, "status", "conditions"),
        )

    def failure_domains(self, cluster: Object) -> tuple[str, ...]:
        """Return the names from the list of failure domains."""
        domains = metadata.items(cluster, "status", "failureDomains")
        return tuple(sorted(d["name"] for d in domains if d.get("controlPlane") is True))

    def new(self, draft: MachineDraft) -> dict[str, Any]:
        """Return the object to create."""
        obj = new_machine(
            draft,
            version=self.version,
            bootstrap=reference_to(draft.bootstrap),
            infrastructure=reference_to(draft.infrastructure),
        )
        return {**obj, "spec": self.spec(obj, draft.settings)}

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
