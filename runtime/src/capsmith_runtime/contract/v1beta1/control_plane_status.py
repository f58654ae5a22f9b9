"""Shape of control planes in contract v1beta1."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any

from capsmith_runtime.contract import durations, metadata
from capsmith_runtime.contract.constants import READY_CONDITION
from capsmith_runtime.contract.control_plane_facts import (
    AVAILABLE,
    NEGATIVE,
    ControlPlaneFacts,
    MachineTemplate,
)
from capsmith_runtime.contract.control_plane_machine import MachineSettings
from capsmith_runtime.contract.model import Condition, Object, ObjectRef
from capsmith_runtime.contract.status_writer import with_extra


class V1Beta1ControlPlane:
    """Implements ControlPlaneShape for contract v1beta1."""

    contract = "v1beta1"

    def initialized(self, obj: Object) -> bool:
        """Read ``status.initialized`` (CP-03)."""
        return metadata.lookup(obj, "status", "initialized") is True

    def machine_template(self, obj: Object) -> MachineTemplate:
        """Read ``spec.machineTemplate`` (CP-13, CP-15)."""
        template = metadata.mapping(obj, "spec", "machineTemplate")
        reference = metadata.mapping(template, "infrastructureRef")
        return MachineTemplate(
            labels=metadata.labels(template),
            annotations=metadata.annotations(template),
            infrastructure=ObjectRef(
                metadata.text(reference, "apiVersion").partition("/")[0],
                metadata.text(reference, "kind"),
                metadata.text(reference, "name"),
            ),
            settings=MachineSettings(
                drain_seconds=durations.parse_seconds(template.get("nodeDrainTimeout")),
                volume_detach_seconds=durations.parse_seconds(
                    template.get("nodeVolumeDetachTimeout")
                ),
                deletion_seconds=durations.parse_seconds(template.get("nodeDeletionTimeout")),
                readiness_gates=metadata.items(template, "readinessGates"),
                taints=metadata.items(template, "taints"),
            ),
        )

    def status(self, obj: Object, facts: ControlPlaneFacts, features: Set[str]) -> dict[str, Any]:
        """Return the status (CP-03, CP-04, CP-06, CP-10, CP-25).

        Core up to v1.10 reads ``ready`` as "the API server answers", so it stays true once the
        control plane is initialised.
        """
        status = dict(metadata.mapping(obj, "status"))
        if facts.initialized:
            status |= {"initialized": True, "ready": True}
        if facts.replicas is not None and "replicas" in features:
            replicas = facts.replicas
            status |= {
                "replicas": replicas.current,
                "readyReplicas": replicas.nodes_ready,
                "updatedReplicas": replicas.up_to_date,
                "unavailableReplicas": max(0, replicas.desired - replicas.available),
                "selector": replicas.selector,
            }
        if facts.versions and "version" in features:
            status["version"] = facts.versions[0][0]
        if facts.externally_managed:
            status["externalManagedControlPlane"] = True
        return with_extra(status, facts.extra)

    def conditions(self, conditions: Sequence[Condition]) -> Sequence[Condition]:
        """Copy Available to Ready (CP-27); omit negative-polarity conditions (ST-02)."""
        shown = [c for c in conditions if c.type not in NEGATIVE or c.status is True]
        available = next((c for c in conditions if c.type == AVAILABLE), None)
        if available is not None:
            shown.append(replace(available, type=READY_CONDITION))
        return shown

    def absent(self, conditions: Sequence[Condition]) -> frozenset[str]:
        """Return the types of negative-polarity conditions that are False."""
        return frozenset(c.type for c in conditions if c.type in NEGATIVE and c.status is not True)
