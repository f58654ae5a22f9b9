"""Control planes: health of their members, and hooks for members that join or leave."""

from __future__ import annotations

from capsmith_runtime.controlplane import (
    ControlPlaneHealth,
    ControlPlaneMember,
    ControlPlaneReconciler,
    ControlPlaneScope,
    Waiting,
)

from .._generated.api.keel_control_plane import KeelControlPlaneSpec


class KeelControlPlaneReconciler(ControlPlaneReconciler[KeelControlPlaneSpec]):
    """Health of the members, and hooks; the runtime creates and replaces the Machines.

    Every method is optional: the base class works for control planes whose members need no
    preparation before they leave.
    """

    def health(
        self, control_plane: ControlPlaneScope[KeelControlPlaneSpec]
    ) -> ControlPlaneHealth | Waiting:
        """Report unhealthy members by name, for example {"machine": "etcd has no leader"}."""
        return ControlPlaneHealth()

    def after_add(self, member: ControlPlaneMember[KeelControlPlaneSpec]) -> Waiting | None:
        """Handle a Machine that has become a Node; return None when nothing is left to do."""
        member.control_plane.logger.info("joined", machine=member.machine.name)
        return None

    def before_remove(self, member: ControlPlaneMember[KeelControlPlaneSpec]) -> Waiting | None:
        """Prepare a Machine for its deletion, which Waiting delays, for example to leave etcd."""
        member.control_plane.logger.info("leaves", machine=member.machine.name)
        return None
