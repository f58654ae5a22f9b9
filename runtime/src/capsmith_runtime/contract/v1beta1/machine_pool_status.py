"""Status of a pool in contract v1beta1."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.machine_pool_facts import PoolFacts, common_status
from capsmith_runtime.contract.model import Object


class V1Beta1PoolStatus:
    """The :class:`.PoolStatusWriter` for contract v1beta1."""

    contract = "v1beta1"

    def provisioned(self, obj: Object) -> bool:
        """Return whether the pool is reported as provisioned: ``status.ready`` (MP-01)."""
        return metadata.lookup(obj, "status", "ready") is True

    def status(self, obj: Object, facts: PoolFacts, features: Set[str]) -> dict[str, Any]:
        """Return the whole status, without conditions."""
        return common_status(obj, facts, features)
