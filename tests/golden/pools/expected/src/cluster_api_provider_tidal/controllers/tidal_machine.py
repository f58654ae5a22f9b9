"""Servers of Machines."""

from __future__ import annotations

from capsmith_runtime.infrastructure import (
    Address,
    Deleted,
    InfraMachineDeleteScope,
    InfraMachineReconciler,
    InfraMachineScope,
    InfraMachineState,
    MachineCapacity,
    Terminated,
    Waiting,
)

from .._generated.api.tidal_machine import TidalMachineSpec
from ..cloud import SimulatedCloud


class TidalMachineReconciler(InfraMachineReconciler[TidalMachineSpec]):
    """Replace the simulated cloud with a client of your own; keep the signatures."""

    def __init__(self, cloud: SimulatedCloud | None = None) -> None:
        self._cloud = cloud or SimulatedCloud()

    def reconcile_normal(
        self, machine: InfraMachineScope[TidalMachineSpec]
    ) -> InfraMachineState | Waiting | Terminated:
        """Look up the server, create it if it never existed, and return its state.

        Look it up by its stable external id: an earlier call may have created the server and
        crashed before it could store anything.
        """
        server = self._cloud.find_server(machine.external_id)
        if server is None and machine.provider_id is not None:
            # A second server would run with old bootstrap data: Cluster API replaces the Machine.
            return Terminated("ServerNotFound", f"{machine.provider_id} no longer exists")
        if server is None:
            user_data = machine.bootstrap_data().text if self._cloud.stores_user_data() else None
            server = self._cloud.create_server(
                machine.external_id, machine.name, machine.cluster.name, user_data
            )
            machine.logger.info("created", server=server.id)
        return InfraMachineState(
            provider_id=server.provider_id,
            addresses=[Address("Hostname", server.name), Address("InternalIP", "127.0.0.1")],
            failure_domain=machine.failure_domain,
        )

    def reconcile_delete(
        self, machine: InfraMachineDeleteScope[TidalMachineSpec]
    ) -> Deleted | Waiting:
        """Look up the server and delete it.  Return Deleted only when it no longer exists."""
        if self._cloud.find_server(machine.external_id) is not None:
            self._cloud.delete_server(machine.external_id)
            machine.logger.info("deleted")
        return Deleted()

    def capacity(self, spec: TidalMachineSpec) -> MachineCapacity:
        """Return the capacity of a machine with this spec, for scaling up from zero."""
        return MachineCapacity(resources={"cpu": "2", "memory": "4Gi"}, architecture="amd64")
