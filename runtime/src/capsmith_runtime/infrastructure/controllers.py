"""An infrastructure provider's controllers for clusters, machines, pools and identities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from capsmith_runtime.identity.controllers import IdentityGroup
from capsmith_runtime.infrastructure.caches import InfrastructureCaches, InfrastructureKinds
from capsmith_runtime.infrastructure.cluster import InfraClusterController
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.kinds import IdentityKind, InfraClusterKind, InfraMachineKind
from capsmith_runtime.infrastructure.machine import InfraMachineController
from capsmith_runtime.infrastructure.watches import InfrastructureWatches
from capsmith_runtime.infrastructure.workload_client import WorkloadAccessFactory
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import (
    ControllerGroup,
    CredentialsSource,
    Queues,
    Reconcile,
    Runnable,
)

AdditionalGroup = Callable[[InfrastructureContext], ControllerGroup]
"""Factory for controllers that share the infrastructure's caches and credentials."""


class TemplateController(Protocol):
    """Protocol for the controller that reconciles one kind of machine template."""

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile the machine template with this key."""
        ...


TemplateControllerFactory = Callable[
    [InfraMachineKind, Informer, InfrastructureContext], TemplateController
]
"""Factory for the controller that reconciles one machine kind's templates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfrastructureControllers:
    """Creates the controllers for an infrastructure provider's kinds."""

    clusters: tuple[InfraClusterKind, ...] = ()
    machines: tuple[InfraMachineKind, ...] = ()
    identities: tuple[IdentityKind, ...] = ()
    pools: AdditionalGroup | None = None
    """Factory for machine pool controllers: ``machine_pool.controllers.MachinePoolKinds``.

    It is None in a repository without pools, which has no copy of that package.
    """
    addresses: AdditionalGroup | None = None
    """Factory for the controllers for addresses that machines claim: ``machine_addresses``.

    Required if a kind has the field ``spec.addressesFromPools`` (IP-12).
    """
    template: TemplateControllerFactory | None = None
    """Factory for template controllers: ``machine_template.MachineTemplateController``.

    They report the capacity of machines (IM-16). Required if a kind has a template.
    """
    workload: WorkloadAccessFactory | None = None
    """Factory for workload cluster clients; required for the feature ``workloadClient``."""
    additional: tuple[AdditionalGroup, ...] = ()

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Create the controllers for one manager.

        Raises ValueError if a kind has a template but ``template`` is not set.
        """
        if self.template is None and any(kind.template for kind in self.machines):
            raise ValueError("kinds with templates need the factory of their controllers")
        kinds = InfrastructureKinds(
            clusters=self.clusters, machines=self.machines, identities=self.identities
        )
        infrastructure = InfrastructureCaches(caches, kinds)
        workload = None
        if self.workload is not None:
            workload = self.workload(context.client, caches.metrics, field_manager=context.label)
        extended = InfrastructureContext.extend(context, infrastructure, workload)
        optional = [make for make in (self.addresses, self.pools) if make is not None]
        groups = [make(extended) for make in (*optional, *self.additional)]
        return InfrastructureGroup(extended, tuple(groups), self.template)


class InfrastructureGroup(ControllerGroup):
    """Controllers for clusters, machines, templates and identities, and the optional groups."""

    def __init__(
        self,
        context: InfrastructureContext,
        groups: tuple[ControllerGroup, ...],
        template: TemplateControllerFactory | None,
    ) -> None:
        self._template = template
        self._caches = context.caches
        self._context = context
        self._groups = groups
        # The infrastructure's caches already contain its informers.
        self._identities = IdentityGroup(context.caches.identity, context.credentials, context)

    @property
    def credentials(self) -> CredentialsSource | None:
        """Return the source of credentials for other groups, or None if there are no identities."""
        return self._identities.credentials

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Return the informers for the infrastructure kinds and the optional groups."""
        informers = (informer for group in self._groups for informer in group.informers)
        return (*self._caches.informers, *informers)

    @property
    def runnables(self) -> tuple[Runnable, ...]:
        """Return the task that closes idle workload cluster clients."""
        workload = self._context.workload
        return (workload.run,) if workload is not None else ()

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Share resources with the manager's other groups, and connect the optional groups."""
        for group in self._groups:
            group.connect(groups)

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield each kind's name and reconcile function."""
        caches, context = self._caches, self._context
        for cluster in caches.kinds.clusters:
            name = cluster.resource.kind
            informer = caches.clusters[name]
            yield name, InfraClusterController(cluster, informer, context).reconcile
        for machine in caches.kinds.machines:
            name = machine.resource.kind
            informer = caches.machines[name]
            yield name, InfraMachineController(machine, informer, context).reconcile
            if machine.template is not None and self._template is not None:
                name = machine.template.kind
                yield name, self._template(machine, caches.templates[name], context).reconcile
        yield from self._identities.reconcilers()
        for group in self._groups:
            yield from group.reconcilers()

    def setup_watches(self, queues: Queues) -> None:
        """Watch owners, credentials and the objects of the provider's own kinds."""
        watches = InfrastructureWatches(self._caches, queues)
        watches.setup()
        self._identities.setup_watches(queues)
        self._context.sessions.listeners.append(watches.enqueue_changed)
        for group in self._groups:
            group.setup_watches(queues)
