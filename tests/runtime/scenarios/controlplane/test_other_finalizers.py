"""Control planes that finalizers of other controllers keep."""

from __future__ import annotations

from capsmith_runtime.contract import conditions
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import (
    ControlPlaneConformance,
    ManagedControlPlaneConformance,
)
from capsmith_runtime.testing.controlplane.environment import CONTROL_PLANE, ControlPlaneEnvironment
from capsmith_runtime.testing.controlplane.managed_environment import ManagedControlPlaneEnvironment
from tests.runtime.scenarios.kept_objects import check_condition, delete_but_keep
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("control-plane")


@run_with("control-plane", "two-contracts")
class TestOtherFinalizers(ControlPlaneConformance):
    """A control plane without Machines is not available, even if it stays."""

    @scenario
    async def test_a_deleted_control_plane_is_not_available(
        self, env: ControlPlaneEnvironment
    ) -> None:
        await env.running(1)
        obj = await delete_but_keep(env, env.kind.resource.kind, CONTROL_PLANE)
        if conditions.find(obj["status"]["conditions"], "Deleting") is not None:
            check_condition(obj, "Deleting", "True")
        assert env.shows(obj, "Available", "False")
        assert not obj["status"].get("replicas")


@run_with("managed")
class TestOtherFinalizersOfManaged(ManagedControlPlaneConformance):
    """A control plane whose service is deleted is not available, even if it stays."""

    @scenario
    async def test_a_deleted_control_plane_is_not_available(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        await env.running()
        obj = await delete_but_keep(env, env.kind.resource.kind, CONTROL_PLANE)
        check_condition(obj, "Available", "False")
