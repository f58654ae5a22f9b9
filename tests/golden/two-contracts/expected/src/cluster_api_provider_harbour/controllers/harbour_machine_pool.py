"""Pools of servers that the infrastructure keeps as one thing."""

from __future__ import annotations

from .. import (
    Address,
    Gone,
    InfraMachinePool,
    InfraMachinePoolDeletion,
    InfraMachinePoolReconciler,
    InfraMachinePoolState,
    Instance,
    Waiting,
)
from .._generated.api.harbour_machine_pool import HarbourMachinePoolSpec
from ..cloud import SCHEME, Server, SimulatedCloud
from ..server_groups import ServerGroups

LOOK_SECONDS = 10.0
"""How often to look at a pool that the infrastructure's own autoscaler may have changed."""


class HarbourMachinePoolReconciler(InfraMachinePoolReconciler[HarbourMachinePoolSpec]):
    """Replace the simulated cloud by your own; the shape of the two methods stays."""

    def __init__(self, cloud: SimulatedCloud | None = None) -> None:
        self._cloud = cloud or SimulatedCloud()
        self._groups = ServerGroups(self._cloud)

    def reconcile_normal(
        self, pool: InfraMachinePool[HarbourMachinePoolSpec]
    ) -> InfraMachinePoolState | Waiting:
        """Look first, bring the group to the size that is wanted, and answer with what there is.

        A new spec or version counts for servers that are made from now on; if yours has to
        replace those that exist, this is the place.
        """
        group = self._groups.find(pool.external_id)
        size = pool.replicas
        if group is not None and pool.replicas_managed_elsewhere:
            size = group.size
        user_data = None
        if len(self._groups.servers(pool.external_id)) < size and self._cloud.wants_user_data():
            # Read each time: what a server has to run today may not be what it was last week.
            user_data = pool.bootstrap_data().text
        servers = self._groups.scale(
            pool.external_id, pool.name, pool.cluster.name, size, user_data
        )
        return InfraMachinePoolState(
            instances=[_instance(server, pool.version) for server in servers],
            replicas=size,
            provider_id=f"{SCHEME}://{pool.external_id}",
            requeue_after=LOOK_SECONDS if pool.replicas_managed_elsewhere else None,
        )

    def reconcile_delete(
        self, pool: InfraMachinePoolDeletion[HarbourMachinePoolSpec]
    ) -> Gone | Waiting:
        """Remove the group with its servers, and say Gone only when it is gone."""
        if self._groups.find(pool.external_id) is not None:
            self._groups.delete(pool.external_id)
            pool.logger.info("deleted")
        return Gone()


def _instance(server: Server, version: str | None) -> Instance:
    return Instance(
        provider_id=server.provider_id,
        name=server.name,
        addresses=[Address("Hostname", server.name), Address("InternalIP", "127.0.0.1")],
        version=version,
    )
