"""A manager's control plane controllers, and the events that trigger them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.control_plane import is_control_plane
from capsmith_runtime.contract.control_plane_shapes import CONTROL_PLANE_SHAPES, CORE_MACHINES
from capsmith_runtime.contract.field_paths import read_at_contract_paths
from capsmith_runtime.controlplane.controller import ControlPlaneController
from capsmith_runtime.controlplane.external_objects import ContractKinds, ExternalObjects
from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.controlplane.secrets.cluster_secrets import ClusterAccess
from capsmith_runtime.controlplane.workers import ClusterWorkers
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.informer import Handler, Informer
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.kube.workqueue import WorkQueue
from capsmith_runtime.reconcile.caches import BY_CLUSTER, Caches, cluster_of, spec_cluster
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues, Reconcile, Runnable
from capsmith_runtime.reconcile.watches import on_change

_BY_TEMPLATE: Final = "infrastructure template"


class ControlPlaneControllers:
    """Creates the controllers for a provider's ControlPlane kinds."""

    def __init__(self, kinds: Sequence[ControlPlaneKind]) -> None:
        self.kinds = kinds

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Create the controllers for one manager."""
        return ControlPlaneGroup(self.kinds, caches, context)


class ControlPlaneGroup(ControllerGroup):
    """An informer and a controller for each kind, with shared caches for external kinds."""

    def __init__(
        self, kinds: Sequence[ControlPlaneKind], caches: Caches, context: ControllerContext
    ) -> None:
        self._caches = caches
        self._core = CORE_MACHINES[caches.reader.version]
        self._shape = CONTROL_PLANE_SHAPES[context.contract]
        self._queues: Queues = {}
        self._contract_kinds = ContractKinds(caches.client, caches.metrics, caches.reader.version)
        self._external = ExternalObjects(
            caches,
            self._contract_kinds,
            on_machine_object=self._enqueue_owner_of_machine_object,
            on_template=self._enqueue_users_of_template,
        )
        self._access = ClusterAccess(caches, context.label)
        self._workers = ClusterWorkers(caches)
        self._informers = {
            kind.resource.kind: caches.informer(
                kind.resource,
                caches.scope.select_own(),
                {BY_CLUSTER: cluster_of, _BY_TEMPLATE: partial(self._index_by_template, kind)},
            )
            for kind in kinds
        }
        for informer in self._informers.values():
            self._access.add_owners(informer)
        self._controllers = {
            kind.resource.kind: ControlPlaneController(
                kind,
                self._informers[kind.resource.kind],
                caches,
                context,
                self._contract_kinds,
                self._external,
                self._access,
                self._workers,
            )
            for kind in kinds
        }

    @property
    def informers(self) -> Sequence[Informer]:
        """Return the informers for control planes, Secrets, MachinePools and labelled CRDs."""
        return (
            *self._informers.values(),
            *self._contract_kinds.informers,
            self._access.informer,
            self._workers.machine_pools,
        )

    @property
    def runnables(self) -> Sequence[Runnable]:
        """Return the tasks that run external informers and close idle workload connections."""
        return (self._external.run, self._access.run)

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield each kind's name and reconcile function."""
        for name, controller in self._controllers.items():
            yield name, controller.reconcile

    def setup_watches(self, queues: Queues) -> None:
        """Watch control planes, their Machines, Clusters and Secrets."""
        self._queues = queues
        for name, informer in self._informers.items():
            informer.add_handler(_enqueue(queues[name]), own_writes=False)
            informer.add_handler(self._control_plane_deleted)
        self._caches.machines.add_handler(on_change(self._machine_view, self._enqueue_owner))
        self._caches.machines.add_handler(self._machine_deleted)
        self._workers.set_handler(self._enqueue_by_cluster)
        self._caches.clusters.add_handler(on_change(self._cluster_view, self._enqueue_cluster))
        self._access.set_handler(lambda cluster: self._enqueue_by_cluster(str(cluster)))

    def _cluster_view(self, cluster: JSON) -> Any:
        # New failure domains change where the next Machine is created.
        return self._caches.reader.read_cluster(cluster), self._core.read_failure_domains(cluster)

    def _machine_view(self, machine: JSON) -> Any:
        # Owner references are not part of the view, but a lost one must be restored (SM-11).
        return self._core.read(machine), metadata.items(machine, "metadata", "ownerReferences")

    def _enqueue_cluster(self, obj: JSON) -> None:
        self._enqueue_by_cluster(f"{metadata.namespace(obj)}/{metadata.name(obj)}")

    def _enqueue_by_cluster(self, value: str) -> None:
        for name, informer in self._informers.items():
            for key in informer.keys_by_index(BY_CLUSTER, value):
                self._queues[name].add(key)

    def _enqueue_owner(self, machine: JSON) -> None:
        for name, informer in self._informers.items():
            owner = metadata.owner_name(machine, name, informer.resource.group)
            if owner is not None:
                self._queues[name].add(NamespacedName(metadata.namespace(machine), owner))
        # The Machine may have lost its owner (SM-11).
        if is_control_plane(machine) and not metadata.has_controller(machine):
            for value in spec_cluster(machine):
                self._enqueue_by_cluster(value)

    def _control_plane_deleted(self, change: Delta) -> None:
        if change.new is None:
            # Other control planes of its Cluster wait for its Secrets.
            for value in cluster_of(change.latest):
                self._enqueue_by_cluster(value)

    def _machine_deleted(self, change: Delta) -> None:
        if change.new is None:
            # The kind of the owner is not checked, since UIDs are unique among all kinds.
            for controller in self._controllers.values():
                controller.scaler.forget({metadata.uid(change.latest)})

    def _enqueue_owner_of_machine_object(self, obj: JSON) -> None:
        """Enqueue the owner of the Machine with the same name as ``obj``.

        A Machine and its objects have the same name.
        """
        machine = self._caches.machines.get(key_of(obj))
        if machine is not None:
            self._enqueue_owner(machine)

    def _enqueue_users_of_template(self, obj: JSON) -> None:
        value = _template_key(obj, obj["kind"], metadata.name(obj))
        for name, informer in self._informers.items():
            # Keys suffice: each tenant may change templates, and have control planes of a megabyte.
            for key in informer.keys_by_index(_BY_TEMPLATE, value):
                self._queues[name].add(key)

    def _index_by_template(self, kind: ControlPlaneKind, control_plane: JSON) -> Iterable[str]:
        at_contract_paths = read_at_contract_paths(control_plane, kind.field_paths)
        template = self._shape.read_machine_template(at_contract_paths).infrastructure
        yield _template_key(control_plane, template.kind, template.name)


def _template_key(obj: JSON, kind: str, name: str) -> str:
    """Return the index key of a template in the namespace of ``obj``."""
    return f"{metadata.namespace(obj)}/{kind}/{name}"


def _enqueue(queue: WorkQueue[NamespacedName]) -> Handler:
    return lambda change: queue.add(change.key)
