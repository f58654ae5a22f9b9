"""Control planes without ``spec.version``, as nested v0.1.0 and agent v0.3.2 have them."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.conformance.controlplane.base import (
    ControlPlaneConformance,
    ManagedControlPlaneConformance,
)
from capsmith_runtime.testing.controlplane.environment import (
    GROUP,
    NAMESPACE,
    ControlPlaneEnvironment,
)
from capsmith_runtime.testing.controlplane.managed_environment import ManagedControlPlaneEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest
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


NAME_LABEL = f"{GROUP}/control-plane-name"
MACHINES = provider_of(
    "unversioned-machines",
    """\
capsmith: 1
name: inlet
repository: https://github.com/inlet/cluster-api-provider-inlet
contracts: [v1beta2]
releases: {v0.1: v1beta2}
controlPlane:
  InletControlPlane:
    implements: ControlPlane
    bootstrap: {group: bootstrap.cluster.x-k8s.io, kind: InletConfig}
    spec: {distributionVersion: string!}
    contractFields: {without: [spec.version]}
    template: false
""",
)


class TestUnversionedMachines(ControlPlaneConformance):
    """A control plane whose Machines have no version: that of their Nodes is reported."""

    @classmethod
    def cases(cls, _: ProviderUnderTest) -> Sequence[KindCase[ControlPlaneKind]]:
        """Return the cases of the provider with Machines."""
        return super().cases(MACHINES)

    @scenario
    async def test_the_nodes_have_the_version(self, env: ControlPlaneEnvironment) -> None:
        """Proves: CP-08, CP-10."""
        await env.running(3)
        assert all("version" not in each["spec"] for each in env.api.all("Machine"))
        assert env.status()["version"] == "v1.34.0"
        assert env.status()["versions"] == [{"version": "v1.34.0", "replicas": 3}]

    @scenario
    async def test_another_template_replaces_all(self, env: ControlPlaneEnvironment) -> None:
        """Proves: CP-20."""
        await env.running(1)
        (before,) = env.names()
        env.change_machines()
        await env.eventually("it is new", lambda: env.names() and before not in env.names())
        await env.settled(1)

    @scenario
    async def test_machines_of_any_version_are_adopted(self, env: ControlPlaneEnvironment) -> None:
        """Proves: CP-19."""
        await env.running(1)
        (name,) = env.names()
        await env.stop()
        metadata = {"ownerReferences": None, "labels": {NAME_LABEL: None}}
        orphan = {"metadata": metadata, "spec": {"version": "v1.28.0"}}
        env.api.change("Machine", NamespacedName(NAMESPACE, name), orphan)
        env.start()

        def is_adopted() -> bool:
            machine = env.api.find("Machine", NamespacedName(NAMESPACE, name)) or {}
            return NAME_LABEL in machine["metadata"]["labels"]

        await env.eventually("it is adopted", is_adopted)
        await env.settled(1)
        assert env.names() == [name]
