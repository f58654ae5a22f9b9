"""Spec and status in contract v1beta1."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, Final

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.constants import PAUSED_CONDITION
from capsmith_runtime.contract.model import Condition, FailureDomain, Object, shortened
from capsmith_runtime.contract.status_writer import (
    ClusterFacts,
    MachineFacts,
    address_list,
    set_or_drop,
    with_endpoint,
    with_extra,
    with_feature,
)

_FAILURE: Final = ("failureReason", "failureMessage")


class V1Beta1Status:
    """The :class:`.StatusWriter` for contract v1beta1."""

    contract = "v1beta1"

    def with_failure(self, status: Object, reason: str, message: str) -> dict[str, Any]:
        """Set ``failureReason`` and ``failureMessage`` (IC-12, IM-11, BC-10, CP-27)."""
        return {**status, "failureReason": reason, "failureMessage": shortened(message or reason)}

    def without_failure(self, status: Object) -> dict[str, Any]:
        """Remove ``failureReason`` and ``failureMessage``."""
        return {key: value for key, value in status.items() if key not in _FAILURE}

    def provisioned(self, obj: Object) -> bool:
        """Return ``status.ready`` (IC-06, IM-04)."""
        return metadata.lookup(obj, "status", "ready") is True

    def cluster_spec(self, obj: Object, facts: ClusterFacts, features: Set[str]) -> dict[str, Any]:
        """Set ``controlPlaneEndpoint`` (IC-03)."""
        return with_endpoint(obj, facts.endpoint, features)

    def cluster_status(
        self, obj: Object, facts: ClusterFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Set ready and the failure domains, an object keyed by name (IC-09)."""
        status = {**(obj.get("status") or {}), "ready": True}
        status = self.with_failure_domains(status, facts.failure_domains, features)
        return with_extra(status, facts.extra)

    def with_failure_domains(
        self, status: Object, domains: Sequence[FailureDomain], features: Set[str]
    ) -> dict[str, Any]:
        """Set the failure domains (IC-09)."""
        return with_feature(status, "failureDomains", _failure_domains(domains), features)

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
            set_or_drop(status, "addresses", address_list(facts.addresses))
        if "interruptible" in features:
            set_or_drop(status, "interruptible", facts.interruptible or None)
        return with_extra(status, facts.extra)

    def conditions(
        self, obj: Object, status: Object, wanted: Sequence[Condition], now: str
    ) -> dict[str, Any]:
        """Write conditions in the form of contract v1beta1 (ST-02).

        A False condition reports an error there, so an object that is not paused has no Paused.
        """
        shown = [c for c in wanted if c.type != PAUSED_CONDITION or c.status]
        existing = metadata.items(obj, "status", "conditions")
        if len(shown) != len(wanted):
            existing = conditions.without(existing, PAUSED_CONDITION)
        return {**status, "conditions": conditions.merged_old_shape(existing, shown, now=now)}


def _failure_domains(domains: Sequence[FailureDomain]) -> dict[str, Any]:
    return {
        domain.name: {
            "controlPlane": domain.control_plane,
            **({"attributes": dict(domain.attributes)} if domain.attributes else {}),
        }
        for domain in sorted(domains, key=lambda domain: domain.name)
    }
