"""Control planes and their Machines, in the format of each contract version and core version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final

from capsmith_runtime.contract import conditions, metadata, times, v1beta1, v1beta2
from capsmith_runtime.contract.constants import READY_CONDITION
from capsmith_runtime.contract.control_plane import (
    AVAILABLE,
    DEFAULT_DELETION_SECONDS,
    NEGATIVE,
    ControlPlaneFacts,
    ControlPlaneMachine,
    ControlPlaneShape,
    CoreMachines,
    MachineDraft,
    MachineSettings,
    MachineTemplate,
    build_machine,
    read_control_plane_machine,
    set_or_remove,
)
from capsmith_runtime.contract.model import Condition, Object, ObjectRef
from capsmith_runtime.contract.status_writer import READY_FIELD, set_extra_fields


class V1Beta1ControlPlane:
    """Reads and writes a control plane's fields in contract v1beta1's format."""

    contract = "v1beta1"

    def is_initialized(self, obj: Object) -> bool:
        """Return whether ``status.initialized`` is true (CP-03)."""
        return metadata.lookup(obj, "status", "initialized") is True

    def read_machine_template(self, obj: Object) -> MachineTemplate:
        """Return the content of ``spec.machineTemplate`` (CP-13, CP-15)."""
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
                drain_seconds=times.parse_seconds(template.get("nodeDrainTimeout")),
                volume_detach_seconds=times.parse_seconds(template.get("nodeVolumeDetachTimeout")),
                deletion_seconds=times.parse_seconds(template.get("nodeDeletionTimeout")),
                readiness_gates=metadata.items(template, "readinessGates"),
                taints=metadata.items(template, "taints"),
            ),
        )

    def build_status(
        self, obj: Object, facts: ControlPlaneFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the complete status; conditions are unchanged (CP-03, CP-04, CP-06, CP-10, CP-25).

        Core up to v1.10 reads ``ready`` as "the API server responds", so it stays true once the
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
        return set_extra_fields(status, facts.extra)

    def select_conditions(self, conditions: Sequence[Condition]) -> Sequence[Condition]:
        """Return the conditions to write; Available is also written as Ready.

        Negative-polarity conditions that are not True are left out (CP-27, ST-02).
        """
        # In v1beta1 a False condition signals an error, but these conditions are normally False.
        shown = [c for c in conditions if c.type not in NEGATIVE or c.status is True]
        available = next((c for c in conditions if c.type == AVAILABLE), None)
        if available is not None:
            shown.append(replace(available, type=READY_CONDITION))
        return shown

    def find_obsolete_conditions(self, conditions: Sequence[Condition]) -> frozenset[str]:
        """Return the types of the negative-polarity conditions that are not True.

        Contract v1beta1 leaves them out of the status.
        """
        return frozenset(c.type for c in conditions if c.type in NEGATIVE and c.status is not True)


class V1Beta2ControlPlane:
    """Reads and writes a control plane's fields in contract v1beta2's format."""

    contract = "v1beta2"

    def is_initialized(self, obj: Object) -> bool:
        """Return whether ``status.initialization.controlPlaneInitialized`` is true (CP-02)."""
        return metadata.lookup(obj, "status", "initialization", "controlPlaneInitialized") is True

    def read_machine_template(self, obj: Object) -> MachineTemplate:
        """Return ``spec.machineTemplate.{metadata, spec}`` (CP-11, CP-12, CP-14)."""
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

    def build_status(
        self, obj: Object, facts: ControlPlaneFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the complete status; conditions are unchanged (CP-02, CP-04, CP-05, CP-09, CP-10,
        CP-25)."""
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
        return set_extra_fields(status, facts.extra)

    def select_conditions(self, conditions: Sequence[Condition]) -> Sequence[Condition]:
        """Return all conditions: this contract version has Available and no Ready (CP-26)."""
        return conditions

    def find_obsolete_conditions(self, conditions: Sequence[Condition]) -> frozenset[str]:
        """Return an empty set: in this contract version every condition is always present."""
        return frozenset()


_SHAPES: Final[tuple[ControlPlaneShape, ...]] = (V1Beta2ControlPlane(), V1Beta1ControlPlane())
CONTROL_PLANE_SHAPES: Final[Mapping[str, ControlPlaneShape]] = {
    known.contract: known for known in _SHAPES
}
"""The ControlPlaneShape for each contract version."""


class CoreMachinesV1Beta1:
    """Reads and builds control plane Machines in cluster.x-k8s.io/v1beta1."""

    version = "v1beta1"

    def read(self, obj: Object) -> ControlPlaneMachine:
        """Return the control plane Machine fields that providers use.

        Core v1.9 and later writes metav1 conditions in addition to the v1beta1 ones.
        """
        old = metadata.items(obj, "status", "conditions")
        new = metadata.items(obj, "status", "v1beta2", "conditions")
        return read_control_plane_machine(
            obj,
            infrastructure=v1beta1.read_reference(
                metadata.mapping(obj, "spec", "infrastructureRef")
            ),
            bootstrap=v1beta1.read_reference(
                metadata.mapping(obj, "spec", "bootstrap", "configRef")
            ),
            # Later entries win: if both lists have a condition of a type, the metav1 condition
            # counts.
            conditions=(*old, *new),
        )

    def read_failure_domains(self, cluster: Object) -> tuple[str, ...]:
        """Return the names of the failure domains, which this version stores as object keys."""
        domains = metadata.mapping(cluster, "status", "failureDomains")
        return tuple(sorted(name for name, d in domains.items() if d.get("controlPlane") is True))

    def build(self, draft: MachineDraft) -> dict[str, Any]:
        """Create the manifest of a Machine from a draft."""
        obj = build_machine(
            draft,
            version=self.version,
            bootstrap=v1beta1.build_reference(draft.bootstrap),
            infrastructure=v1beta1.build_reference(draft.infrastructure),
        )
        return {**obj, "spec": self.build_spec(obj, draft.settings)}

    def build_spec(self, obj: Object, settings: MachineSettings) -> dict[str, Any]:
        """Return a Machine's complete spec, with timeouts as durations.

        An existing duration of the same length is kept as it was written.
        """
        deletion = settings.deletion_seconds
        timeouts = {
            "nodeDrainTimeout": settings.drain_seconds,
            "nodeVolumeDetachTimeout": settings.volume_detach_seconds,
            # Core's webhook fills in the same default: without it, each reconcile would find and
            # write a difference.
            "nodeDeletionTimeout": DEFAULT_DELETION_SECONDS if deletion is None else deletion,
        }
        spec = dict(metadata.mapping(obj, "spec"))
        for name, seconds in timeouts.items():
            # `60s` and `1m0s` are equal: rewriting what a user wrote would be a needless change.
            if times.parse_seconds(spec.get(name)) != seconds:
                set_or_remove(
                    spec, name, None if seconds is None else times.format_seconds(seconds)
                )
        set_or_remove(spec, "readinessGates", [dict(gate) for gate in settings.readiness_gates])
        return spec

    def build_status(
        self, obj: Object, present: Sequence[Condition], absent: Iterable[str], now: str
    ) -> dict[str, Any]:
        """Return the complete status.

        Conditions are set in the list of metav1 conditions, and removed both from that list and
        from the v1beta1 list.
        """
        status = dict(metadata.mapping(obj, "status"))
        new: Sequence[Object] = metadata.items(obj, "status", "v1beta2", "conditions")
        old: Sequence[Object] = metadata.items(obj, "status", "conditions")
        for name in absent:
            # Earlier releases may have written the condition into the other list.
            new, old = conditions.remove(new, name), conditions.remove(old, name)
        generation = metadata.generation(obj)
        listed = conditions.merge(new, present, generation=generation, now=now)
        status["v1beta2"] = {**metadata.mapping(status, "v1beta2"), "conditions": listed}
        status["conditions"] = list(old)
        return status


class CoreMachinesV1Beta2:
    """Reads and builds control plane Machines in cluster.x-k8s.io/v1beta2."""

    version = "v1beta2"

    def read(self, obj: Object) -> ControlPlaneMachine:
        """Return the control plane Machine fields that providers use."""
        return read_control_plane_machine(
            obj,
            infrastructure=v1beta2.read_reference(
                metadata.mapping(obj, "spec", "infrastructureRef")
            ),
            bootstrap=v1beta2.read_reference(
                metadata.mapping(obj, "spec", "bootstrap", "configRef")
            ),
            conditions=metadata.items(obj, "status", "conditions"),
        )

    def read_failure_domains(self, cluster: Object) -> tuple[str, ...]:
        """Return the names of the failure domains, which this version stores as a list."""
        domains = metadata.items(cluster, "status", "failureDomains")
        return tuple(sorted(d["name"] for d in domains if d.get("controlPlane") is True))

    def build(self, draft: MachineDraft) -> dict[str, Any]:
        """Create the manifest of a Machine from a draft."""
        obj = build_machine(
            draft,
            version=self.version,
            bootstrap=v1beta2.build_reference(draft.bootstrap),
            infrastructure=v1beta2.build_reference(draft.infrastructure),
        )
        return {**obj, "spec": self.build_spec(obj, draft.settings)}

    def build_spec(self, obj: Object, settings: MachineSettings) -> dict[str, Any]:
        """Return a Machine's complete spec, with timeouts in seconds.

        ``minReadySeconds`` is always written, even if it is 0 (CP-32).
        """
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

    def build_status(
        self, obj: Object, present: Sequence[Condition], absent: Iterable[str], now: str
    ) -> dict[str, Any]:
        """Return the complete status, with conditions set in and removed from its single list."""
        listed: Sequence[Object] = metadata.items(obj, "status", "conditions")
        for name in absent:
            listed = conditions.remove(listed, name)
        generation = metadata.generation(obj)
        return {
            **metadata.mapping(obj, "status"),
            "conditions": conditions.merge(listed, present, generation=generation, now=now),
        }


_CORE_MACHINES: Final[tuple[CoreMachines, ...]] = (CoreMachinesV1Beta2(), CoreMachinesV1Beta1())
CORE_MACHINES: Final[Mapping[str, CoreMachines]] = {
    known.version: known for known in _CORE_MACHINES
}
"""The CoreMachines for each version of core's API."""
