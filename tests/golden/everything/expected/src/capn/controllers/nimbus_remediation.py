"""How NimbusRemediation objects remediate unhealthy machines."""

from __future__ import annotations

from capsmith_runtime.remediation import (
    Deleted,
    RemediationDeleteScope,
    RemediationFailed,
    RemediationReconciler,
    RemediationScope,
    RemediationState,
    Waiting,
)

from .._generated.api.nimbus_remediation import NimbusRemediationSpec
from ..cloud import SimulatedCloud


class NimbusRemediationReconciler(RemediationReconciler[NimbusRemediationSpec]):
    """Replace the simulated cloud with your own client; keep the signatures."""

    def __init__(self, cloud: SimulatedCloud | None = None) -> None:
        self._cloud = cloud or SimulatedCloud()

    def reconcile_normal(
        self, remediation: RemediationScope[NimbusRemediationSpec]
    ) -> RemediationState | RemediationFailed | Waiting:
        """Restart the server once.  Core deletes the object when the machine is healthy again."""
        server = remediation.infra_machine.external_id
        if self._cloud.find_server(server) is None:
            return RemediationFailed("ServerNotFound", "the server does not exist")
        if self._cloud.restart_server(server, remediation.external_id):
            remediation.logger.info("restarted the server", server=server)
        return RemediationState()

    def reconcile_delete(
        self, remediation: RemediationDeleteScope[NimbusRemediationSpec]
    ) -> Deleted | Waiting:
        """Undo what must not outlive the remediation.  Nothing is left of a restart."""
        return Deleted()
