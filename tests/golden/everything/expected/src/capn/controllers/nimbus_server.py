"""Servers of Machines."""

from __future__ import annotations

from capsmith_runtime.infrastructure import (
    Address,
    Deleted,
    InfraMachineDeleteScope,
    InfraMachineReconciler,
    InfraMachineScope,
    InfraMachineState,
    Terminated,
    Waiting,
)

from .._generated.api.nimbus_server import NimbusServerSpec
from ..cloud import SimulatedCloud


class NimbusServerReconciler(InfraMachineReconciler[NimbusServerSpec]):
    """Replace the simulated cloud with your own client; keep the signatures."""

    def __init__(self, cloud: SimulatedCloud | None = None) -> None:
        self._cloud = cloud or SimulatedCloud()

    def reconcile_normal(
        self, machine: InfraMachineScope[NimbusServerSpec]
    ) -> InfraMachineState | Waiting | Terminated:
        """Look up the server, create it if it never existed, and return its state.

        Look it up by its stable external id: an earlier call may have created the server and
        crashed before it could store anything.
        """
        server = self._cloud.find_server(machine.external_id)
        if server is None and machine.is_provisioned:
            # A new server would run old bootstrap data; let Cluster API replace the Machine.
            return Terminated("ServerNotFound", f"{machine.provider_id} no longer exists")
        provider_id = machine.provider_id
        if server is None and provider_id is None:
            user_data = machine.bootstrap_data().text if self._cloud.stores_user_data() else None
            created = self._cloud.create_server(
                machine.external_id,
                machine.name,
                machine.cluster.name,
                user_data,
                machine.failure_domain,
            )
            machine.logger.info("created", server=created.id)
            provider_id = created.provider_id
            server = self._cloud.find_server(machine.external_id)
        if server is None:
            # Searches may lag behind: only a server that was found once can have disappeared.
            message = f"{provider_id} is not listed yet"
            return Waiting("ServerStarting", message, requeue_after=2.0, provider_id=provider_id)
        return InfraMachineState(
            provider_id=server.provider_id,
            addresses=[Address("Hostname", server.name), Address("InternalIP", "127.0.0.1")],
            failure_domain=server.zone,
        )

    def reconcile_delete(
        self, machine: InfraMachineDeleteScope[NimbusServerSpec]
    ) -> Deleted | Waiting:
        """Delete the server.  Return Deleted only when it no longer exists.

        Do not rely on a search: it may not find a server that was created a moment ago.
        """
        if self._cloud.delete_server(machine.external_id):
            machine.logger.info("deleted")
        return Deleted()
