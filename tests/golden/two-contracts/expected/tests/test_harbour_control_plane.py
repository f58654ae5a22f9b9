"""Unit tests of HarbourControlPlaneReconciler; they need no API server."""

from __future__ import annotations

from capsmith_runtime.testing import controlplane as testing

from cluster_api_provider_harbour._generated.api.harbour_control_plane import (
    HarbourControlPlaneSpec,
)
from cluster_api_provider_harbour.controllers.harbour_control_plane import (
    HarbourControlPlaneReconciler,
)

SPEC = testing.spec_from(
    HarbourControlPlaneSpec,
    {
        "version": "v1.36.0",
        "machineTemplate": {
            "spec": {
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "HarbourMachineTemplate",
                    "name": "harbourmachinetemplate",
                }
            }
        },
    },
)


def test_members_are_healthy_by_default() -> None:
    health = HarbourControlPlaneReconciler().health(testing.control_plane(SPEC, machines=3))

    assert health == testing.ALL_HEALTHY


def test_members_need_no_preparation_by_default() -> None:
    member = testing.control_plane_member(SPEC, machines=3)
    reconciler = HarbourControlPlaneReconciler()

    assert reconciler.after_add(member) is None
    assert reconciler.before_remove(member) is None
