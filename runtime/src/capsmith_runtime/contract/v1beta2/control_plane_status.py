"""Shape of control planes in contract v1beta2."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.control_plane_facts import (
    ControlPlaneFacts,
    MachineTemplate,
)
from capsmith_runtime.contract.control_plane_machine import MachineSettings
from capsmith_runtime.contract.model import Condition, Object, ObjectRef
from capsmith_runtime.contract.status_writer import READY_FIELD, with_extra


class V1Beta2ControlPlane:
    """Implements ControlPlaneShape for contract v1beta2."""

    contract = "v1beta2"

    def initialized(self, obj: Object) -> bool:
        """Read ``status.initialization.controlPlaneInitialized`` (CP-02)."""
        return metadata.lookup(obj, "status", "initialization", "controlPlaneInitialized") is True

    def machine_template(self, obj: Object) -> MachineTemplate:
        """Read ``spec.machineTemplate.{metadata, spec}`` (CP-11, CP-12, CP-14)."""
        template = metadata.mapping(obj, "spec", "machineTemplate")
        spec = metadata.mapping(template, "spec")
        reference = metadata.mapping(spec, "infrastructureRef")
        deletion = metadata.mapping(spec, "deletion")
        return MachineTemplate(
            labels=metadata.labels(template),
            annotations=metadata.annotations(template),
            infrastructure=ObjectRef(
                metadata.text(reference, "apiGroup"),
                metadata.text(reference, "kind"),
                metadata.text(reference, "name"),
            ),
            settings=MachineSettings(
                drain_seconds=deletion.get("nodeDrainTimeoutSeconds"),
                volume_detach_seconds=deletion.get("nodeVolumeDetachTimeoutSeconds"),
                deletion_seconds=deletion.get("nodeDeletionTimeoutSeconds"),
                readiness_gates=metadata.items(spec, "readinessGates"),
                taints=metadata.items(spec, "taints"),
            ),
        )

    def status(self, obj: Object, facts: ControlPlaneFacts, features: Set[str]) -> dict[str, Any]:
        """Return the status (CP-02, CP-04, CP-05, CP-09, CP-10, CP-25)."""
        status = dict(metadata.mapping(obj, "status"))
        if facts.initialized:
            current = metadata.mapping(status, "initialization")
            status["initialization"] = {**current, "controlPlaneInitialized": True}
            if READY_FIELD in features:
                status["ready"] = True
        if facts.replicas is not None and "replicas" in features:
            status |= {
                "replicas": facts.replicas.current,
                "readyReplicas": facts.replicas.ready,
                "availableReplicas": facts.replicas.available,
                "upToDateReplicas": facts.replicas.up_to_date,
                "selector": facts.replicas.selector,
            }
        if facts.versions and "version" in features:
            # Core up to v1.13 reads the first field, later versions the second.
            status["version"] = facts.versions[0][0]
            status["versions"] = [
                {"version": version, **({"replicas": count} if count else {})}
                for version, count in facts.versions
            ]
        if facts.externally_managed:
            status["externalManagedControlPlane"] = True
        return with_extra(status, facts.extra)

    def conditions(self, conditions: Sequence[Condition]) -> Sequence[Condition]:
        """Return all conditions; Available replaces Ready (CP-26)."""
        return conditions

    def absent(self, conditions: Sequence[Condition]) -> frozenset[str]:
        """Return nothing: every condition is always present."""
        return frozenset()
