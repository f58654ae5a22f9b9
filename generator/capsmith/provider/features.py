"""Features of kinds: what an author may switch, and what is on by default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from capsmith.provider.control_planes import MANAGED
from capsmith.provider.draft import CREDENTIALS_FEATURE
from capsmith.provider.workload import WORKLOAD_CLIENT

if TYPE_CHECKING:
    from capsmith.contract.model import Contract
    from capsmith.provider_yaml.sections import KindSpec

_OFF_BY_DEFAULT = frozenset(
    {"interruptible", "capacity", "addressesFromPools", "externalManagedControlPlane"}
) | {WORKLOAD_CLIENT, "observedGeneration", "ready"}
_WITHOUT_FIELD = {"InfraCluster": (WORKLOAD_CLIENT,), "InfraMachine": (WORKLOAD_CLIENT,)}
"""Role -> features that no field of the contract has."""
_OFF_BY_SHAPE = {
    # The InfraCluster gives the endpoint of machines, the control plane itself that of a service.
    ("ControlPlane", False): frozenset({"controlPlaneEndpoint"}),
    ("ControlPlane", True): frozenset({"machines", "replicas", "rolloutAfter"}),
    ("InfraMachinePool", False): frozenset({"machines"}),
}
"""(role, managed) -> features that are off unless the author switches them on."""


def features(described: KindSpec, contracts: Iterable[Contract]) -> frozenset[str]:
    """Return what the author switched, otherwise what the shape of the kind says."""
    switched = described.features or {}
    managed = switched.get(MANAGED, False)
    off = _OFF_BY_DEFAULT | _OFF_BY_SHAPE.get((described.implements, managed), frozenset())
    known = _known_features(described.implements, contracts)
    return frozenset(feature for feature in known if switched.get(feature, feature not in off))


def switchable(described: KindSpec, contracts: Iterable[Contract]) -> frozenset[str]:
    """Return the features to compare with those that the author switched.

    Where nothing is switched, contracts that the provider does not follow stay unread.
    """
    return _known_features(described.implements, contracts) if described.features else frozenset()


def _known_features(role: str, contracts: Iterable[Contract]) -> frozenset[str]:
    """Return the features of a role and its template that an author may switch."""
    shapes = [
        contract.types[name]
        for contract in contracts
        for name in (role, f"{role}Template")
        if name in contract.types
    ]
    fields = [f for shape in shapes for f in (*shape.spec.values(), *shape.status.values())]
    known = frozenset(field.feature for field in fields) - {"", CREDENTIALS_FEATURE}
    return known | frozenset(_WITHOUT_FIELD.get(role, ()))
