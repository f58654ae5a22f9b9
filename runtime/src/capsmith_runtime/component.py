"""Components: providers that clusterctl installs, each with its own manager."""

from __future__ import annotations

from dataclasses import dataclass, replace

from capsmith_runtime.reconcile.groups import ControllerGroupFactory
from capsmith_runtime.reconcile.permissions import PolicyRule
from capsmith_runtime.reconcile.watched_kinds import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A component that clusterctl installs: its controllers, permissions and watches, for one
    manager."""

    label: str
    """The provider's manifest label, such as ``infrastructure-acme``."""
    namespace: str
    """Namespace of the manager, unless POD_NAMESPACE is set."""
    contract: str
    """The contract version in which spec and status are written: ``v1beta1`` or ``v1beta2``."""
    groups: tuple[ControllerGroupFactory, ...] = ()
    """Factories for the controllers that the manager runs."""
    permissions: tuple[PolicyRule, ...] = ()
    """Permissions of author code: for the provider's kinds, and the rules in provider.yaml."""
    watches: tuple[Watch, ...] = ()
    """Other kinds whose changes enqueue the provider's objects."""
    watches_machines: bool = True
    """Whether any controller watches Machines."""
    watches_clusters: bool = True
    """Whether any controller watches Clusters."""

    def combined_with(self, *others: Component) -> Component:
        """Return a component whose manager runs the controllers of this component and ``others``.

        The label, namespace, contract, permissions and watches come from this component.
        """
        every = (self, *others)
        return replace(
            self,
            # Label, namespace and contract are those of this component: one Deployment runs all
            # groups.
            groups=tuple(group for each in every for group in each.groups),
            watches_machines=any(each.watches_machines for each in every),
            watches_clusters=any(each.watches_clusters for each in every),
        )
