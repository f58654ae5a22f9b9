"""The controllers of an infrastructure provider: clusters, machines, pools, identities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from capsmith_runtime.infrastructure.caches import InfrastructureCaches, InfrastructureKinds
from capsmith_runtime.infrastructure.cluster import InfraClusterController
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.identity import IdentityController
from capsmith_runtime.infrastructure.kinds import IdentityKind, InfraClusterKind, InfraMachineKind
from capsmith_runtime.infrastructure.machine import InfraMachineController
from capsmith_runtime.infrastructure.machine_addresses import MachineAddresses
from capsmith_runtime.infrastructure.machine_template import MachineTemplateController
from capsmith_runtime.infrastructure.watches import InfrastructureWatches
from capsmith_runtime.infrastructure.workload_client import WorkloadAccessFactory
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues, Reconcile, Runnable

AdditionalGroup = Callable[[InfrastructureContext], ControllerGroup]
"""Factory of controllers that share the infrastructure's caches and credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfrastructureControllers:
    """Factory of the controllers of an infrastructure provider's kinds."""

    clusters: tuple[InfraClusterKind, ...] = ()
    machines: tuple[InfraMachineKind, ...] = ()
    identities: tuple[IdentityKind, ...] = ()
    pools: AdditionalGroup | None = None
    """The kinds of machine pools, as ``machine_pool.controllers.MachinePoolKinds``: a repository
    without pools has no copy of that package."""
    claims_addresses: bool = False
    """Whether machines have the field ``spec.addressesFromPools`` (IP-12)."""
    workload: WorkloadAccessFactory | None = None
    """Creates the clients of workload clusters, if a kind has the feature ``workloadClient``."""
    additional: tuple[AdditionalGroup, ...] = ()

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Return the controllers for one manager."""
        kinds = InfrastructureKinds(
            clusters=self.clusters, machines=self.machines, identities=self.identities
        )
        infrastructure = InfrastructureCaches(caches, kinds)
        workload = None
        if self.workload is not None:
            workload = self.workload(context.client, caches.metrics, field_manager=context.label)
        extended = InfrastructureContext.extend(context, infrastructure, workload)
        groups: list[ControllerGroup] = []
        if self.claims_addresses:
            groups.append(MachineAddresses(infrastructure))
        if self.pools is not None:
            groups.append(self.pools(extended))
        groups += [make(extended) for make in self.additional]
        return InfrastructureGroup(extended, tuple(groups))


class InfrastructureGroup(ControllerGroup):
    """Controllers of clusters, machines, templates and identities, and of optional groups."""

    def __init__(self, context: InfrastructureContext, groups: tuple[ControllerGroup, ...]) -> None:
        self._caches = context.caches
        self._context = context
        self._groups = groups

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Return the informers of the infrastructure kinds and of the optional groups."""
        informers = (informer for group in self._groups for informer in group.informers)
        return (*self._caches.informers, *informers)

    @property
    def runnables(self) -> tuple[Runnable, ...]:
        """Return the task that closes idle clients of workload clusters."""
        workload = self._context.workload
        return (workload.run,) if workload is not None else ()

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Connect the optional groups with the manager's other groups."""
        for group in self._groups:
            group.connect(groups)

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield one reconcile function for each kind."""
        caches, context = self._caches, self._context
        for cluster in caches.kinds.clusters:
            name = cluster.resource.kind
            informer = caches.clusters[name]
            yield name, InfraClusterController(cluster, informer, context).reconcile
        for machine in caches.kinds.machines:
            name = machine.resource.kind
            informer = caches.machines[name]
            yield name, InfraMachineController(machine, informer, context).reconcile
            if machine.template is not None:
                name = machine.template.kind
                template = MachineTemplateController(machine, caches.templates[name], context)
                yield name, template.reconcile
        for kind in caches.kinds.identities:
            name = kind.resource.kind
            yield name, IdentityController(kind, caches.identities[name], context).reconcile
        for group in self._groups:
            yield from group.reconcilers()

    def setup_watches(self, queues: Queues) -> None:
        """Watch owners, credentials, and the objects of the provider's own kinds."""
        InfrastructureWatches(self._caches, queues).setup()
        for group in self._groups:
            group.setup_watches(queues)
