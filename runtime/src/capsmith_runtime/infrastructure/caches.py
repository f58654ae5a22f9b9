"""Caches of the infrastructure kinds, with lookups of related objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.infrastructure import recorded_identity
from capsmith_runtime.infrastructure.api import ClaimedAddress
from capsmith_runtime.infrastructure.cluster_dependents import DependentKind
from capsmith_runtime.infrastructure.held_ids import HeldIds
from capsmith_runtime.infrastructure.identity_secrets import IdentitySecrets
from capsmith_runtime.infrastructure.kinds import IdentityKind, InfraClusterKind, InfraMachineKind
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType, Selection
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import (
    BY_CLUSTER,
    BY_OWNER,
    BY_SECRET,
    Caches,
    cluster_of,
    owner_uids,
)
from capsmith_runtime.reconcile.kinds import NAMESPACE
from capsmith_runtime.reconcile.results import Waiting

BY_IDENTITY = "identity"

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
    """The kinds that an infrastructure provider serves."""

    clusters: tuple[InfraClusterKind, ...] = ()
    machines: tuple[InfraMachineKind, ...] = ()
    identities: tuple[IdentityKind, ...] = ()

    def identity_kind(self, reference: Object) -> IdentityKind | None:
        """Return the kind of identity that ``reference`` names.

        Returns None if this provider does not serve that kind.
        """
        name = metadata.text(reference, "kind")
        return next((kind for kind in self.identities if kind.resource.kind == name), None)

    def identity_keys(self, obj: JSON) -> Iterable[str]:
        """Yield the BY_IDENTITY index key of the identity that an infrastructure cluster uses."""
        return self._keys(recorded_identity.read_reference(obj), obj)

    def recorded_identity_keys(self, obj: JSON) -> Iterable[str]:
        """Yield the BY_IDENTITY index key of the identity that is recorded on a machine or pool."""
        # The infrastructure cluster, which names the identity, may be gone before its machines.
        return self._keys(recorded_identity.read_record(obj) or {}, obj)

    def _keys(self, reference: Object, user: JSON) -> Iterable[str]:
        kind, name = self.identity_kind(reference), metadata.text(reference, "name")
        if kind is not None and name:
            yield identity_value(kind.resource.kind, kind.find_in(name, user))


class InfrastructureCaches:
    """Caches of infrastructure clusters, machines, templates, identities and their Secrets."""

    def __init__(self, core: Caches, kinds: InfrastructureKinds) -> None:
        self.core = core
        self.kinds = kinds
        own = core.scope.select_own()
        self.clusters = {
            kind.resource.kind: core.informer(
                kind.resource, own, {BY_CLUSTER: cluster_of, BY_IDENTITY: kinds.identity_keys}
            )
            for kind in kinds.clusters
        }
        self.machines = {
            kind.resource.kind: core.informer(
                kind.resource,
                own,
                {
                    BY_CLUSTER: cluster_of,
                    BY_OWNER: owner_uids,
                    BY_IDENTITY: kinds.recorded_identity_keys,
                },
            )
            for kind in kinds.machines
        }
        self.templates = {
            kind.template.kind: core.informer(kind.template, own, {BY_CLUSTER: cluster_of})
            for kind in kinds.machines
            if kind.template is not None
        }
        self.identity_users = list(self.clusters.values())
        """Informers of the kinds with ``spec.identityRef``, with the index BY_IDENTITY."""
        self.pools: dict[str, Informer] = {}
        """Informers of machine pools by kind, which their own controllers run."""
        self.dependents = [
            DependentKind.of_machines(kind, self.machines[kind.resource.kind])
            for kind in kinds.machines
        ]
        """The kinds whose objects must be gone before an infrastructure cluster is deleted."""
        self.held_ids = HeldIds((*self.clusters.values(), *self.machines.values()))
        self.completions: list[Completion] = []
        self.addresses: MachineAddressSource | None = None
        self._add_identities()

    def _add_identities(self) -> None:
        """Add the caches for identities, the namespaces that they allow, and their Secrets."""
        core, kinds, scope = self.core, self.kinds, self.core.scope
        # The watch filter applies to objects that refer to identities, not to identities.
        self.identities = {
            kind.resource.kind: core.informer(
                kind.resource,
                scope.select() if kind.resource.namespaced else Selection(),
                {BY_SECRET: _secret_key},
            )
            for kind in kinds.identities
        }
        self.namespaces: Informer | None = None
        # Only cluster-scoped identities select namespaces by label.
        if not all(kind.resource.namespaced for kind in kinds.identities):
            self.namespaces = core.informer(NAMESPACE, Selection())
        self.secrets = IdentitySecrets(core, kinds.identities)

    @property
    def recorded_users(self) -> tuple[Informer, ...]:
        """Return the informers of the kinds whose objects record their cluster's identity."""
        return (*self.machines.values(), *self.pools.values())

    def find_kinds_using(self, identity: str) -> list[str]:
        """Return the kinds of all objects that use ``identity``, a BY_IDENTITY index key."""
        informers = (*self.identity_users, *self.recorded_users)
        found = (each for each in informers if each.by_index(BY_IDENTITY, identity))
        return sorted({informer.resource.kind for informer in found})

    def identity_record(self, obj: JSON, cluster: Cluster) -> Mapping[str, str]:
        """Return the annotation that records a Cluster's identity, to set on a machine or pool.

        Empty if the provider has no identities, or does not manage the Cluster's infrastructure.
        """
        infra_cluster = self.infra_cluster_of(cluster) if self.kinds.identities else None
        return recorded_identity.create_record(obj, infra_cluster) if infra_cluster else {}

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Return all informers that must run for these caches."""
        return (
            *self.clusters.values(),
            *self.machines.values(),
            *self.templates.values(),
            *self.identities.values(),
            *self.secrets.informers.values(),
            *((self.namespaces,) if self.namespaces is not None else ()),
        )

    def machine_of(self, obj: JSON) -> Machine | None:
        """Return the Machine that owns an infrastructure machine; None if it is not cached."""
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
        """Return a Cluster's infrastructure cluster; None if it is not cached.

        Kinds of other providers are never cached.
        """
        reference, kind = cluster.infrastructure, self.cluster_kind(cluster.infrastructure)
        if reference is None or kind is None:
            return None
        key = NamespacedName(cluster.namespace, reference.name)
        return self.clusters[kind.resource.kind].get(key)

    def orphaned_infra_cluster(self, namespace: str, cluster: str | None) -> JSON | None:
        """Return the infrastructure cluster of a deleted Cluster; None if it is not cached.

        It is found by its owner reference or by its cluster name label.
        """
        # The Cluster, which named it, is gone; the references and labels of its objects remain.
        for informer in self.clusters.values():
            for obj in informer.by_index(BY_CLUSTER, f"{namespace}/{cluster}"):
                return obj
        return None


def _refers_to(reference: ObjectRef, resource: ResourceType) -> bool:
    return (reference.group, reference.kind) == (resource.group, resource.kind)


def identity_value(kind: str, key: NamespacedName) -> str:
    """Return the BY_IDENTITY index key of the identity with this kind and key."""
    return f"{kind}/{key.namespace}/{key.name}"


def secret_value(namespace: str, name: str) -> str:
    """Return the BY_SECRET index key of a Secret.

    ``namespace`` is empty if the identity that names the Secret is cluster-scoped.
    """
    return f"{namespace}/{name}"


def _secret_key(obj: JSON) -> Iterable[str]:
    name = metadata.text(obj, "spec", "secretRef", "name")
    if name:
        yield secret_value(metadata.namespace(obj), name)
