"""The versions of ipam.cluster.x-k8s.io and the choice between them (IP-07).

Core ships the CRDs of its groups in one release, and every release so far gave this group the same
versions as cluster.x-k8s.io, so the version that was chosen at start applies here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.ipam import IpamDialect
from capsmith_runtime.contract.model import Condition, Object


class IpamV1Beta1(IpamDialect):
    """v1beta1: conditions in the old shape (ST-02)."""

    version = "v1beta1"

    def _merged(self, obj: Object, wanted: Sequence[Condition], now: str) -> list[dict[str, Any]]:
        existing = metadata.items(obj, "status", "conditions")
        return conditions.merged_old_shape(existing, wanted, now=now)


class IpamV1Beta2(IpamDialect):
    """v1beta2: metav1 conditions (ST-01), and every part of a poolRef is required."""

    version = "v1beta2"

    def _merged(self, obj: Object, wanted: Sequence[Condition], now: str) -> list[dict[str, Any]]:
        existing = metadata.items(obj, "status", "conditions")
        return conditions.merged(existing, wanted, generation=metadata.generation(obj), now=now)


DIALECTS: Final[Mapping[str, IpamDialect]] = {
    dialect.version: dialect for dialect in (IpamV1Beta2(), IpamV1Beta1())
}
"""Dialects by version of core."""
