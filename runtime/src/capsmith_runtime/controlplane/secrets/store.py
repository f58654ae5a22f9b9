"""Cache for cluster Secrets, each of which is read once after each change.

The watch delivers only metadata. A manager with many clusters therefore neither receives nor keeps
all private keys, nor the bootstrap data, which have the same label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import CLUSTER_NAME_LABEL
from capsmith_runtime.controlplane.secrets.contents import (
    SECRET_TYPE,
    KubeconfigContent,
    SecretReport,
    build_adoption_patch,
    build_secret,
    encode,
    find_cluster,
    group_and_kind,
    read_kubeconfig,
)
from capsmith_runtime.errors import AlreadyExistsError, NotFoundError
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of, version_of
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.kinds import SECRET
from capsmith_runtime.workload.kubeconfig import SECRET_KEY, secret_name

T = TypeVar("T")
Extract = Callable[[JSON], T]

_TRUSTED_SECONDS = 30.0
"""Seconds for which a response is used while the watch does not show the Secret yet."""


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class CachedSecret(Generic[T]):
    """A Secret without its data, together with the part of its content that is kept."""

    obj: JSON
    """Metadata and type of the Secret."""
    content: T
    read_at: float

    @property
    def is_managed(self) -> bool:
        """Return whether the runtime may own and renew the Secret; users' Secrets have other types.

        See SEC-03.
        """
        return metadata.text(self.obj, "type") == SECRET_TYPE


class SecretStore:
    """Reads and writes Secrets, with a cache; the manager runs ``informer``."""

    def __init__(self, caches: Caches, clock: Callable[[], float] = monotonic) -> None:
        self._client = caches.client
        self._clock = clock
        self._secrets: dict[NamespacedName, CachedSecret[Any]] = {}
        self._handler: Callable[[NamespacedName], None] | None = None
        self._owners: dict[tuple[str, str], Informer] = {}
        labelled = caches.scope.select(labels=CLUSTER_NAME_LABEL, metadata_only=True)
        self.informer = caches.informer(SECRET, labelled)
        self.informer.add_handler(self._changed)

    def set_handler(self, handler: Callable[[NamespacedName], None]) -> None:
        """Register a function to call with a cluster's key when another client changes a Secret."""
        self._handler = handler

    def add_owners(self, informer: Informer) -> None:
        """Register the informer for a kind of control planes, which may own Secrets."""
        self._owners[informer.resource.group, informer.resource.kind] = informer

    def find_other_owner(self, secret: CachedSecret[Any], owner: JSON) -> str:
        """Return the name of the existing control plane that owns a Secret instead of ``owner``.

        Returns an empty string if there is none.  Two control planes of one Cluster would otherwise
        take its Secrets from each other forever.
        """
        informer = self._owners.get(group_and_kind(owner))
        for each in metadata.items(secret.obj, "metadata", "ownerReferences"):
            is_other = metadata.text(each, "uid") != metadata.uid(owner)
            if informer is None or not each.get("controller") or not is_other:
                continue
            if group_and_kind(each) == group_and_kind(owner):
                name = metadata.text(each, "name")
                found = informer.get(NamespacedName(metadata.namespace(owner), name))
                # Another object of that name is a successor, for example after a move.
                if found is not None and metadata.uid(found) == metadata.text(each, "uid"):
                    return name
        return ""

    async def find(self, key: NamespacedName, extract: Extract[T]) -> CachedSecret[T] | None:
        """Return the Secret, or None if it does not exist or the watch has not delivered it yet."""
        cached, watched = self._secrets.get(key), self.informer.get(key)
        if cached is not None and self._is_current(cached, watched):
            return cached
        if cached is None and watched is None:
            return None
        return await self.read(key, extract)

    async def read(self, key: NamespacedName, extract: Extract[T]) -> CachedSecret[T] | None:
        """Return the Secret from the API server, not the cache, or None if it does not exist."""
        try:
            return self._update_cache(await self._client.get(SECRET, key), extract)
        except NotFoundError:
            self._secrets.pop(key, None)
            return None

    async def raw(self, key: NamespacedName) -> JSON:
        """Return the Secret with its data, which the caller must not keep.

        Raises NotFoundError if the Secret does not exist.
        """
        return await self._client.get(SECRET, key)

    async def create(self, secret: JSON, extract: Extract[T]) -> CachedSecret[T] | None:
        """Create a Secret and return it, or return the existing Secret if the name is in use.

        Returns None if the existing Secret is deleted in the meantime.
        """
        try:
            return self._update_cache(await self._client.create(SECRET, secret), extract)
        except AlreadyExistsError:
            # The watch may not have delivered the Secret that already has this name.
            return await self.read(key_of(secret), extract)

    async def patch(
        self, secret: CachedSecret[T], body: JSON, extract: Extract[T]
    ) -> CachedSecret[T]:
        """Patch a Secret and return the result.

        Raises ConflictError if it has changed since it was read.
        """
        version = secret.obj["metadata"]["resourceVersion"]
        key = key_of(secret.obj)
        patched = await self._client.patch(SECRET, key, body, resource_version=version)
        return self._update_cache(patched, extract)

    def _update_cache(self, secret: JSON, extract: Extract[T]) -> CachedSecret[T]:
        obj: JSON = {name: secret[name] for name in ("metadata", "type") if name in secret}
        cached = CachedSecret(obj=obj, content=extract(secret), read_at=self._clock())
        self._secrets[key_of(secret)] = cached
        return cached

    def _is_current(self, cached: CachedSecret[Any], watched: JSON | None) -> bool:
        if watched is None:
            # A Secret without the label never appears in the watch, so a time limit has to replace
            # its events.
            return self._clock() - cached.read_at < _TRUSTED_SECONDS
        # Resource versions order the states of one object only, and this is a different object of
        # the same name.
        if metadata.uid(watched) != metadata.uid(cached.obj):
            return False
        return version_of(watched) <= version_of(cached.obj)

    def _changed(self, change: Delta) -> None:
        cluster = find_cluster(change.key)
        if cluster is None:
            return
        cached = self._secrets.get(change.key)
        if change.new is None:
            self._secrets.pop(change.key, None)
        elif cached is not None and self._is_current(cached, change.new):
            return  # the watch event of a write of this process
        if self._handler is not None:
            self._handler(cluster)


CachedKubeconfig = CachedSecret[KubeconfigContent]


class KubeconfigSecrets:
    """Reads and writes ``<cluster>-kubeconfig``, but never overwrites one that a user created."""

    def __init__(self, store: SecretStore) -> None:
        self._store = store

    async def get(
        self, owner: JSON, cluster: NamespacedName, report: SecretReport
    ) -> CachedKubeconfig | None:
        """Return the checked and adopted kubeconfig Secret, or None if there is none yet."""
        key = NamespacedName(cluster.namespace, secret_name(cluster.name))
        secret = await self._store.find(key, read_kubeconfig)
        if secret is None:
            return None
        return await self._check_or_adopt(secret, owner, cluster, report)

    async def write(
        self,
        owner: JSON,
        cluster: NamespacedName,
        content: bytes,
        secret: CachedKubeconfig | None,
        report: SecretReport,
    ) -> CachedKubeconfig | None:
        """Replace ``secret``, or create the Secret; one that a user created is kept.

        Returns None if the Secret was deleted in the meantime.
        """
        data = {SECRET_KEY: content}
        if secret is not None:
            body = {"data": encode(data)}
            return await self._store.patch(secret, body, read_kubeconfig)
        obj = build_secret(secret_name(cluster.name), cluster, owner, data)
        created = await self._store.create(obj, read_kubeconfig)
        if created is None:
            return None
        return await self._check_or_adopt(created, owner, cluster, report)

    async def _check_or_adopt(
        self, secret: CachedKubeconfig, owner: JSON, cluster: NamespacedName, report: SecretReport
    ) -> CachedKubeconfig:
        """Set owner and label on a managed Secret; report problems of a user's Secret."""
        patch = build_adoption_patch(secret.obj, cluster.name, owner)
        other = self._store.find_other_owner(secret, owner) if secret.is_managed else ""
        if other:
            report.add_taken(secret_name(cluster.name), other)
        elif not secret.is_managed:
            _check_kubeconfig(secret, "labels" in patch, cluster, report)
        elif patch:
            return await self._store.patch(secret, {"metadata": patch}, read_kubeconfig)
        return secret


def _check_kubeconfig(
    secret: CachedKubeconfig, unlabelled: bool, cluster: NamespacedName, report: SecretReport
) -> None:
    name, content = secret_name(cluster.name), secret.content
    if content.fault:
        report.add_unusable(name, content.fault)
    elif unlabelled:
        report.add_unlabelled(name, cluster.name)
    elif content.validity is not None:
        report.check_expiry(name, content.validity.end)
