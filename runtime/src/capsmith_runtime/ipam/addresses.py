"""Creation, ownership and deletion of IPAddresses (IP-09, IP-10).

This includes the removal of IPAddresses that have lost their claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from contextlib import suppress

from capsmith_runtime.contract import constants, external_id, metadata
from capsmith_runtime.contract.core import is_deleted_for_move, pause_message
from capsmith_runtime.contract.ipam import PROTECT_ADDRESS, IPAddress, IpamDialect
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.ipam.address_index import AddressIndex
from capsmith_runtime.ipam.api import Allocation, ExternalPoolReconciler
from capsmith_runtime.ipam.pools import PoolRegistry
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType, key_of
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.patch import write
from capsmith_runtime.reconcile.author_step import AuthorCalls, connect_scope, describe_owner
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.runner import add_resync
from capsmith_runtime.reconcile.status_reporter import StatusDebounce


class IPAddressWriter:
    """Creates, repairs and deletes IPAddresses."""

    def __init__(
        self, client: KubeClient, dialect: IpamDialect, addresses: Informer, claims: ResourceType
    ) -> None:
        self._client = client
        self._dialect = dialect
        self._addresses = addresses
        self._claims = claims

    async def create(
        self, claim: JSON, pool: JSON | None, resource: ResourceType, allocation: Allocation
    ) -> JSON:
        """Create a claim's IPAddress and return it.

        Raises AlreadyExistsError if an IPAddress with this name exists.
        """
        view = self._dialect.read_claim(claim)
        labels = {constants.CLUSTER_NAME_LABEL: view.cluster_name} if view.cluster_name else {}
        identity = external_id.annotation(resource.group)
        address = IPAddress(
            # The name of the claim (IP-09): the API server rejects a second address for it, which a
            # manager with an outdated cache might request.
            name=view.name,
            namespace=view.namespace,
            address=str(allocation.address),
            prefix=allocation.prefix,
            gateway=str(allocation.gateway) if allocation.gateway is not None else None,
            claim_name=view.name,
            pool=view.pool,
        )
        obj = {
            "apiVersion": self._addresses.resource.api_version,
            "kind": self._addresses.resource.kind,
            "metadata": {
                "name": view.name,
                "namespace": view.namespace,
                "labels": labels,
                "annotations": {identity: external_id.of(claim, resource.group)},
                "finalizers": [PROTECT_ADDRESS],
                "ownerReferences": self._owner_references(claim, pool, resource),
            },
            "spec": self._dialect.build_address_spec(address),
        }
        return await self._client.create(self._addresses.resource, obj)

    async def ensure_owned(
        self, address: JSON, claim: JSON, pool: JSON | None, resource: ResourceType
    ) -> None:
        """Add missing finalizers and owner references, as after a move or a manual creation."""
        owners = self._owner_references(claim, pool, resource)
        references = metadata.items(address, "metadata", "ownerReferences")
        if not all(any(owner.items() <= item.items() for item in references) for owner in owners):
            others = [
                item for item in references if not any(_same_owner(item, owner) for owner in owners)
            ]
            references = [*others, *owners]
        changed = {**address["metadata"], "ownerReferences": references}
        finalizers = metadata.finalizers(address)
        if PROTECT_ADDRESS not in finalizers and not metadata.is_deleting(address):
            changed["finalizers"] = [*finalizers, PROTECT_ADDRESS]
        await self._update(address, {**address, "metadata": changed})

    async def delete(self, address: JSON) -> None:
        """Remove an address's finalizer, then delete the address; do nothing if it is gone."""
        kept = [name for name in metadata.finalizers(address) if name != PROTECT_ADDRESS]
        with suppress(NotFoundError):
            changed = {**address["metadata"], "finalizers": kept}
            await self._update(address, {**address, "metadata": changed})
            if not metadata.is_deleting(address):
                # By UID: the name may belong to the address of a new claim by now.
                uid = metadata.uid(address)
                await self._client.delete(self._addresses.resource, key_of(address), uid=uid)

    async def _update(self, old: JSON, new: JSON) -> None:
        informer = self._addresses
        await write(self._client, informer.resource, old, new, informer.update_from_write)

    def _owner_references(
        self, claim: JSON, pool: JSON | None, resource: ResourceType
    ) -> list[JSON]:
        """Return an address's owner references: to the claim as controller, and to the pool."""
        owners = [_owner_reference(claim, self._claims, controller=True)]
        if pool is not None:
            owners.append(_owner_reference(pool, resource, controller=False))
        return owners


def is_owned_by_claim(address: JSON, claim: JSON) -> bool:
    """Return whether a claim owns an IPAddress.

    Owners are compared by UID, since a former claim may have had the same name.
    """
    uids = [item.get("uid") for item in metadata.items(address, "metadata", "ownerReferences")]
    return metadata.uid(claim) in uids


def is_created_by_provider(address: JSON, group: str) -> bool:
    """Return whether this provider, rather than a user, created an IPAddress."""
    owners = metadata.items(address, "metadata", "ownerReferences")
    controlled = any(o.get("controller") and o.get("kind") == constants.CLAIM_KIND for o in owners)
    return controlled and external_id.annotation(group) in metadata.annotations(address)


def _owner_reference(owner: JSON, resource: ResourceType, *, controller: bool) -> JSON:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": metadata.name(owner),
        "uid": metadata.uid(owner),
        "controller": controller,
        "blockOwnerDeletion": True,
    }


def _same_owner(reference: JSON, owner: JSON) -> bool:
    """Return whether a reference names ``owner``, whose UID may differ after a move."""
    group = metadata.text(reference, "apiVersion").partition("/")[0]
    return (group, reference.get("kind"), reference.get("name")) == (
        owner["apiVersion"].partition("/")[0],
        owner["kind"],
        owner["name"],
    )


# IPAddresses lose their claims when a user removes the finalizer of a claim, and when a manager
# that has lost the lease creates an address too late.
GRACE_SECONDS = 30.0
"""Seconds to wait for a missing claim, because a restore may create it after its address."""


class OrphanedAddressController:
    """Releases and deletes the provider's IPAddresses whose claims no longer exist."""

    def __init__(
        self,
        registries: Mapping[str, PoolRegistry],
        index: AddressIndex,
        claims: Informer,
        addresses: Informer,
        dialect: IpamDialect,
        caches: Caches,
        context: ControllerContext,
    ) -> None:
        self._registries = registries
        self._index = index
        self._claims = claims
        self._addresses = addresses
        self._dialect = dialect
        self._caches = caches
        self._context = context
        self._debounce = StatusDebounce(GRACE_SECONDS)
        self._paused: set[NamespacedName] = set()
        self._authors = {
            kind: AuthorCalls(registry.reconciler, context.sessions)
            for kind, registry in registries.items()
        }
        self._writer = IPAddressWriter(context.client, dialect, addresses, claims.resource)

    async def reconcile(self, key: NamespacedName) -> Result:
        """Delete one of the provider's addresses if its claim is missing after the grace period."""
        obj = self._addresses.get(key)
        pool = None
        # Addresses of cluster-scoped pools are cached from all namespaces.
        is_in_scope = self._caches.scope.covers_namespace(key.namespace)
        if obj is not None and is_in_scope and not is_deleted_for_move(obj):
            view = self._dialect.read_address(obj)
            pool = self._index.pool_key(view.pool, view.namespace)
        if obj is None or pool is None or self._claims.get(key) is not None:
            self._debounce.forget(key)
            self._paused.discard(key)
            for author in self._authors.values():
                author.forget(key)
            return Result()
        registry = self._registries[pool.kind]
        group = registry.kind.resource.group
        # An address that a user created needs no claim: it keeps the address out of the pool.
        if not is_created_by_provider(obj, group):
            return Result()
        left = self._debounce.left(key, constants.CLAIM_KIND)
        if left > 0:
            return Result(left)
        # Before the pause is read: the event that ends it may arrive before the answer.
        self._paused.add(key)
        if registry.is_paused(pool.key) or await self._is_paused(obj):
            return Result()
        self._paused.discard(key)
        if await self._has_claim(key):
            return Result()
        waiting = await self._release(key, obj, registry, pool.key)
        if waiting is not None:
            # Neither the pool nor its identity wakes an address whose claim is gone.
            return add_resync(Result(waiting.requeue_after), self._context)
        await self._writer.delete(obj)
        self._debounce.forget(key)
        return Result()

    def pop_paused(self) -> Set[NamespacedName]:
        """Return the addresses that were left because of a pause, and forget them.

        Call this when a pause ends, and reconcile them again.
        """
        paused, self._paused = self._paused, set()
        return paused

    async def _release(
        self, key: NamespacedName, obj: JSON, registry: PoolRegistry, pool: NamespacedName
    ) -> Waiting | None:
        """Release an address in the system of its pool; return Waiting until it is released."""
        reconciler, resource = registry.reconciler, registry.kind.resource
        if not isinstance(reconciler, ExternalPoolReconciler):
            return None
        identity = external_id.stored(obj, resource.group)
        # Users can copy the id of another claim, whose address must not be released.
        if identity is None or registry.held_ids.find_taken(obj) is not None:
            return None
        scope = await registry.release_scope(key, identity, pool, obj)
        author, owner = self._authors[resource.kind], describe_owner(obj)
        try:
            with connect_scope(scope, self._context, obj):
                result = await author.call(
                    key, reconciler.release, scope, deletion=True, owner=owner
                )
        except NotAvailableError as error:
            return error.waiting
        return result if isinstance(result, Waiting) else None

    async def _is_paused(self, obj: JSON) -> bool:
        name = metadata.labels(obj).get(constants.CLUSTER_NAME_LABEL)
        cluster = await self._caches.live_cluster(metadata.namespace(obj), name)
        return bool(pause_message(obj, constants.ADDRESS_KIND, cluster))

    async def _has_claim(self, key: NamespacedName) -> bool:
        """Return whether the API server has the claim; the cache may be stale or filtered."""
        try:
            await self._context.client.get(self._claims.resource, key)
        except NotFoundError:
            return False
        return True
