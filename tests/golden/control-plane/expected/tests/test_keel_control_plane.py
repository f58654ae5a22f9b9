"""Your tests of KeelControlPlane: no API server is needed."""

from __future__ import annotations

from cluster_api_provider_keel._generated import control_plane_testing as testing
from cluster_api_provider_keel._generated.api.keel_control_plane import KeelControlPlaneSpec
from cluster_api_provider_keel.controllers.keel_control_plane import KeelControlPlaneReconciler

SPEC = testing.spec_from(
    KeelControlPlaneSpec,
    {
        "version": "v1.34.0",
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


def test_members_are_well_until_you_say_otherwise() -> None:
    health = KeelControlPlaneReconciler().health(testing.control_plane(SPEC, machines=3))

    assert health == testing.ALL_WELL


def test_a_member_comes_and_goes() -> None:
    member = testing.control_plane_member(SPEC, machines=3)
    reconciler = KeelControlPlaneReconciler()

    assert reconciler.after_add(member) is None
    assert reconciler.before_remove(member) is None
