"""The shapes of version v1beta2: core's objects, and the status of each kind of provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.bootstrap import data_secret_name
from capsmith_runtime.contract.control_plane import (
    DEFAULT_DELETION_SECONDS,
    ControlPlaneFacts,
    ControlPlaneMachine,
    MachineDraft,
    MachineSettings,
    MachineTemplate,
    build_machine,
    read_control_plane_machine,
    set_or_remove,
)
from capsmith_runtime.contract.core import Cluster, Machine, read_cluster, read_machine
from capsmith_runtime.contract.machine_pool import PoolFacts, build_common_status
from capsmith_runtime.contract.model import Condition, FailureDomain, Object, ObjectRef
from capsmith_runtime.contract.status_writer import (
    READY_FIELD,
    ClusterFacts,
    MachineFacts,
    add_endpoint,
    build_addresses,
    set_extra_fields,
    set_feature_field,
    set_or_drop,
)


def read_reference(reference: Object) -> ObjectRef | None:
    """Return a reference; None if it names no object."""
    name = metadata.text(reference, "name")
    if not name:
        return None
    group = metadata.text(reference, "apiGroup")
    return ObjectRef(group, metadata.text(reference, "kind"), name)


def build_reference(obj: Object) -> dict[str, Any]:
    """Return a reference to an object."""
    group = metadata.text(obj, "apiVersion").partition("/")[0]
    return {"apiGroup": group, "kind": obj["kind"], "name": metadata.name(obj)}


class CoreV1Beta2:
    """A :class:`.core.CoreReader` for v1beta2."""

    version = "v1beta2"

    def cluster(self, obj: Object) -> Cluster:
        """Return the view of a Cluster."""
        done = metadata.mapping(obj, "status", "initialization")
        return read_cluster(
            obj,
            infrastructure_provisioned=done.get("infrastructureProvisioned") is True,
            control_plane_initialized=done.get("controlPlaneInitialized") is True,
            infrastructure=_infrastructure(obj),
        )

    def machine(self, obj: Object) -> Machine:
        """Return the view of a Machine."""
        return read_machine(obj, infrastructure=_infrastructure(obj))


def _infrastructure(obj: Object) -> ObjectRef | None:
    return read_reference(metadata.mapping(obj, "spec", "infrastructureRef"))


class V1Beta2Status:
    """The :class:`.StatusWriter` for contract v1beta2."""

    contract = "v1beta2"

    def with_failure(self, status: Object, reason: str, message: str) -> dict[str, Any]:
        """Return the status unchanged: conditions report terminal failures (IC-13)."""
        return dict(status)

    def without_failure(self, status: Object) -> dict[str, Any]:
        """Return the status unchanged: it has no fields for terminal failures (IC-13)."""
        return dict(status)

    def provisioned(self, obj: Object) -> bool:
        """Return ``status.initialization.provisioned`` (IC-05, IM-03)."""
        return metadata.lookup(obj, "status", "initialization", "provisioned") is True

    def cluster_spec(self, obj: Object, facts: ClusterFacts, features: Set[str]) -> dict[str, Any]:
        """Set ``controlPlaneEndpoint`` (IC-02)."""
        return add_endpoint(obj, facts.endpoint, features)

    def cluster_status(
        self, obj: Object, facts: ClusterFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Set provisioned and the list of failure domains (IC-08)."""
        status = _provisioned_status(obj, features)
        status = self.with_failure_domains(status, facts.failure_domains, features)
        return set_extra_fields(status, facts.extra)

    def with_failure_domains(
        self, status: Object, domains: Sequence[FailureDomain], features: Set[str]
    ) -> dict[str, Any]:
        """Set the failure domains (IC-08)."""
        return set_feature_field(status, "failureDomains", _failure_domains(domains), features)

    def machine_spec(self, obj: Object, facts: MachineFacts, features: Set[str]) -> dict[str, Any]:
        """Set ``providerID`` (IM-01)."""
        return {**(obj.get("spec") or {}), "providerID": facts.provider_id}

    def machine_status(
        self, obj: Object, facts: MachineFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Set provisioned, the addresses and the actual failure domain (IM-05)."""
        status = _provisioned_status(obj, features)
        if "addresses" in features:
            set_or_drop(status, "addresses", build_addresses(facts.addresses))
        if "failureDomain" in features:
            set_or_drop(status, "failureDomain", facts.failure_domain)
        if "interruptible" in features:
            set_or_drop(status, "interruptible", facts.interruptible or None)
        return set_extra_fields(status, facts.extra)

    def conditions(
        self, obj: Object, status: Object, wanted: Sequence[Condition], now: str
    ) -> dict[str, Any]:
        """Write conditions as metav1.Condition (ST-01)."""
        return {
            **status,
            "conditions": conditions.merge(
                metadata.items(obj, "status", "conditions"),
                wanted,
                generation=metadata.generation(obj),
                now=now,
            ),
        }


def _provisioned_status(obj: Object, features: Set[str]) -> dict[str, Any]:
    status = dict(obj.get("status") or {})
    status["initialization"] = {**(status.get("initialization") or {}), "provisioned": True}
    if READY_FIELD in features:
        status["ready"] = True
    return status


def _failure_domains(domains: Sequence[FailureDomain]) -> list[dict[str, Any]]:
    listed = []
    for domain in sorted(domains, key=lambda domain: domain.name):
        entry: dict[str, Any] = {"name": domain.name, "controlPlane": domain.control_plane}
        set_or_drop(entry, "attributes", dict(domain.attributes))
        listed.append(entry)
    return listed


class V1Beta2BootstrapStatus:
    """A :class:`~capsmith_runtime.contract.bootstrap.BootstrapStatusWriter`."""

    contract = "v1beta2"

    def created(self, obj: Object) -> bool:
        """Return whether ``dataSecretCreated`` and the Secret's name are set (BC-01, BC-03)."""
        created = metadata.lookup(obj, "status", "initialization", "dataSecretCreated")
        return created is True and bool(data_secret_name(obj))

    def created_status(
        self, obj: Object, secret: str, extra: Mapping[str, Any], features: Set[str]
    ) -> dict[str, Any]:
        """Return the status with the flag and the name of the Secret, set together."""
        status = {**(obj.get("status") or {}), "dataSecretName": secret}
        flags = metadata.mapping(status, "initialization")
        status["initialization"] = {**flags, "dataSecretCreated": True}
        if READY_FIELD in features:
            status["ready"] = True
        return set_extra_fields(status, extra)


class V1Beta2PoolStatus:
    """The :class:`.PoolStatusWriter` for contract v1beta2."""

    contract = "v1beta2"

    def provisioned(self, obj: Object) -> bool:
        """Return whether the pool is reported as provisioned, in either field (MP-01, MP-02)."""
        new = metadata.lookup(obj, "status", "initialization", "provisioned")
        return new is True or metadata.lookup(obj, "status", "ready") is True

    def status(self, obj: Object, facts: PoolFacts, features: Set[str]) -> dict[str, Any]:
        """Return the whole status, without conditions.

        ``ready`` and ``initialization.provisioned`` have the same value: the contract requires the
        second, and every core so far reads the first (MP-01, MP-02).
        """
        status = build_common_status(obj, facts, features)
        if facts.provisioned:
            before = status.get("initialization") or {}
            status["initialization"] = {**before, "provisioned": True}
        return status


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
        return set_extra_fields(status, facts.extra)

    def conditions(self, conditions: Sequence[Condition]) -> Sequence[Condition]:
        """Return all conditions; Available replaces Ready (CP-26)."""
        return conditions

    def absent(self, conditions: Sequence[Condition]) -> frozenset[str]:
        """Return nothing: every condition is always present."""
        return frozenset()


class CoreMachinesV1Beta2:
    """Implements CoreMachines for v1beta2."""

    version = "v1beta2"

    def read(self, obj: Object) -> ControlPlaneMachine:
        """Return the view of a Machine."""
        return read_control_plane_machine(
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
        obj = build_machine(
            draft,
            version=self.version,
            bootstrap=build_reference(draft.bootstrap),
            infrastructure=build_reference(draft.infrastructure),
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
            listed = conditions.remove(listed, name)
        generation = metadata.generation(obj)
        return {
            **metadata.mapping(obj, "status"),
            "conditions": conditions.merge(listed, present, generation=generation, now=now),
        }
