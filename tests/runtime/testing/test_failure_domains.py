"""Which kinds the conformance tests of failure domains run for, and what they compare."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.testing.conformance.infrastructure.failure_domains import (
    TestFailureDomains as FailureDomains,
)
from capsmith_runtime.testing.conformance.infrastructure.failure_domains import check_server
from capsmith_runtime.testing.provider import ProviderUnderTest, replace_group
from tests.runtime.infrastructure.scripted_provider import COMPONENT, PROVIDER, NoInfrastructure

CLUSTER, MACHINE = {"failureDomains"}, {"failureDomain"}


class LocatedServers(NoInfrastructure):
    """Knows where its servers are."""

    def failure_domains(self) -> dict[str, str]:
        return {"a": "zone-1"}


def provider_with(
    cluster: set[str], machine: set[str], double: type[NoInfrastructure]
) -> ProviderUnderTest:
    """Return a provider whose kinds have these features only."""
    (controllers,) = COMPONENT.groups
    assert isinstance(controllers, InfrastructureControllers)
    (cluster_kind,), (machine_kind,) = controllers.clusters, controllers.machines
    changed = replace(
        controllers,
        clusters=(replace(cluster_kind, features=frozenset(cluster)),),
        machines=(replace(machine_kind, features=frozenset(machine)),),
    )
    component = replace_group(COMPONENT, controllers, changed)
    return replace(PROVIDER, components={"infrastructure": component}, infrastructure=double)


@pytest.mark.parametrize(
    ("cluster", "machine", "double", "cases"),
    [
        (CLUSTER, MACHINE, NoInfrastructure, 1),
        (CLUSTER, set(), LocatedServers, 1),
        (CLUSTER, set(), NoInfrastructure, 0),
        (set(), MACHINE, LocatedServers, 0),
    ],
    ids=["reported", "located", "neither reported nor located", "no failure domains"],
)
def test_kinds_whose_failure_domains_are_known_are_tested(
    cluster: set[str], machine: set[str], double: type[NoInfrastructure], cases: int
) -> None:
    assert len(FailureDomains.cases(provider_with(cluster, machine, double))) == cases


def test_a_server_elsewhere_or_in_no_failure_domain_fails() -> None:
    double = LocatedServers(PROVIDER.repository)
    check_server(double, "a", "zone-1")
    with pytest.raises(AssertionError, match="in failure domain zone-1, but its Machine requires"):
        check_server(double, "a", "zone-2")
    with pytest.raises(AssertionError, match="in failure domain None, but its Machine requires"):
        check_server(double, "b", "zone-1")


def test_a_double_need_not_know_where_servers_are() -> None:
    check_server(NoInfrastructure(PROVIDER.repository), "a", "zone-1")
