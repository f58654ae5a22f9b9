"""Managed control planes when something is missing, fails, or belongs to another owner."""

from __future__ import annotations

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ManagedControlPlaneConformance
from capsmith_runtime.testing.controlplane.managed_environment import (
    ManagedControlPlaneEnvironment,
)


class TestManagedControlPlaneFaults(ManagedControlPlaneConformance):
    """Managed control planes when something is missing, fails, or belongs to another owner."""

    @scenario
    async def test_the_infrastructure_comes_first(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """No control plane is created before the infrastructure of its Cluster is provisioned.

        Proves: SM-02, CP-25.
        """
        env.add_cluster(provisioned=False)
        env.add_control_plane()
        await env.eventually("it says so", lambda: env.says("Available", "False"))
        assert env.status()["externalManagedControlPlane"] is True
        assert not env.hosting.control_planes()
        env.provision()
        await env.eventually("it is initialised", env.initialized)
