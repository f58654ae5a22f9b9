"""The labels by which core and clusterctl find a CRD and the versions in it."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith.contract.model import Contract
from capsmith.provider.model import Component, Resource, Role

_MOVE_LABELS = {
    Role.IDENTITY: "move-hierarchy",
    Role.IP_POOL: "move-hierarchy",
    Role.ADDON: "move-hierarchy",
    Role.RESOURCE: "move-hierarchy",
    # Dependents of a cluster-scoped owner also stay at the source, and addresses must not.
    Role.GLOBAL_IP_POOL: "move",
}
"""What makes clusterctl move objects without owners (MV-02, MV-03, IP-11)."""
_CLUSTER_SCOPED = {Role.RESOURCE: "move"}
"""The same for roles whose kinds may be cluster-scoped."""


def contract_labels(resource: Resource) -> dict[str, str]:
    """Return contract labels with their served versions, joined by ``_`` (GEN-01, GEN-02)."""
    labels: dict[str, list[str]] = {}
    for version in resource.versions:
        if version.served:
            labels.setdefault(str(version.contract.label), []).append(str(version.name))
    return {label: "_".join(names) for label, names in sorted(labels.items())}


def labels(resource: Resource, component: Component, former: Sequence[Contract]) -> dict[str, str]:
    """Return the labels of a CRD; ``former`` are the past contracts (GEN-01, CC-26, MV-03)."""
    # A label that is left out stays on a CRD that clusterctl merges, and would name a version
    # that another label names too, or none (GEN-06); core reads an empty one as none.
    found = {str(contract.label): "" for contract in former}
    found |= {"cluster.x-k8s.io/provider": str(component.label), **contract_labels(resource)}
    move = _MOVE_LABELS | ({} if resource.namespaced else _CLUSTER_SCOPED)
    if resource.role in move:
        found[f"clusterctl.cluster.x-k8s.io/{move[resource.role]}"] = ""
    return found
