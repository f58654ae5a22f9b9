"""What only you know of your control plane: how its members are, and how they come and go."""

from __future__ import annotations

from .. import (
    ControlPlane,
    ControlPlaneHealth,
    ControlPlaneMember,
    ControlPlaneReconciler,
    Waiting,
)
from .._generated.api.harbour_control_plane import HarbourControlPlaneSpec


class HarbourControlPlaneReconciler(ControlPlaneReconciler[HarbourControlPlaneSpec]):
    """Machines are made, replaced and rolled out for you; override what your servers need.

    Each method may be left out: then the one of the base class does, which works for control
    planes whose members need no farewell.
    """

    def health(
        self, control_plane: ControlPlane[HarbourControlPlaneSpec]
    ) -> ControlPlaneHealth | Waiting:
        """Say which members are broken, by name: {"machine": "etcd has no leader"}."""
        return ControlPlaneHealth()

    def after_add(self, member: ControlPlaneMember[HarbourControlPlaneSpec]) -> Waiting | None:
        """A Machine has become a Node; None when nothing (more) has to be done for it."""
        member.control_plane.logger.info("joined", machine=member.machine.name)
        return None

    def before_remove(self, member: ControlPlaneMember[HarbourControlPlaneSpec]) -> Waiting | None:
        """A Machine is about to lose its server; Waiting holds that, for example to leave etcd."""
        member.control_plane.logger.info("leaves", machine=member.machine.name)
        return None
