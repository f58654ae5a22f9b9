"""Unit tests of KeelControlPlaneReconciler; they need no API server."""

from __future__ import annotations

from capsmith_runtime.testing import controlplane as testing

from cluster_api_provider_keel._generated.api.keel_control_plane import KeelControlPlaneSpec
from cluster_api_provider_keel.controllers.keel_control_plane import KeelControlPlaneReconciler

SPEC = testing.spec_from(
    KeelControlPlaneSpec,
    {
        "version": "v1.36.0",
        "machineTemplate": {
            "infrastructureRef": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "ExampleMachineTemplate",
                "name": "example",
                "namespace": "default",
            }
        },
    },
)


def test_members_are_healthy_by_default() -> None:
    health = KeelControlPlaneReconciler().health(testing.control_plane(SPEC, machines=3))

    assert health == testing.ALL_HEALTHY


def test_members_need_no_preparation_by_default() -> None:
    member = testing.control_plane_member(SPEC, machines=3)
    reconciler = KeelControlPlaneReconciler()

    assert reconciler.after_add(member) is None
    assert reconciler.before_remove(member) is None
