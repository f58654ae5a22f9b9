"""Caches for the infrastructure kinds, with lookups of related objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.contract.records import Record
from capsmith_runtime.identity import references
from capsmith_runtime.identity.caches import IdentityCaches
from capsmith_runtime.infrastructure.api import ClaimedAddress
from capsmith_runtime.infrastructure.cluster_dependents import DependentKind
from capsmith_runtime.infrastructure.kinds import IdentityKind, InfraClusterKind, InfraMachineKind
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import (
    BY_CLUSTER,
    BY_CONTROL_PLANE,
    BY_OWNER,
    Caches,
    cluster_of,
    owner_uids,
)
from capsmith_runtime.reconcile.held_ids import HeldIds
from capsmith_runtime.reconcile.kinds import CREDENTIALS_FEATURE, Kind
from capsmith_runtime.reconcile.results import Waiting

BY_WAITING = "waiting"
"""Index of a Cluster's machines that wait for something, with the same values as BY_CLUSTER."""

Completion = Callable[[JSON, Machine], Machine]
"""Function that returns a Machine with the fields that its infrastructure machine adds."""


class MachineAddressSource(Protocol):
    """Source of the addresses that machines claim from IP pools (IP-12)."""

    async def of_machine(
        self, machine: JSON, cluster: Cluster
    ) -> tuple[ClaimedAddress, ...] | Waiting:
        """Return one address for each pool that ``machine`` names, in the same order.

        Returns Waiting until all addresses are allocated.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InfrastructureKinds:
    """The kinds of clusters, machines and identities that an infrastructure provider serves."""

    clusters: tuple[InfraClusterKind, ...] = ()
    machines: tuple[InfraMachineKind, ...] = ()
    identities: tuple[IdentityKind, ...] = ()


class InfrastructureCaches:
    """Caches for infrastructure clusters, machines, templates, identities and their Secrets."""

    def __init__(self, core: Caches, kinds: InfrastructureKinds) -> None:
        self.core = core
        self.kinds = kinds
        self.identity = IdentityCaches(core, kinds.identities)
        own = core.scope.select_own()
        self.clusters = {
            kind.resource.kind: core.informer(kind.resource, own, {BY_CLUSTER: cluster_of})
            for kind in kinds.clusters
        }
        self.machines = {
            kind.resource.kind: core.informer(
                kind.resource,
                own,
                {
                    BY_CLUSTER: cluster_of,
                    BY_CONTROL_PLANE: _labelled_control_plane,
                    BY_WAITING: _waiting_in_cluster,
                    BY_OWNER: owner_uids,
                },
            )
            for kind in kinds.machines
        }
        self.templates = {
            kind.template.kind: core.informer(kind.template, own, {BY_CLUSTER: cluster_of})
            for kind in kinds.machines
            if kind.template is not None
        }
        self._register_users()
        self.pools: dict[str, Informer] = {}
        """Informers for machine pools by kind, which their own controllers run."""
        self.dependents = [
            DependentKind.of_machines(kind, self.machines[kind.resource.kind])
            for kind in kinds.machines
        ]
        """The kinds whose objects must be gone before an infrastructure cluster is deleted."""
        self.held_ids = HeldIds((*self.clusters.values(), *self.machines.values()))
        self.completions: list[Completion] = []
        self.addresses: MachineAddressSource | None = None

    def _register_users(self) -> None:
        """Register the kinds that use identities, and how a Cluster's identity is found."""
        for informer in self.clusters.values():
            self.identity.add_user(informer, is_recorded=False)
        for informer in self.machines.values():
            self.identity.add_user(informer, is_recorded=True)
        self.add_overriding(self.kinds.machines)
        self.identity.find_default = self._find_identity

    def add_overriding(self, kinds: Iterable[Kind[Any]]) -> None:
        """Let objects of ``kinds`` with the credentials feature override the cluster's identity."""
        self.identity.overriding.update(
            kind.resource.kind for kind in kinds if CREDENTIALS_FEATURE in kind.features
        )

    def identity_record(self, obj: JSON, cluster: Cluster) -> Mapping[Record, str]:
        """Return the records of the identity of a machine or pool, and of its sources.

        The mapping is empty if the provider has no identities, if it does not manage the Cluster's
        infrastructure, or if the identity cannot be used.
        """
        return self.identity.build_record(obj, cluster)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Return all informers that must run for these caches."""
        return (
            *self.clusters.values(),
            *self.machines.values(),
            *self.templates.values(),
            *self.identity.informers,
        )

    def machine_of(self, obj: JSON) -> Machine | None:
        """Return the Machine that owns an infrastructure machine, or None if it is not cached."""
        machine = self.core.machine_of(obj)
        if machine is None:
            return None
        for complete in self.completions:
            machine = complete(obj, machine)
        return machine

    async def addresses_of(
        self, machine: JSON, cluster: Cluster
    ) -> tuple[ClaimedAddress, ...] | Waiting:
        """Return the addresses that an infrastructure machine claims from IP pools.

        Returns Waiting until every pool has allocated one.
        """
        return await self.addresses.of_machine(machine, cluster) if self.addresses else ()

    def cluster_kind(self, reference: ObjectRef | None) -> InfraClusterKind | None:
        """Return the infrastructure kind that a Cluster refers to.

        Returns None if this provider does not serve it.
        """
        for kind in self.kinds.clusters:
            if reference is not None and _refers_to(reference, kind.resource):
                return kind
        return None

    def infra_cluster_of(self, cluster: Cluster) -> JSON | None:
        """Return a Cluster's infrastructure cluster, or None if it is not cached.

        Kinds of other providers are never cached.
        """
        reference, kind = cluster.infrastructure, self.cluster_kind(cluster.infrastructure)
        if reference is None or kind is None:
            return None
        key = NamespacedName(cluster.namespace, reference.name)
        return self.clusters[kind.resource.kind].get(key)

    def _find_identity(self, cluster: Cluster) -> Object | Waiting | None:
        """Return the identity reference of a Cluster's infrastructure, as ``FindDefault`` does."""
        kind = self.cluster_kind(cluster.infrastructure)
        if kind is None:
            return None
        infra_cluster = self.infra_cluster_of(cluster)
        if infra_cluster is None:
            return describe_missing(cluster, kind.resource.kind)
        return references.read_reference(infra_cluster)

    def orphaned_infra_cluster(self, namespace: str, cluster: str | None) -> JSON | None:
        """Return the infrastructure cluster of a deleted Cluster, or None if it is not cached.

        It is found by its owner reference or by its cluster name label.
        """
        # The Cluster, which named it, is gone; the references and labels of its objects remain.
        for informer in self.clusters.values():
            for obj in informer.by_index(BY_CLUSTER, f"{namespace}/{cluster}"):
                return obj
        return None


def describe_missing(cluster: Cluster, kind: str) -> Waiting:
    """Return the Waiting to report while an infrastructure cluster is not cached."""
    message = f"the {kind} of Cluster {cluster.name} does not exist, or is not watched here"
    return Waiting(constants.REASON_WAITING_FOR_INFRASTRUCTURE, message, None)


def _refers_to(reference: ObjectRef, resource: ResourceType) -> bool:
    return (reference.group, reference.kind) == (resource.group, resource.kind)


def is_waiting(machine: JSON) -> bool:
    """Return whether a machine is not provisioned yet, or is being deleted."""
    return not metadata.text(machine, "spec", "providerID") or metadata.is_deleting(machine)


def _labelled_control_plane(machine: JSON) -> Iterable[str]:
    is_labelled = constants.CONTROL_PLANE_LABEL in metadata.labels(machine)
    return cluster_of(machine) if is_labelled else ()


def _waiting_in_cluster(machine: JSON) -> Iterable[str]:
    return cluster_of(machine) if is_waiting(machine) else ()
