"""The kit of a provider on whose infrastructure no Machines run, such as virtual clusters."""

from __future__ import annotations

from capsmith_runtime.testing.conformance import conformance_tests
from tests.runtime.scenarios.providers import provider_of

PROVIDER = provider_of(
    "without-machines",
    """\
capsmith: 1
name: atoll
repository: https://github.com/atoll/cluster-api-provider-atoll
contracts: [v1beta2]
releases: {v0.1: v1beta2}
machines: false
infrastructure:
  AtollCluster:
    implements: InfraCluster
    spec: {size: string!}
  AtollLagoonCluster:
    implements: InfraCluster
    features: {controlPlaneEndpoint: false}
  AtollNetwork:
    implements: Resource
""",
)
_TESTS = conformance_tests(PROVIDER)
globals().update(_TESTS)


def test_the_scenarios_need_no_machines() -> None:
    found = {name for name in _TESTS if not name.startswith("TestResource")}
    assert found == {
        "TestClustersWithoutMachines",
        "TestControlPlaneEndpoint",
        "TestInfraCluster",
        "TestNamespaces",
        "TestSamples",
        "TestTemplates",
    }
    case_ids = {case.id for case in _TESTS["TestInfraCluster"].cases(PROVIDER)}
    assert case_ids == {"core-v1beta2-AtollCluster", "core-v1beta2-AtollLagoonCluster"}
