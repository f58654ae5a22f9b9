"""A component is what clusterctl installs: one provider with its own manager."""

from __future__ import annotations

from dataclasses import dataclass

from capsmith_runtime.reconcile.groups import ControllerGroupFactory


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One provider of a repository, with its own manager, namespace and permissions."""

    label: str
    """The provider's manifest label, such as ``infrastructure-acme``."""
    namespace: str
    """The namespace of the manager, unless POD_NAMESPACE names another."""
    contract: str
    """The contract version whose shape is written: ``v1beta1`` or ``v1beta2``."""
    groups: tuple[ControllerGroupFactory, ...] = ()
    """Factories of the controllers that the manager runs."""
    watches_machines: bool = True
    """Whether any controller watches Machines."""
    watches_clusters: bool = True
    """Whether any controller watches Clusters."""
