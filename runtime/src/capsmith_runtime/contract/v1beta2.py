"""The v1beta2 format for core's objects and each provider type's status."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, Final

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.core import Cluster, Machine, read_cluster, read_machine
from capsmith_runtime.contract.model import Condition, FailureDomain, Object, ObjectRef
from capsmith_runtime.contract.status_writer import (
    READY_FIELD,
    ClusterFacts,
    ContractFormat,
    MachineFacts,
    add_endpoint,
    build_addresses,
    set_extra_fields,
    set_feature_field,
    set_or_drop,
)


def read_reference(reference: Object) -> ObjectRef | None:
    """Return the reference as an ObjectRef, or None if it names no object."""
    name = metadata.text(reference, "name")
    if not name:
        return None
    group = metadata.text(reference, "apiGroup")
    return ObjectRef(group, metadata.text(reference, "kind"), name)


def build_reference(obj: Object) -> dict[str, Any]:
    """Return a reference to ``obj`` with its API group."""
    group = metadata.text(obj, "apiVersion").partition("/")[0]
    return {"apiGroup": group, "kind": obj["kind"], "name": metadata.name(obj)}


class CoreV1Beta2:
    """Reads Clusters and Machines in cluster.x-k8s.io/v1beta2."""

    version = "v1beta2"

    def read_cluster(self, obj: Object) -> Cluster:
        """Return the Cluster fields that providers use, read from the API object."""
        done = metadata.mapping(obj, "status", "initialization")
        return read_cluster(
            obj,
            infrastructure_provisioned=done.get("infrastructureProvisioned") is True,
            control_plane_initialized=done.get("controlPlaneInitialized") is True,
            infrastructure=_infrastructure(obj),
        )

    def read_machine(self, obj: Object) -> Machine:
        """Return the Machine fields that providers use, read from the API object."""
        return read_machine(obj, infrastructure=_infrastructure(obj))

    def read_infrastructure(self, obj: Object) -> ObjectRef | None:
        """Return a Cluster's or Machine's reference to its infrastructure, or None if not set."""
        return _infrastructure(obj)


def _infrastructure(obj: Object) -> ObjectRef | None:
    return read_reference(metadata.mapping(obj, "spec", "infrastructureRef"))


class V1Beta2Status:
    """Writes the spec and status of a provider's objects in contract v1beta2's format."""

    contract = "v1beta2"

    def add_failure(self, status: Object, reason: str, message: str) -> dict[str, Any]:
        """Return the status unchanged: in v1beta2, conditions report terminal failures (IC-13)."""
        return dict(status)

    def remove_failure(self, status: Object) -> dict[str, Any]:
        """Return the status unchanged: v1beta2 has no fields for terminal failures (IC-13)."""
        return dict(status)

    def is_provisioned(self, obj: Object) -> bool:
        """Return whether ``status.initialization.provisioned`` is true (IC-05, IM-03)."""
        return metadata.lookup(obj, "status", "initialization", "provisioned") is True

    def build_cluster_spec(
        self, obj: Object, facts: ClusterFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the spec with ``controlPlaneEndpoint`` (IC-02)."""
        return add_endpoint(obj, facts.endpoint, features)

    def build_cluster_status(
        self, obj: Object, facts: ClusterFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the status with ``provisioned`` and the list of failure domains (IC-08)."""
        status = _provisioned_status(obj, features)
        status = self.set_failure_domains(status, facts.failure_domains, features)
        return set_extra_fields(status, facts.extra)

    def set_failure_domains(
        self, status: Object, domains: Sequence[FailureDomain], features: Set[str]
    ) -> dict[str, Any]:
        """Return the status with the list of failure domains (IC-08)."""
        return set_feature_field(status, "failureDomains", _failure_domains(domains), features)

    def build_machine_spec(
        self, obj: Object, facts: MachineFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the spec with ``providerID`` (IM-01)."""
        return {**(obj.get("spec") or {}), "providerID": facts.provider_id}

    def build_machine_status(
        self, obj: Object, facts: MachineFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the complete status with ``provisioned`` and the optional fields that the kind has
        (IM-05)."""
        status = _provisioned_status(obj, features)
        if "addresses" in features:
            set_or_drop(status, "addresses", build_addresses(facts.addresses))
        if "failureDomain" in features:
            set_or_drop(status, "failureDomain", facts.failure_domain)
        if "interruptible" in features:
            set_or_drop(status, "interruptible", facts.interruptible or None)
        return set_extra_fields(status, facts.extra)

    def merge_conditions(
        self, obj: Object, status: Object, wanted: Sequence[Condition], now: str
    ) -> dict[str, Any]:
        """Return the status with conditions in the format of metav1.Condition (ST-01)."""
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


V1BETA2: Final = ContractFormat(CoreV1Beta2(), V1Beta2Status())
