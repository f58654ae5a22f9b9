"""The servers behind Machines."""

from __future__ import annotations

from .. import (
    Address,
    Gone,
    InfraMachine,
    InfraMachineDeletion,
    InfraMachineReconciler,
    InfraMachineState,
    Waiting,
)
from .._generated.api.skiff_machine import SkiffMachineSpec
from ..cloud import SimulatedCloud


class SkiffMachineReconciler(InfraMachineReconciler[SkiffMachineSpec]):
    """Replace the simulated cloud by your own; the shape of the two methods stays."""

    def __init__(self, cloud: SimulatedCloud | None = None) -> None:
        self._cloud = cloud or SimulatedCloud()

    def reconcile_normal(
        self, machine: InfraMachine[SkiffMachineSpec]
    ) -> InfraMachineState | Waiting:
        """Look first, create only what is missing, and answer with what there is.

        The process may have died right after it created the server: only looking for the server,
        by a mark that does not change, tells.
        """
        server = self._cloud.find_server(machine.external_id)
        if server is None:
            user_data = machine.bootstrap_data().text if self._cloud.wants_user_data() else None
            server = self._cloud.create_server(
                machine.external_id, machine.name, machine.cluster.name, user_data
            )
            machine.logger.info("created", server=server.id)
        return InfraMachineState(
            provider_id=server.provider_id,
            addresses=[
                Address("Hostname", server.name),
                *(Address("InternalIP", ip.address) for ip in machine.ip_addresses),
            ],
            failure_domain=machine.failure_domain,
        )

    def reconcile_delete(self, machine: InfraMachineDeletion[SkiffMachineSpec]) -> Gone | Waiting:
        """Look first, remove what is there, and say Gone only when it is gone."""
        if self._cloud.find_server(machine.external_id) is not None:
            self._cloud.delete_server(machine.external_id)
            machine.logger.info("deleted")
        return Gone()
