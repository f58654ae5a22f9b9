"""Status of a pool in contract v1beta2, with the older field that core still reads."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.machine_pool_facts import PoolFacts, common_status
from capsmith_runtime.contract.model import Object


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
        status = common_status(obj, facts, features)
        if facts.provisioned:
            before = status.get("initialization") or {}
            status["initialization"] = {**before, "provisioned": True}
        return status
