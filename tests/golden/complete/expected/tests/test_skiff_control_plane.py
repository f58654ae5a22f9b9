"""Unit tests of SkiffControlPlaneReconciler; they need no API server."""

from __future__ import annotations

from capsmith_runtime.testing import controlplane as testing

from cluster_api_provider_skiff._generated.api.skiff_control_plane import SkiffControlPlaneSpec
from cluster_api_provider_skiff.controllers.skiff_control_plane import SkiffControlPlaneReconciler

SPEC = testing.spec_from(
    SkiffControlPlaneSpec,
    {
        "version": "v1.36.0",
        "machineTemplate": {
            "spec": {
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "SkiffMachineTemplate",
                    "name": "skiffmachinetemplate",
                }
            }
        },
    },
)


def test_members_are_healthy_by_default() -> None:
    health = SkiffControlPlaneReconciler().health(testing.control_plane(SPEC, machines=3))

    assert health == testing.ALL_HEALTHY


def test_members_need_no_preparation_by_default() -> None:
    member = testing.control_plane_member(SPEC, machines=3)
    reconciler = SkiffControlPlaneReconciler()

    assert reconciler.after_add(member) is None
    assert reconciler.before_remove(member) is None
