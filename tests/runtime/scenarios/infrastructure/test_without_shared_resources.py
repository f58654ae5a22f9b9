"""Scenarios with a test double in which clusters have nothing, as with machines on given hosts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure import (
    Deleted,
    Endpoint,
    FailureDomain,
    InfraClusterDeleteScope,
    InfraClusterReconciler,
    InfraClusterScope,
    InfraClusterState,
    InfraMachineState,
)
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.kinds import InfraMachineKind
from capsmith_runtime.testing.conformance import conformance_tests
from capsmith_runtime.testing.provider import InfrastructureDouble, ProviderUnderTest
from tests.runtime.scenarios.providers import provider

ACME = provider("acme")
assert ACME.infrastructure is not None
_Double: type[InfrastructureDouble] = ACME.infrastructure


class WithoutClusters:
    """The simulated cloud's test double, which does not count clusters."""

    def __init__(self, folder: Path) -> None:
        self._double: Any = _Double(folder)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._double, name)

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._double.start(monkeypatch)

    def servers(self) -> list[str]:
        return cast(list[str], self._double.servers())

    def simulate(self, faults: object) -> None:
        self._double.simulate(faults)

    def clusters(self) -> list[str]:
        raise NotImplementedError("nothing is created for a cluster")


class GivenClusters(InfraClusterReconciler[Any]):
    """Calls no infrastructure, and reports a reason of its own."""

    def reconcile_normal(self, cluster: InfraClusterScope[Any]) -> InfraClusterState:
        endpoint = cluster.control_plane_endpoint or Endpoint("127.0.0.1", 6443)
        domains = [FailureDomain("zone-1"), FailureDomain("zone-2")]
        return InfraClusterState(
            control_plane_endpoint=endpoint, failure_domains=domains, reason="Registered"
        )

    def reconcile_delete(self, cluster: InfraClusterDeleteScope[Any]) -> Deleted:
        return Deleted()


def _give_clusters(provider: ProviderUnderTest) -> ProviderUnderTest:
    """Return the provider with reconcilers for which no infrastructure of clusters exists."""
    components = {name: _replace_kinds(each) for name, each in provider.components.items()}
    return replace(provider, components=components, infrastructure=WithoutClusters)


def _replace_kinds(component: Component) -> Component:
    (group,) = component.groups
    assert isinstance(group, InfrastructureControllers)
    clusters = tuple(replace(each, reconciler=GivenClusters) for each in group.clusters)
    machines = tuple(map(_name_reason, group.machines))
    return replace(component, groups=(replace(group, clusters=clusters, machines=machines),))


def _name_reason(kind: InfraMachineKind) -> InfraMachineKind:
    """Return the kind with a reconciler that reports a reason of its own for a running machine."""
    base: Any = kind.reconciler

    def reconcile_normal(self: Any, machine: Any) -> Any:
        result = base.reconcile_normal(self, machine)
        is_state = isinstance(result, InfraMachineState)
        return replace(result, reason="Running") if is_state else result

    return replace(
        kind, reconciler=type("Running", (base,), {"reconcile_normal": reconcile_normal})
    )


PROVIDER = _give_clusters(ACME)

_TESTS = conformance_tests(PROVIDER)
globals().update(
    {
        name: _TESTS[name]
        for name in (
            "TestInfraCluster",
            "TestInfraMachine",
            "TestInfrastructureCalls",
            "TestDeletionOrder",
            "TestInfrastructureFaults",
        )
    }
)
