"""IPAddressClaims and IPAddresses, independent of the served version of ipam.cluster.x-k8s.io.

Core defines both kinds, but none of its controllers acts on them (IP-01).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.constants import CLUSTER_NAME_LABEL, READY_CONDITION
from capsmith_runtime.contract.model import Condition, Object, ObjectRef

PROTECT_ADDRESS: Final = "ipam.cluster.x-k8s.io/protect-address"
"""Finalizer that keeps an IPAddress while the address is in use (IP-09)."""

REASON_ALLOCATION_FAILED: Final = "AllocationFailed"
REASON_POOL_NOT_READY: Final = "PoolNotReady"
REASON_POOL_EXHAUSTED: Final = "PoolExhausted"
"""Condition reason for an exhausted pool, the same as in other IPAM providers (IP-05)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IPAddressClaim:
    """Read-only view of a claim for an IP address."""

    name: str
    namespace: str
    uid: str
    cluster_name: str
    """Name of the Cluster that the claim belongs to, or an empty string if it belongs to none."""
    pool: ObjectRef
    address_name: str
    """Name of the IPAddress in the claim's status, or an empty string until it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IPAddress:
    """Read-only view of an IPAddress, which holds an allocated address."""

    name: str
    namespace: str
    address: str
    prefix: int
    gateway: str | None
    claim_name: str
    pool: ObjectRef


class IpamDialect(ABC):
    """Reads and writes objects in one version of ipam.cluster.x-k8s.io (IP-07)."""

    version: ClassVar[str]

    def read_claim(self, obj: Object) -> IPAddressClaim:
        """Return the IPAddressClaim fields that providers use.

        The Cluster's name comes from the spec or, if it is not set there, from the label.
        """
        return IPAddressClaim(
            name=metadata.name(obj),
            namespace=metadata.namespace(obj),
            uid=metadata.uid(obj),
            cluster_name=metadata.text(obj, "spec", "clusterName")
            or metadata.labels(obj).get(CLUSTER_NAME_LABEL, ""),
            pool=_pool(obj),
            address_name=metadata.text(obj, "status", "addressRef", "name"),
        )

    def read_address(self, obj: Object) -> IPAddress:
        """Return the IPAddress fields that providers use."""
        prefix = metadata.lookup(obj, "spec", "prefix")
        return IPAddress(
            name=metadata.name(obj),
            namespace=metadata.namespace(obj),
            address=metadata.text(obj, "spec", "address"),
            prefix=prefix if isinstance(prefix, int) else 0,
            gateway=metadata.text(obj, "spec", "gateway") or None,
            claim_name=metadata.text(obj, "spec", "claimRef", "name"),
            pool=_pool(obj),
        )

    def build_claim_spec(self, pool: ObjectRef, cluster_name: str) -> dict[str, Any]:
        """Return the spec of a claim on ``pool`` for the Cluster ``cluster_name`` (IP-05)."""
        cluster = {"clusterName": cluster_name} if cluster_name else {}
        return {**cluster, "poolRef": _reference(pool)}

    def build_address_spec(self, address: IPAddress) -> dict[str, Any]:
        """Return the spec of a new address, with its prefix length even if that is 0 (IP-06)."""
        return {
            "address": address.address,
            "prefix": address.prefix,
            **({"gateway": address.gateway} if address.gateway else {}),
            "claimRef": {"name": address.claim_name},
            "poolRef": _reference(address.pool),
        }

    def set_address_ref(self, obj: Object, address_name: str) -> dict[str, Any]:
        """Return a claim's status with a reference to the IPAddress called ``address_name``."""
        return {**metadata.mapping(obj, "status"), "addressRef": {"name": address_name}}

    def merge_conditions(
        self, obj: Object, status: Object, wanted: Sequence[Condition], now: str
    ) -> dict[str, Any]:
        """Return ``status`` with the ``wanted`` Ready condition merged in (IP-05).

        Claims have no other conditions.  ``now`` is a time in RFC 3339.
        """
        conditions = [condition for condition in wanted if condition.type == READY_CONDITION]
        return {**status, "conditions": self._merged(obj, conditions, now)}

    @abstractmethod
    def _merged(
        self, obj: Object, wanted: Sequence[Condition], now: str
    ) -> list[dict[str, Any]]: ...


def _pool(obj: Object) -> ObjectRef:
    """Return ``spec.poolRef``.

    In v1beta1 the group may be missing; such a reference matches no provider's pool.
    """
    reference = metadata.mapping(obj, "spec", "poolRef")
    return ObjectRef(
        metadata.text(reference, "apiGroup"),
        metadata.text(reference, "kind"),
        metadata.text(reference, "name"),
    )


def _reference(pool: ObjectRef) -> dict[str, str]:
    return {"apiGroup": pool.group, "kind": pool.kind, "name": pool.name}


# Core ships the CRDs of its groups in one release, and every release so far gave this group the
# same versions as cluster.x-k8s.io, so the version that was chosen at startup applies here too.
class IpamV1Beta1(IpamDialect):
    """IpamDialect for v1beta1, with conditions in the v1beta1 format (ST-02)."""

    version = "v1beta1"

    def _merged(self, obj: Object, wanted: Sequence[Condition], now: str) -> list[dict[str, Any]]:
        existing = metadata.items(obj, "status", "conditions")
        return conditions.merge_old_shape(existing, wanted, now=now)


class IpamV1Beta2(IpamDialect):
    """IpamDialect for v1beta2, with metav1 conditions (ST-01) and a complete poolRef."""

    version = "v1beta2"

    def _merged(self, obj: Object, wanted: Sequence[Condition], now: str) -> list[dict[str, Any]]:
        existing = metadata.items(obj, "status", "conditions")
        return conditions.merge(existing, wanted, generation=metadata.generation(obj), now=now)


DIALECTS: Final[Mapping[str, IpamDialect]] = {
    dialect.version: dialect for dialect in (IpamV1Beta2(), IpamV1Beta1())
}
"""The IpamDialect for each version of ipam.cluster.x-k8s.io."""
