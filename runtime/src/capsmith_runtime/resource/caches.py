"""Caches for resources, with their owners and dependents among the provider's objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Object
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.identity import references
from capsmith_runtime.infrastructure.caches import InfrastructureCaches
from capsmith_runtime.infrastructure.cluster_dependents import DependentKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import (
    BY_CLUSTER,
    BY_OWNER,
    cluster_name_of,
    cluster_of,
    owner_uids,
)
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.live import find_live
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.resource.api import ResourceReconciler

ResourceKind = Kind[ResourceReconciler[Any]]
_BY_CLUSTER_OF_OWNER = "clusterOfOwner"
MAX_OWNERS: Final = 64
"""Maximum number of an object's owners to read, and of objects whose owners are read in a search.

Users may give each of their objects thousands of owners.
"""
_UNCACHED_SECONDS: Final = 1.0
"""Seconds until the next reconcile if the cache lacks an owner."""
_MANY_SECONDS: Final = 60.0
"""The same, if it lacks so many that they are not looked up."""
MAX_LOOKUPS: Final = 16
"""Maximum number of owners to look up on the API server in one reconcile."""


class ResourceCaches:
    """A cache for each kind that implements Resource."""

    def __init__(self, kinds: Sequence[ResourceKind], infrastructure: InfrastructureCaches) -> None:
        self._infrastructure = infrastructure
        core = infrastructure.core
        self.informers: dict[str, Informer] = {}
        self._other_owners: dict[str, Informer] = {}
        for kind in kinds:
            selections = core.scope.select_own(namespaced=kind.resource.namespaced)
            indexes = {BY_CLUSTER: cluster_of, BY_OWNER: owner_uids}
            informer = core.informer(kind.resource, selections, indexes)
            self.informers[kind.resource.kind] = informer
            infrastructure.identity.add_user(informer, is_recorded=False)
            # Cluster-scoped resources belong to no Cluster, so no cluster waits for them.
            if kind.resource.namespaced:
                infrastructure.dependents.append(self._as_dependent(kind, informer))
            infrastructure.held_ids.index(informer)

    def add_owners(self, informers: Iterable[Informer]) -> None:
        """Allow objects of other kinds to own resources; call this before the informers run."""
        known = self._owner_informers()
        for informer in informers:
            # Kinds of the core group, such as Secrets, are watched for other reasons and own no
            # resources.
            if informer.resource.group and informer.resource.kind not in known:
                informer.add_index(_BY_CLUSTER_OF_OWNER, cluster_of)
                self._other_owners[informer.resource.kind] = informer

    def owner_keys(self, obj: JSON) -> Iterator[tuple[Informer, NamespacedName]]:
        """Yield the informer and the key of each owner that is a provider object or a Machine."""
        informers = self._owner_informers()
        for reference in metadata.items(obj, "metadata", "ownerReferences")[:MAX_OWNERS]:
            informer = informers.get(metadata.text(reference, "kind"))
            group = metadata.text(reference, "apiVersion").partition("/")[0]
            if informer is not None and informer.resource.group == group:
                # Owners of a namespaced object are in the same namespace or cluster-scoped.
                namespace = metadata.namespace(obj) if informer.resource.namespaced else ""
                yield informer, NamespacedName(namespace, metadata.text(reference, "name"))

    def cluster_name(self, obj: JSON) -> str | None:
        """Return the name of an object's Cluster, found by label or else through the nearest owner.

        Returns None if neither names a Cluster, and for cluster-scoped objects.
        """
        namespace = metadata.namespace(obj)
        seen: set[str] = set()
        pending = [obj] if namespace else []
        while pending and len(seen) < MAX_OWNERS:
            current = pending.pop(0)
            # Owner references may form a cycle.
            if metadata.namespace(current) != namespace or metadata.uid(current) in seen:
                continue
            seen.add(metadata.uid(current))
            name = cluster_name_of(current)
            if name:
                return name
            pending += self._owners(current)
        return None

    async def find_uncached_owner(self, obj: JSON) -> Waiting | None:
        """Return Waiting if an owner, direct or not, exists but is not cached yet.

        Watches of different kinds have no common order, and without its owner an object seems to
        belong to no Cluster. Returns None if all existing owners are cached.
        """
        core, pending, seen = self._infrastructure.core, [obj], set[str]()
        lookups = 0
        while pending and len(seen) < MAX_OWNERS:
            current = pending.pop(0)
            if metadata.uid(current) in seen:
                continue
            seen.add(metadata.uid(current))
            owners = [(each, key, each.get(key)) for each, key in self.owner_keys(current)]
            pending += [cached for _, _, cached in owners if cached is not None]
            uncached = [(each, key) for each, key, cached in owners if cached is None]
            lookups += len(uncached)
            if lookups > MAX_LOOKUPS:
                # A user can add hundreds, and the requests would be repeated forever.
                return _build_wait(f"one of more than {MAX_LOOKUPS} owners", _MANY_SECONDS)
            uids = set(owner_uids(current))
            for informer, key in uncached:
                try:
                    found = await find_live(core.client, informer.resource, key, uids)
                except NotFoundError:
                    continue  # the kind has no CRD
                # The garbage collector removes references to owners that do not exist, and another
                # manager's object may never be cached.
                if found is not None and core.scope.covers(found):
                    return _build_wait(f"{informer.resource.kind} {key.name}", _UNCACHED_SECONDS)
        return None

    def find_identity(self, obj: JSON, cluster: Cluster) -> Object:
        """Return the reference to the identity that a resource adopts, or {} if there is none.

        It is the identity that the owning machine or pool uses: the one that it names, or else that
        of the cluster's infrastructure; if that is gone, the recorded one.
        """
        identity, members = self._infrastructure.identity, self._find_members(obj)
        own = next(filter(None, map(identity.find_override, members)), None)
        if own is not None:
            return own
        default = identity.find_default(cluster)
        if default is not None and not isinstance(default, Waiting):
            return default
        return next(filter(None, map(references.read_record, members)), {})

    def of_cluster(self, namespace: str, name: str) -> list[tuple[Informer, JSON]]:
        """Return a Cluster's resources, each with its informer.

        Resources belong to the Cluster by label or through their owners.
        """
        found: dict[str, tuple[Informer, JSON]] = {}
        pending: list[str] = []
        for kind, informer in self._owner_informers().items():
            index = _BY_CLUSTER_OF_OWNER if kind in self._other_owners else BY_CLUSTER
            for obj in informer.by_index(index, f"{namespace}/{name}"):
                pending.append(metadata.uid(obj))
                if informer.resource.kind in self.informers:
                    found[metadata.uid(obj)] = informer, obj
        while pending:
            owner = pending.pop()
            for informer in self.informers.values():
                for obj in informer.by_index(BY_OWNER, owner):
                    if metadata.uid(obj) not in found:
                        found[metadata.uid(obj)] = informer, obj
                        pending.append(metadata.uid(obj))
        return list(found.values())

    def _as_dependent(self, kind: ResourceKind, informer: Informer) -> DependentKind:
        """Return the DependentKind that makes a cluster's deletion wait for machine resources.

        Other resources do not delay it.  Those that the infrastructure cluster owns are deleted
        after it by the garbage collector, users' own ones may never be deleted, and the
        infrastructure cluster may depend on either.
        """

        def of_cluster(namespace: str, name: str) -> list[JSON]:
            found = (obj for each, obj in self.of_cluster(namespace, name) if each is informer)
            return [obj for obj in found if self._belongs_to_machine(obj)]

        return DependentKind(
            informer=informer,
            finalizer=kind.finalizer,
            of_cluster=of_cluster,
            cluster_name=self.cluster_name,
            is_labelled=False,
        )

    def _belongs_to_machine(self, obj: JSON) -> bool:
        """Return whether a machine or pool owns an object, directly or through resources."""
        infrastructure, seen = self._infrastructure, set[str]()
        machines = (infrastructure.core.machines, *infrastructure.identity.recorded_users)
        pending = [obj]
        while pending and len(seen) < MAX_OWNERS:
            current = pending.pop()
            if metadata.uid(current) in seen:
                continue
            seen.add(metadata.uid(current))
            for informer, key in self.owner_keys(current):
                if informer in machines:
                    return True
                owner = informer.get(key) if informer.resource.kind in self.informers else None
                pending += [owner] if owner is not None else []
        return False

    def _owners(self, obj: JSON) -> list[JSON]:
        found = (informer.get(key) for informer, key in self.owner_keys(obj))
        uids = set(owner_uids(obj))
        # By UID: an object of the same name that was created later is not the owner.
        return [owner for owner in found if owner is not None and metadata.uid(owner) in uids]

    def _find_members(self, obj: JSON) -> list[JSON]:
        """Return the infrastructure machines, pools and control planes that own an object.

        The nearest owners come first; they own it directly, through other resources, or as the
        infrastructure of its Machine.
        """
        kinds = {each.resource.kind for each in self._infrastructure.identity.recorded_users}
        found, seen, pending = list[JSON](), set[str](), [obj]
        while pending and len(seen) < MAX_OWNERS:
            current = pending.pop(0)
            # Owner references may form a cycle.
            if metadata.uid(current) in seen:
                continue
            seen.add(metadata.uid(current))
            found += [current] if current["kind"] in kinds else []
            pending += [*self._owners(current), *self._find_infra_machines(current)]
        return found

    def _find_infra_machines(self, obj: JSON) -> list[JSON]:
        """Return the infrastructure machine of a Machine, or an empty list for other objects."""
        core = self._infrastructure.core
        if obj["kind"] != core.machines.resource.kind:
            return []
        reference = core.reader.read_infrastructure(obj)
        informer = self._infrastructure.machines.get(reference.kind) if reference else None
        if reference is None or informer is None or informer.resource.group != reference.group:
            return []
        found = informer.get(NamespacedName(metadata.namespace(obj), reference.name))
        return [] if found is None else [found]

    def _owner_informers(self) -> dict[str, Informer]:
        """Return the informers for the kinds that may own resources, by kind."""
        infrastructure = self._infrastructure
        machines = infrastructure.core.machines
        return {
            machines.resource.kind: machines,
            **infrastructure.clusters,
            **infrastructure.machines,
            **infrastructure.pools,
            **self.informers,
            **self._other_owners,
        }


def _build_wait(owner: str, seconds: float) -> Waiting:
    message = f"{owner} is not in the cache yet, so the Cluster may be unknown"
    return Waiting(constants.REASON_CLUSTER_NOT_FOUND, message, seconds)
