"""Controllers for machine pools, with their informers and watches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import CLUSTER_NAME_LABEL, MACHINE_POOL_KIND
from capsmith_runtime.contract.core import Machine
from capsmith_runtime.contract.machine_pool import (
    POOL_NAME_LABEL,
    owning_machine_pool,
    read_machine_pool,
    read_pool_machine,
)
from capsmith_runtime.infrastructure.caches import InfrastructureCaches
from capsmith_runtime.infrastructure.cluster_dependents import DependentKind
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.machine_pool.kinds import (
    InfraMachinePoolKind,
    MachinePoolMachinesKind,
)
from capsmith_runtime.infrastructure.machine_pool.machines import MachinePoolMachinesController
from capsmith_runtime.infrastructure.machine_pool.pool import InfraMachinePoolController
from capsmith_runtime.infrastructure.machine_pool.pool_machines import labelled_pool
from capsmith_runtime.kube.client import JSON, NamespacedName, version_of
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import (
    BY_CLUSTER,
    BY_OWNER,
    BY_POOL,
    BY_SECRET,
    cluster_of,
    spec_cluster,
)
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues, Reconcile
from capsmith_runtime.reconcile.kinds import SECRET, Kind, core_type
from capsmith_runtime.reconcile.watches import enqueue_object, on_change


@dataclass(frozen=True, kw_only=True)
class MachinePoolKinds:
    """An infrastructure provider's machine pool kinds."""

    whole: tuple[InfraMachinePoolKind, ...] = ()
    """Kinds of pools without Machines."""
    with_machines: tuple[MachinePoolMachinesKind, ...] = ()
    """Kinds of pools whose machines have Machines (MP-07)."""

    def __call__(self, context: InfrastructureContext) -> ControllerGroup:
        """Create the machine pool controllers for one manager."""
        return MachinePoolGroup(self, context)


class MachinePoolGroup(ControllerGroup):
    """Informers, controllers and watches for all machine pool kinds."""

    def __init__(self, kinds: MachinePoolKinds, context: InfrastructureContext) -> None:
        caches, core = context.caches, context.caches.core
        scope = core.scope
        self._kinds = kinds
        self._caches = caches
        self._context = context
        self._machine_pools = core.informer(
            core_type(core.reader.version, MACHINE_POOL_KIND, "machinepools"),
            scope.select(),
            {BY_CLUSTER: spec_cluster, BY_SECRET: _secret_of},
        )
        own: tuple[Kind[Any], ...] = (*kinds.whole, *kinds.with_machines)
        self._own = {
            kind.resource.kind: core.informer(
                kind.resource, scope.select_own(), {BY_CLUSTER: cluster_of}
            )
            for kind in own
        }
        for each in own:
            caches.held_ids.index(
                self._own[each.resource.kind], has_provider_ids=each in kinds.whole
            )
        # Secrets with bootstrap data have the cluster name label (BC-06), but so do the cluster's
        # keys. The Secrets are therefore watched without their data.
        labelled = scope.select(labels=CLUSTER_NAME_LABEL, metadata_only=True)
        self._secrets = core.informer(SECRET, labelled)
        for machines in {each.machines.kind for each in kinds.with_machines}:
            caches.machines[machines].add_index(BY_POOL, labelled_pool)
        caches.pools.update(self._own)
        for informer in self._own.values():
            caches.identity.add_user(informer, is_recorded=True)
        caches.add_overriding(own)
        caches.dependents += [
            DependentKind.of_machines(kind, self._own[kind.resource.kind]) for kind in own
        ]
        caches.completions.append(self._complete)

    @property
    def informers(self) -> Sequence[Informer]:
        """Return the informers for MachinePools, the pools, and bootstrap data."""
        # Machines of pools read bootstrap data once, at their creation, and need no watch of
        # Secrets.
        secrets = (self._secrets,) if self._kinds.whole else ()
        return (self._machine_pools, *self._own.values(), *secrets)

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield each kind's name and reconcile function."""
        context, pools = self._context, self._machine_pools
        for whole in self._kinds.whole:
            name = whole.resource.kind
            controller = InfraMachinePoolController(whole, self._own[name], context, pools)
            yield name, controller.reconcile
        for kind in self._kinds.with_machines:
            name = kind.resource.kind
            machines_controller = MachinePoolMachinesController(
                kind, self._own[name], context, pools
            )
            yield name, machines_controller.reconcile

    def setup_watches(self, queues: Queues) -> None:
        """Watch owners, machines, bootstrap data and the pools themselves."""
        watches = _PoolWatches(self._caches, self._machine_pools, self._own, queues)
        for kind, informer in self._own.items():
            informer.add_handler(enqueue_object(queues[kind]), own_writes=False)
        self._machine_pools.add_handler(on_change(read_machine_pool, watches.enqueue_pool))
        self._machine_pools.add_handler(on_change(_secret_name, watches.enqueue_machines))
        self._secrets.add_handler(on_change(version_of, watches.enqueue_users_of_secret))
        if self._kinds.with_machines:
            self._caches.core.machines.add_handler(
                on_change(_pool_relevant_view, watches.enqueue_pool_of_machine)
            )
            for kind in {each.machines.kind for each in self._kinds.with_machines}:
                machines = self._caches.machines[kind]
                machines.add_handler(
                    on_change(_pool_relevant_fields, watches.enqueue_pool_of_infra_machine)
                )

    def _complete(self, obj: JSON, machine: Machine) -> Machine:
        """Complete a pool's Machine with the settings of its MachinePool (IM-21)."""
        if machine.pool_name is None:
            return machine
        found = self._machine_pools.get(NamespacedName(machine.namespace, machine.pool_name))
        pool = read_machine_pool(found) if found is not None else None
        annotations = metadata.annotations(obj)
        group = obj["apiVersion"].partition("/")[0]
        # The version at the machine's creation, because the pool's version may have changed since
        # then.
        version = annotations.get(f"{group}/pool-version") or machine.version
        return replace(
            machine,
            data_secret_name=machine.data_secret_name or (pool.data_secret_name if pool else None),
            failure_domain=machine.failure_domain or annotations.get(f"{group}/failure-domain"),
            version=version or (pool.version if pool else None),
        )


class _PoolWatches:
    """Enqueues the pools and machines that a change concerns."""

    def __init__(
        self,
        caches: InfrastructureCaches,
        machine_pools: Informer,
        own: dict[str, Informer],
        queues: Queues,
    ) -> None:
        self._caches = caches
        self._machine_pools = machine_pools
        self._own = own
        self._queues = queues

    def enqueue_pool(self, obj: JSON) -> None:
        """Enqueue the infrastructure of a changed MachinePool."""
        found = self._infrastructure(obj)
        if found is not None:
            kind, key = found
            self._queues[kind].add(key)

    def enqueue_machines(self, obj: JSON) -> None:
        """Enqueue a MachinePool's machines, which wait for its bootstrap data."""
        found = self._infrastructure(obj)
        pool = self._own[found[0]].get(found[1]) if found is not None else None
        if pool is None:
            return
        for kind, informer in self._caches.machines.items():
            for key in informer.keys_by_index(BY_OWNER, metadata.uid(pool)):
                self._queues[kind].add(key)

    def enqueue_users_of_secret(self, obj: JSON) -> None:
        """Enqueue pools whose bootstrap data changed; new machines need the latest data (MP-19)."""
        value = f"{metadata.namespace(obj)}/{metadata.name(obj)}"
        for pool in self._machine_pools.by_index(BY_SECRET, value):
            self.enqueue_pool(pool)

    def enqueue_pool_of_machine(self, obj: JSON) -> None:
        """Enqueue the pool that a Machine belongs to."""
        name = owning_machine_pool(obj)
        pool = (
            self._machine_pools.get(NamespacedName(metadata.namespace(obj), name)) if name else None
        )
        if pool is not None:
            self.enqueue_pool(pool)

    def enqueue_pool_of_infra_machine(self, obj: JSON) -> None:
        """Enqueue the pool that an infrastructure machine belongs to."""
        # The owner's UID is not compared: a queue key has only a name, and the reconcile compares
        # UIDs.
        is_owned = False
        for owner in metadata.items(obj, "metadata", "ownerReferences"):
            kind = metadata.text(owner, "kind")
            informer = self._own.get(kind)
            group = metadata.text(owner, "apiVersion").partition("/")[0]
            if informer is not None and group == informer.resource.group:
                is_owned = True
                self._queues[kind].add(
                    NamespacedName(metadata.namespace(obj), metadata.text(owner, "name"))
                )
        if not is_owned:
            self._enqueue_labelled_pool(obj)

    def _enqueue_labelled_pool(self, obj: JSON) -> None:
        """Enqueue the pool named by the label of a machine without an owner reference (SM-11)."""
        label = metadata.labels(obj).get(POOL_NAME_LABEL)
        for value in cluster_of(obj) if label else ():
            for pool in self._machine_pools.by_index(BY_CLUSTER, value):
                # The label may contain only a hash of the MachinePool's name (MP-08), so label
                # values are compared.
                if metadata.label_value(metadata.name(pool)) == label:
                    self.enqueue_pool(pool)

    def _infrastructure(self, machine_pool: JSON) -> tuple[str, NamespacedName] | None:
        """Return the kind and key of a MachinePool's infrastructure.

        Returns None if this provider does not serve that kind.
        """
        reference = read_machine_pool(machine_pool).infrastructure
        informer = self._own.get(reference.kind) if reference is not None else None
        if reference is None or informer is None or reference.group != informer.resource.group:
            return None
        return reference.kind, NamespacedName(metadata.namespace(machine_pool), reference.name)


def _pool_relevant_view(machine: JSON) -> tuple[Any, str | None]:
    return read_pool_machine(machine), owning_machine_pool(machine)


def _pool_relevant_fields(obj: JSON) -> tuple[Any, ...]:
    """Return the infrastructure machine fields that its pool acts on."""
    meta, status = obj["metadata"], metadata.mapping(obj, "status")
    return (
        metadata.is_deleting(obj),
        metadata.mapping(obj, "spec"),
        meta.get("annotations"),
        meta.get("ownerReferences"),
        status.get("addresses"),
        status.get("ready"),
        status.get("initialization"),
    )


def _secret_name(machine_pool: JSON) -> str | None:
    return read_machine_pool(machine_pool).data_secret_name


def _secret_of(machine_pool: JSON) -> Iterable[str]:
    name = _secret_name(machine_pool)
    if name:
        yield f"{metadata.namespace(machine_pool)}/{name}"
