"""Your tests of SkiffControlPlane: no API server is needed."""

from __future__ import annotations

from cluster_api_provider_skiff._generated import control_plane_testing as testing
from cluster_api_provider_skiff._generated.api.skiff_control_plane import SkiffControlPlaneSpec
from cluster_api_provider_skiff.controllers.skiff_control_plane import SkiffControlPlaneReconciler

SPEC = testing.spec_from(
    SkiffControlPlaneSpec,
    {
        "version": "v1.34.0",
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


def test_members_are_well_until_you_say_otherwise() -> None:
    health = SkiffControlPlaneReconciler().health(testing.control_plane(SPEC, machines=3))

    assert health == testing.ALL_WELL


def test_a_member_comes_and_goes() -> None:
    member = testing.control_plane_member(SPEC, machines=3)
    reconciler = SkiffControlPlaneReconciler()

    assert reconciler.after_add(member) is None
    assert reconciler.before_remove(member) is None
