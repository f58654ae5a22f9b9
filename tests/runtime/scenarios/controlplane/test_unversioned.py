"""A managed control plane without ``spec.version``, as nested v0.1.0 has it."""

from __future__ import annotations

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ManagedControlPlaneConformance
from capsmith_runtime.testing.controlplane.managed_environment import ManagedControlPlaneEnvironment
from tests.runtime.scenarios.providers import provider_of

PROVIDER = provider_of(
    "unversioned",
    """\
capsmith: 1
name: cove
repository: https://github.com/cove/cluster-api-provider-cove
contracts: [v1beta2]
releases: {v0.1: v1beta2}
controlPlane:
  CoveControlPlane:
    implements: ControlPlane
    features: {externalManagedControlPlane: true, version: false}
    template: false
""",
)


class TestUnversioned(ManagedControlPlaneConformance):
    """A managed control plane whose service decides which version it runs."""

    @scenario
    async def test_the_service_decides(self, env: ManagedControlPlaneEnvironment) -> None:
        """Proves: CP-02, CP-08, CP-25."""
        await env.running()
        assert "version" not in env.obj()["spec"]
        assert env.status().keys().isdisjoint({"version", "versions"})
        assert env.says("Available", "True")
        assert env.says("RollingOut", "False")
        assert list(env.hosting.control_planes().values()) == [""]
