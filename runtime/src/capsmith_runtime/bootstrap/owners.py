"""The owners of bootstrap configurations: Machines and MachinePools (BC-11)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import CORE_GROUP, MACHINE_KIND, MACHINE_POOL_KIND
from capsmith_runtime.contract.core import Machine
from capsmith_runtime.contract.machine_pool import MachinePool, read_machine_pool
from capsmith_runtime.contract.model import Object
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import BY_CONTROL_PLANE, Caches


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigOwner:
    """The owner of a configuration: a Machine or a MachinePool."""

    machine: Machine | None
    pool: MachinePool | None

    @property
    def cluster_name(self) -> str:
        """Return the name of the Cluster that the owner belongs to."""
        return self._owner.cluster_name

    @property
    def data_secret_name(self) -> str | None:
        """Return the data Secret's name, which core or the user has set in the owner's spec.

        Returns None if it is not set.
        """
        return self._owner.data_secret_name or None

    @property
    def deleting(self) -> bool:
        """Return whether the owner is being deleted, and therefore no longer needs data."""
        return self._owner.deleting

    @property
    def is_control_plane(self) -> bool:
        """Return whether the owner is a control plane machine."""
        return self.machine is not None and self.machine.is_control_plane

    def inputs_digest(self, config: Object) -> str:
        """Return a digest of the inputs to a pool's bootstrap data, or "" for a Machine.

        A Machine's data are used once.  A pool's data are regenerated when an input changes,
        because machines that the pool creates later use them (MP-19).
        """
        if self.pool is None:
            return ""
        # Only inputs that the author's code can read and a user can change: nothing else may
        # replace the data.
        inputs = (metadata.mapping(config, "spec"), self.pool.version)
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def _owner(self) -> Machine | MachinePool:
        owner = self.machine or self.pool
        assert owner is not None
        return owner


class ConfigOwnerFinder:
    """Finds the Machine or MachinePool that owns a bootstrap configuration, in the caches."""

    def __init__(self, caches: Caches, pools: Informer) -> None:
        self._caches = caches
        self._pools = pools

    def find(self, config: JSON) -> ConfigOwner | None:
        """Return the configuration's owner, or None if there is none or it is not cached yet.

        A clone of a template gets its owner from core shortly after its creation.
        """
        machine = self._caches.machine_of(config)
        if machine is not None:
            return ConfigOwner(machine=machine, pool=None)
        name = metadata.owner_name(config, MACHINE_POOL_KIND, CORE_GROUP)
        obj = self._pools.get(NamespacedName(metadata.namespace(config), name)) if name else None
        if obj is None:
            return None
        return ConfigOwner(machine=None, pool=read_machine_pool(obj))

    def machine_with_data(self, machine: Machine) -> str:
        """Return the name of another control plane machine that has data, or "" if there is none.

        ``machine`` may initialise the control plane only if there is no such machine (BC-12).
        """
        cluster = f"{machine.namespace}/{machine.cluster_name}"
        for obj in self._caches.machines.by_index(BY_CONTROL_PLANE, cluster):
            other = self._caches.reader.read_machine(obj)
            # A machine with data may already be initialising the cluster, even if nothing shows it
            # yet.
            if other.data_secret_name and other.name != machine.name:
                return other.name
        return ""


def owner_keys(config: JSON) -> Iterable[str]:
    """Yield a configuration's index keys: the :func:`owner_key` of each of its owners."""
    for kind in (MACHINE_KIND, MACHINE_POOL_KIND):
        name = metadata.owner_name(config, kind, CORE_GROUP)
        if name:
            yield owner_key(kind, metadata.namespace(config), name)


def owner_key(kind: str, namespace: str, name: str) -> str:
    """Return the index key for finding an owner's configuration."""
    return f"{kind}/{namespace}/{name}"
