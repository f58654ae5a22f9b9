"""The init lock of BC-12, which allows only one machine at a time to initialise a cluster."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.bootstrap import (
    build_init_lock,
    init_lock_data,
    init_lock_holder,
    init_lock_name,
)
from capsmith_runtime.contract.constants import MACHINE_KIND
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType
from capsmith_runtime.reconcile.kinds import core_type

CONFIG_MAP: Final = ResourceType("", "v1", "ConfigMap", "configmaps")
_MAX_RELEASED: Final = 10_000
"""Maximum number of Clusters remembered as released; others cost a request."""


class ControlPlaneInitMutex:
    """A mutex on the API server for the initialisation of a control plane.

    Every call reads from the API server rather than a cache: two managers with outdated caches
    could otherwise both take the lock.
    """

    def __init__(self, client: KubeClient, core_version: str) -> None:
        self._client = client
        self._core_version = core_version
        self._machines = core_type(core_version, MACHINE_KIND, "machines")
        self._released: OrderedDict[NamespacedName, str] = OrderedDict()

    async def acquire(self, cluster: Cluster, machine: Machine) -> str:
        """Try to take the lock without waiting, and return the name of the Machine that holds it.

        The name is empty if a ConfigMap with that name exists but is not a lock. Raises
        ConflictError if another machine took the lock at the same time.
        """
        try:
            lock = await self._client.get(CONFIG_MAP, _key(cluster))
        except NotFoundError:
            manifest = build_init_lock(cluster, self._core_version, machine.name)
            lock = await self._client.create(CONFIG_MAP, manifest)
        holder = init_lock_holder(lock)
        # A holder that was deleted can no longer initialise anything, and would keep the lock
        # forever.
        if holder is None or holder == machine.name or await self._exists(cluster, holder):
            return holder or ""
        return await self._take_over(lock, machine)

    async def release(self, cluster: Cluster) -> None:
        """Delete an initialised cluster's lock.

        Only the first call for a cluster sends requests.
        """
        key = _key(cluster)
        if self._released.get(key) == cluster.uid:
            return
        try:
            lock = await self._client.get(CONFIG_MAP, key)
            # A ConfigMap that is not a lock belongs to a user.
            if init_lock_holder(lock) is not None:
                await self._client.delete(CONFIG_MAP, key, uid=metadata.uid(lock))
        except NotFoundError:
            pass  # another manager has released it, or there never was one
        self._released[key] = cluster.uid
        self._released.move_to_end(key)
        if len(self._released) > _MAX_RELEASED:
            self._released.popitem(last=False)

    async def _exists(self, cluster: Cluster, machine: str) -> bool:
        try:
            await self._client.get(self._machines, NamespacedName(cluster.namespace, machine))
        except NotFoundError:
            return False
        return True

    async def _take_over(self, lock: JSON, machine: Machine) -> str:
        """Take over the lock of a Machine that is gone, and return the name of the new holder.

        If another machine tries to take it at the same time, the resource version decides.
        """
        key = NamespacedName(metadata.namespace(lock), metadata.name(lock))
        version = metadata.text(lock, "metadata", "resourceVersion")
        body = {"data": init_lock_data(machine.name)}
        patched = await self._client.patch(CONFIG_MAP, key, body, resource_version=version)
        return init_lock_holder(patched) or ""


def _key(cluster: Cluster) -> NamespacedName:
    return NamespacedName(cluster.namespace, init_lock_name(cluster))
