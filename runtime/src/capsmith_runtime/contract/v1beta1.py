"""The shapes of version v1beta1: core's objects, and the status of each kind of provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final

from capsmith_runtime.contract import conditions, metadata, times
from capsmith_runtime.contract.bootstrap import data_secret_name
from capsmith_runtime.contract.constants import PAUSED_CONDITION, READY_CONDITION
from capsmith_runtime.contract.control_plane import (
    AVAILABLE,
    DEFAULT_DELETION_SECONDS,
    NEGATIVE,
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
from capsmith_runtime.contract.model import (
    Condition,
    FailureDomain,
    Object,
    ObjectRef,
    shorten_message,
)
from capsmith_runtime.contract.status_writer import (
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
    group = metadata.text(reference, "apiVersion").partition("/")[0]
    return ObjectRef(group, metadata.text(reference, "kind"), name)


def build_reference(obj: Object) -> dict[str, Any]:
    """Return a reference to an object."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata.name(obj),
        "namespace": metadata.namespace(obj),
    }


class CoreV1Beta1:
    """A :class:`.core.CoreReader` for v1beta1."""

    version = "v1beta1"

    def cluster(self, obj: Object) -> Cluster:
        """Return the view of a Cluster."""
        return read_cluster(
            obj,
            infrastructure_provisioned=(
                metadata.lookup(obj, "status", "infrastructureReady") is True
            ),
            control_plane_initialized=_has_condition(obj, "ControlPlaneInitialized"),
            infrastructure=_infrastructure(obj),
        )

    def machine(self, obj: Object) -> Machine:
        """Return the view of a Machine."""
        return read_machine(obj, infrastructure=_infrastructure(obj))


def _infrastructure(obj: Object) -> ObjectRef | None:
    return read_reference(metadata.mapping(obj, "spec", "infrastructureRef"))


def _has_condition(obj: Object, name: str) -> bool:
    """Return whether a condition is True; ``status.controlPlaneReady`` would flip with health."""
    entry = conditions.find(metadata.items(obj, "status", "conditions"), name)
    return entry is not None and entry.get("status") == "True"


_FAILURE: Final = ("failureReason", "failureMessage")


class V1Beta1Status:
    """The :class:`.StatusWriter` for contract v1beta1."""

    contract = "v1beta1"

    def with_failure(self, status: Object, reason: str, message: str) -> dict[str, Any]:
        """Set ``failureReason`` and ``failureMessage`` (IC-12, IM-11, BC-10, CP-27)."""
        return {
            **status,
            "failureReason": reason,
            "failureMessage": shorten_message(message or reason),
        }

    def without_failure(self, status: Object) -> dict[str, Any]:
        """Remove ``failureReason`` and ``failureMessage``."""
        return {key: value for key, value in status.items() if key not in _FAILURE}

    def provisioned(self, obj: Object) -> bool:
        """Return ``status.ready`` (IC-06, IM-04)."""
        return metadata.lookup(obj, "status", "ready") is True

    def cluster_spec(self, obj: Object, facts: ClusterFacts, features: Set[str]) -> dict[str, Any]:
        """Set ``controlPlaneEndpoint`` (IC-03)."""
        return add_endpoint(obj, facts.endpoint, features)

    def cluster_status(
        self, obj: Object, facts: ClusterFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Set ready and the failure domains, an object keyed by name (IC-09)."""
        status = {**(obj.get("status") or {}), "ready": True}
        status = self.with_failure_domains(status, facts.failure_domains, features)
        return set_extra_fields(status, facts.extra)

    def with_failure_domains(
        self, status: Object, domains: Sequence[FailureDomain], features: Set[str]
    ) -> dict[str, Any]:
        """Set the failure domains (IC-09)."""
        return set_feature_field(status, "failureDomains", _failure_domains(domains), features)

    def machine_spec(self, obj: Object, facts: MachineFacts, features: Set[str]) -> dict[str, Any]:
        """Set ``providerID``, and the failure domain, which core reads from the spec (IM-07)."""
        spec = {**(obj.get("spec") or {}), "providerID": facts.provider_id}
        if "failureDomain" in features and facts.failure_domain:
            spec["failureDomain"] = facts.failure_domain
        return spec

    def machine_status(
        self, obj: Object, facts: MachineFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Set ready and addresses."""
        status = {**(obj.get("status") or {}), "ready": True}
        if "addresses" in features:
            set_or_drop(status, "addresses", build_addresses(facts.addresses))
        if "interruptible" in features:
            set_or_drop(status, "interruptible", facts.interruptible or None)
        return set_extra_fields(status, facts.extra)

    def conditions(
        self, obj: Object, status: Object, wanted: Sequence[Condition], now: str
    ) -> dict[str, Any]:
        """Write conditions in the form of contract v1beta1 (ST-02).

        A False condition reports an error there, so an object that is not paused has no Paused.
        """
        shown = [c for c in wanted if c.type != PAUSED_CONDITION or c.status]
        existing = metadata.items(obj, "status", "conditions")
        if len(shown) != len(wanted):
            existing = conditions.remove(existing, PAUSED_CONDITION)
        return {**status, "conditions": conditions.merge_old_shape(existing, shown, now=now)}


def _failure_domains(domains: Sequence[FailureDomain]) -> dict[str, Any]:
    return {
        domain.name: {
            "controlPlane": domain.control_plane,
            **({"attributes": dict(domain.attributes)} if domain.attributes else {}),
        }
        for domain in sorted(domains, key=lambda domain: domain.name)
    }


class V1Beta1BootstrapStatus:
    """A :class:`~capsmith_runtime.contract.bootstrap.BootstrapStatusWriter`."""

    contract = "v1beta1"

    def created(self, obj: Object) -> bool:
        """Return whether ``status.ready`` and the name of the Secret are set (BC-02, BC-04)."""
        return metadata.lookup(obj, "status", "ready") is True and bool(data_secret_name(obj))

    def created_status(
        self, obj: Object, secret: str, extra: Mapping[str, Any], features: Set[str]
    ) -> dict[str, Any]:
        """Return the status with ready and the name of the Secret, set together."""
        status = {**(obj.get("status") or {}), "dataSecretName": secret, "ready": True}
        return set_extra_fields(status, extra)


class V1Beta1PoolStatus:
    """The :class:`.PoolStatusWriter` for contract v1beta1."""

    contract = "v1beta1"

    def provisioned(self, obj: Object) -> bool:
        """Return whether the pool is reported as provisioned: ``status.ready`` (MP-01)."""
        return metadata.lookup(obj, "status", "ready") is True

    def status(self, obj: Object, facts: PoolFacts, features: Set[str]) -> dict[str, Any]:
        """Return the whole status, without conditions."""
        return build_common_status(obj, facts, features)


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
                drain_seconds=times.parse_seconds(template.get("nodeDrainTimeout")),
                volume_detach_seconds=times.parse_seconds(template.get("nodeVolumeDetachTimeout")),
                deletion_seconds=times.parse_seconds(template.get("nodeDeletionTimeout")),
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
        return set_extra_fields(status, facts.extra)

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


class CoreMachinesV1Beta1:
    """Implements CoreMachines for v1beta1."""

    version = "v1beta1"

    def read(self, obj: Object) -> ControlPlaneMachine:
        """Return the view; core from v1.9 writes metav1 conditions beside the old ones."""
        old = metadata.items(obj, "status", "conditions")
        new = metadata.items(obj, "status", "v1beta2", "conditions")
        return read_control_plane_machine(
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
        obj = build_machine(
            draft,
            version=self.version,
            bootstrap=build_reference(draft.bootstrap),
            infrastructure=build_reference(draft.infrastructure),
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
            if times.parse_seconds(spec.get(name)) != seconds:
                set_or_remove(
                    spec, name, None if seconds is None else times.format_seconds(seconds)
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
            new, old = conditions.remove(new, name), conditions.remove(old, name)
        generation = metadata.generation(obj)
        listed = conditions.merge(new, present, generation=generation, now=now)
        status["v1beta2"] = {**metadata.mapping(status, "v1beta2"), "conditions": listed}
        status["conditions"] = list(old)
        return status
