"""The v1beta1 format for core's objects and each provider type's status."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, Final

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.constants import PAUSED_CONDITION
from capsmith_runtime.contract.core import Cluster, Machine, read_cluster, read_machine
from capsmith_runtime.contract.model import (
    Condition,
    FailureDomain,
    Object,
    ObjectRef,
    shorten_message,
)
from capsmith_runtime.contract.status_writer import (
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
    group = metadata.text(reference, "apiVersion").partition("/")[0]
    return ObjectRef(group, metadata.text(reference, "kind"), name)


def build_reference(obj: Object) -> dict[str, Any]:
    """Return a reference to ``obj`` with its API version and namespace."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata.name(obj),
        "namespace": metadata.namespace(obj),
    }


class CoreV1Beta1:
    """Reads Clusters and Machines in cluster.x-k8s.io/v1beta1."""

    version = "v1beta1"

    def read_cluster(self, obj: Object) -> Cluster:
        """Return the Cluster fields that providers use, read from the API object."""
        return read_cluster(
            obj,
            infrastructure_provisioned=(
                metadata.lookup(obj, "status", "infrastructureReady") is True
            ),
            control_plane_initialized=_has_condition(obj, "ControlPlaneInitialized"),
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


def _has_condition(obj: Object, name: str) -> bool:
    """Return whether a condition is True.

    ``status.controlPlaneReady`` is not used, because it changes with the control plane's health.
    """
    entry = conditions.find(metadata.items(obj, "status", "conditions"), name)
    return entry is not None and entry.get("status") == "True"


_FAILURE: Final = ("failureReason", "failureMessage")


class V1Beta1Status:
    """Writes the spec and status of a provider's objects in contract v1beta1's format."""

    contract = "v1beta1"

    def add_failure(self, status: Object, reason: str, message: str) -> dict[str, Any]:
        """Return the status with ``failureReason`` and ``failureMessage``.

        See IC-12, IM-11, BC-10 and CP-27.
        """
        return {
            **status,
            "failureReason": reason,
            "failureMessage": shorten_message(message or reason),
        }

    def remove_failure(self, status: Object) -> dict[str, Any]:
        """Return the status without ``failureReason`` and ``failureMessage``."""
        return {key: value for key, value in status.items() if key not in _FAILURE}

    def is_provisioned(self, obj: Object) -> bool:
        """Return whether ``status.ready`` is true (IC-06, IM-04)."""
        return metadata.lookup(obj, "status", "ready") is True

    def build_cluster_spec(
        self, obj: Object, facts: ClusterFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the spec with ``controlPlaneEndpoint`` (IC-03)."""
        return add_endpoint(obj, facts.endpoint, features)

    def build_cluster_status(
        self, obj: Object, facts: ClusterFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the status with ``ready`` and the failure domains, keyed by name (IC-09)."""
        status = {**(obj.get("status") or {}), "ready": True}
        status = self.set_failure_domains(status, facts.failure_domains, features)
        return set_extra_fields(status, facts.extra)

    def set_failure_domains(
        self, status: Object, domains: Sequence[FailureDomain], features: Set[str]
    ) -> dict[str, Any]:
        """Return the status with the failure domains as an object keyed by name (IC-09)."""
        return set_feature_field(status, "failureDomains", _failure_domains(domains), features)

    def build_machine_spec(
        self, obj: Object, facts: MachineFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the spec with ``providerID`` and the failure domain; core reads both (IM-07)."""
        spec = {**(obj.get("spec") or {}), "providerID": facts.provider_id}
        if "failureDomain" in features and facts.failure_domain:
            spec["failureDomain"] = facts.failure_domain
        return spec

    def build_machine_status(
        self, obj: Object, facts: MachineFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the complete status with ``ready`` and the optional fields that the kind has."""
        status = {**(obj.get("status") or {}), "ready": True}
        if "addresses" in features:
            set_or_drop(status, "addresses", build_addresses(facts.addresses))
        if "interruptible" in features:
            set_or_drop(status, "interruptible", facts.interruptible or None)
        return set_extra_fields(status, facts.extra)

    def merge_conditions(
        self, obj: Object, status: Object, wanted: Sequence[Condition], now: str
    ) -> dict[str, Any]:
        """Return the status with conditions in the v1beta1 format (ST-02).

        In this contract version a False condition reports an error, so an object that is not paused
        has no Paused condition.
        """
        # A False condition would report an error to users, although the object is merely not
        # paused.
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


V1BETA1: Final = ContractFormat(CoreV1Beta1(), V1Beta1Status())
