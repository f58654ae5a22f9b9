"""The kit of a provider with pools and no kind of machines, such as node pools of a service."""

from __future__ import annotations

from capsmith_runtime.testing.conformance import conformance_tests
from tests.runtime.scenarios.providers import provider_of

PROVIDER = provider_of(
    "pools-without-machines",
    """\
capsmith: 1
name: shoal
repository: https://github.com/shoal/cluster-api-provider-shoal
contracts: [v1beta2]
releases: {v0.1: v1beta2}
machines: false
infrastructure:
  ShoalCluster:
    implements: InfraCluster
  ShoalPool:
    implements: InfraMachinePool
    spec: {size: string!}
controlPlane:
  ShoalControlPlane:
    implements: ControlPlane
    features: {externalManagedControlPlane: true}
components: {infrastructure: [infrastructure, controlPlane]}
""",
)
_TESTS = conformance_tests(PROVIDER)
globals().update(
    {name: test for name, test in _TESTS.items() if name.startswith("TestMachinePool")}
)


def test_the_pool_is_tested_without_machines() -> None:
    assert "TestMachinePool" in _TESTS
    assert "TestInfraMachine" not in _TESTS
