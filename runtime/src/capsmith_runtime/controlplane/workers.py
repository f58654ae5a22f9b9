"""A cluster's workers, all of which are deleted before its control plane (CP-34)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import MACHINE_POOL_KIND
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.caches import BY_CLUSTER, BY_CONTROL_PLANE, Caches, spec_cluster
from capsmith_runtime.reconcile.kinds import core_type
from capsmith_runtime.reconcile.results import Waiting

WAITING_FOR_WORKERS: Final = "WaitingForWorkersDeletion"
_RETRY_SECONDS: Final = 10.0
_NAMED: Final = 5


class ClusterWorkers:
    """Finds a cluster's MachinePools, and its Machines that are not in the control plane.

    Without an API server, their Nodes could be neither drained nor deleted.
    """

    def __init__(self, caches: Caches) -> None:
        self._machines = caches.machines
        self.machine_pools = caches.informer(
            core_type(caches.reader.version, MACHINE_POOL_KIND, "machinepools"),
            caches.scope.select(),
            {BY_CLUSTER: spec_cluster},
            _keep_cluster_name,
        )
        """Informer for MachinePools, which the manager runs."""

    def find_wait(self, namespace: str, cluster: str) -> Waiting | None:
        """Return Waiting while there are workers that must be deleted first, or None.

        Workers are looked up in the caches.
        """
        value = f"{namespace}/{cluster}"
        members = set(self._machines.keys_by_index(BY_CONTROL_PLANE, value))
        found = self._machines.keys_by_index(BY_CLUSTER, value)
        # Sorted, so that the message does not change while the workers stay the same (ST-06).
        machines = sorted(key.name for key in found if key not in members)
        pools = sorted(key.name for key in self.machine_pools.keys_by_index(BY_CLUSTER, value))
        if not machines and not pools:
            return None
        left = "; ".join(
            f"{kind} {_list_some(names)}"
            for kind, names in (("Machines", machines), ("MachinePools", pools))
            if names
        )
        message = f"workers of the cluster still exist: {left}"
        return Waiting(WAITING_FOR_WORKERS, message, _RETRY_SECONDS)

    def set_handler(self, handler: Callable[[str], None]) -> None:
        """Register a function to call with a Cluster's key when one of its workers is deleted."""

        def handle(change: Delta) -> None:
            if change.new is None:
                for value in spec_cluster(change.latest):
                    handler(value)

        # Only deletions matter: the control plane's own deletion may be waiting for the last
        # worker.
        self._machines.add_handler(handle)
        self.machine_pools.add_handler(handle)


def _keep_cluster_name(machine_pool: dict[str, Any]) -> JSON:
    """Return a MachinePool with only the cluster name in its spec, which is the only field read."""
    kept = {name: machine_pool[name] for name in ("apiVersion", "kind", "metadata")}
    name = metadata.text(machine_pool, "spec", "clusterName")
    return {**kept, "spec": {"clusterName": name}}


def _list_some(names: list[str]) -> str:
    more = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown
