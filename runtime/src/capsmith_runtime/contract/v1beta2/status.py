"""Spec and status in contract v1beta2."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.model import Condition, FailureDomain, Object
from capsmith_runtime.contract.status_writer import (
    READY_FIELD,
    ClusterFacts,
    MachineFacts,
    address_list,
    set_or_drop,
    with_endpoint,
    with_extra,
    with_feature,
)


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
        return with_endpoint(obj, facts.endpoint, features)

    def cluster_status(
        self, obj: Object, facts: ClusterFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Set provisioned and the list of failure domains (IC-08)."""
        status = _provisioned_status(obj, features)
        status = self.with_failure_domains(status, facts.failure_domains, features)
        return with_extra(status, facts.extra)

    def with_failure_domains(
        self, status: Object, domains: Sequence[FailureDomain], features: Set[str]
    ) -> dict[str, Any]:
        """Set the failure domains (IC-08)."""
        return with_feature(status, "failureDomains", _failure_domains(domains), features)

    def machine_spec(self, obj: Object, facts: MachineFacts, features: Set[str]) -> dict[str, Any]:
        """Set ``providerID`` (IM-01)."""
        return {**(obj.get("spec") or {}), "providerID": facts.provider_id}

    def machine_status(
        self, obj: Object, facts: MachineFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Set provisioned, the addresses and the actual failure domain (IM-05)."""
        status = _provisioned_status(obj, features)
        if "addresses" in features:
            set_or_drop(status, "addresses", address_list(facts.addresses))
        if "failureDomain" in features:
            set_or_drop(status, "failureDomain", facts.failure_domain)
        if "interruptible" in features:
            set_or_drop(status, "interruptible", facts.interruptible or None)
        return with_extra(status, facts.extra)

    def conditions(
        self, obj: Object, status: Object, wanted: Sequence[Condition], now: str
    ) -> dict[str, Any]:
        """Write conditions as metav1.Condition (ST-01)."""
        return {
            **status,
            "conditions": conditions.merged(
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
