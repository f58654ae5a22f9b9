"""Pools of servers that the infrastructure manages as a whole."""

from __future__ import annotations

from capsmith_runtime.infrastructure import (
    Address,
    Deleted,
    InfraMachinePoolDeleteScope,
    InfraMachinePoolReconciler,
    InfraMachinePoolScope,
    InfraMachinePoolState,
    Instance,
    Waiting,
)

from .._generated.api.nimbus_machine_pool import NimbusMachinePoolSpec
from ..cloud import SCHEME, Server
from ..server_groups import GroupSessions, outdated_servers

POLL_SECONDS = 10.0
"""Seconds between reads of a pool that changes without events.

Its servers are being replaced, or the infrastructure's own autoscaler may scale it.
"""


class NimbusMachinePoolReconciler(InfraMachinePoolReconciler[NimbusMachinePoolSpec]):
    """Replace the simulated cloud with your own client; keep the signatures."""

    session_factory = GroupSessions

    def reconcile_normal(
        self, pool: InfraMachinePoolScope[NimbusMachinePoolSpec]
    ) -> InfraMachinePoolState | Waiting:
        """Look up the group, scale it to the desired size, and return its servers.

        Servers with another Kubernetes version are replaced, one in each call.  A new spec applies
        to servers that are created from now on; replace existing ones here if it has to reach them.
        """
        # The session of the pool's own identity, or else of its cluster's.
        groups = pool.session(GroupSessions)
        exists = groups.find(pool.external_id) is not None
        # Another autoscaler may change the group's size at any moment: never write back a size.
        size = None if exists and pool.replicas_managed_elsewhere else pool.replicas
        user_data = None
        servers = groups.servers(pool.external_id)
        needs_data = size is None or len(servers) < size or outdated_servers(servers, pool.version)
        if needs_data and groups.cloud.stores_user_data():
            # Read the data each time: they change, for example when a bootstrap token is renewed.
            user_data = pool.bootstrap_data().text
        servers = groups.scale(
            pool.external_id, pool.name, pool.cluster.name, size, pool.version, user_data
        )
        is_changing = pool.replicas_managed_elsewhere or outdated_servers(servers, pool.version)
        return InfraMachinePoolState(
            instances=[_instance(server) for server in servers],
            replicas=len(servers),
            provider_id=f"{SCHEME}://{pool.external_id}",
            requeue_after=POLL_SECONDS if is_changing else None,
        )

    def reconcile_delete(
        self, pool: InfraMachinePoolDeleteScope[NimbusMachinePoolSpec]
    ) -> Deleted | Waiting:
        """Delete the group with its servers.  Return Deleted only when it no longer exists."""
        if pool.session(GroupSessions).delete(pool.external_id):
            pool.logger.info("deleted")
        return Deleted()


def _instance(server: Server) -> Instance:
    return Instance(
        provider_id=server.provider_id,
        name=server.name,
        addresses=[Address("Hostname", server.name), Address("InternalIP", "127.0.0.1")],
        version=server.version,  # not the pool's: an outdated server still runs its own
    )
