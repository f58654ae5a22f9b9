"""Machines of cluster.x-k8s.io/v1beta1, which has neither taints nor ``minReadySeconds``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from capsmith_runtime.contract import conditions, durations, metadata
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
from capsmith_runtime.contract.v1beta1.references import read_reference, reference_to


class CoreMachinesV1Beta1:
    """Implements CoreMachines for v1beta1."""

    version = "v1beta1"

    def read(self, obj: Object) -> ControlPlaneMachine:
        """Return the view; core from v1.9 writes metav1 conditions beside the old ones."""
        old = metadata.items(obj, "status", "conditions")
        new = metadata.items(obj, "status", "v1beta2", "conditions")
        return read_machine(
            obj,
            infrastructure=read_reference(metadata.mapping(obj, "spec", "infrastructureRef")),
            bootstrap=read_reference(metadata.mapping(obj, "spec", "bootstrap", "configRef")),
            conditions=(*old, *new),
        )

    def failure_domains(self, cluster: Object) -> tuple[str, ...]:
        """Return the names, which are the keys of an object."""
        domains = metadata.mapping(cluster, "status", "failureDomains")
        return tuple(sorted(name for name, d in domains.items() if d.get("controlPlane") is True))

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
        """Write timeouts as durations, unless the existing one is of the same length."""
        deletion = settings.deletion_seconds
        timeouts = {
            "nodeDrainTimeout": settings.drain_seconds,
            "nodeVolumeDetachTimeout": settings.volume_detach_seconds,
            "nodeDeletionTimeout": DEFAULT_DELETION_SECONDS if deletion is None else deletion,
        }
        spec = dict(metadata.mapping(obj, "spec"))
        for name, seconds in timeouts.items():
            if durations.parse_seconds(spec.get(name)) != seconds:
                set_or_remove(
                    spec, name, None if seconds is None else durations.format_seconds(seconds)
                )
        set_or_remove(spec, "readinessGates", [dict(gate) for gate in settings.readiness_gates])
        return spec

    def status(
        self, obj: Object, present: Sequence[Condition], absent: Iterable[str], now: str
    ) -> dict[str, Any]:
        """Set metav1 conditions; remove conditions from both lists."""
        status = dict(metadata.mapping(obj, "status"))
        new: Sequence[Object] = metadata.items(obj, "status", "v1beta2", "conditions")
        old: Sequence[Object] = metadata.items(obj, "status", "conditions")
        for name in absent:
            new, old = conditions.without(new, name), conditions.without(old, name)
        generation = metadata.generation(obj)
        listed = conditions.merged(new, present, generation=generation, now=now)
        status["v1beta2"] = {**metadata.mapping(status, "v1beta2"), "conditions": listed}
        status["conditions"] = list(old)
        return status
