"""Cases and environments for infrastructure providers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.kinds import IdentityKind, InfraClusterKind, InfraMachineKind
from capsmith_runtime.testing.conformance.base import Case, Conformance
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import InfrastructureDouble, ProviderUnderTest


@dataclass(frozen=True, kw_only=True)
class InfrastructureCase(Case):
    """One kind of cluster and one kind of machine, with a kind of identity if there is one."""

    component: Component
    controllers: InfrastructureControllers
    cluster_kind: InfraClusterKind
    machine: InfraMachineKind | None
    """The kind of machine, or None if the provider has none."""
    identity: IdentityKind | None = None
    """The kind of identity, or None if clusters refer to no identity."""

    @property
    def kinds(self) -> Sequence[str]:
        """Return the names of the case's kinds."""
        kinds = (self.cluster_kind, self.machine, self.identity)
        return [kind.resource.kind for kind in kinds if kind is not None]

    @property
    def machine_kind(self) -> InfraMachineKind:
        """Return the kind of machine; the test fails if the provider has none."""
        assert self.machine is not None, "the provider has no machines"
        return self.machine


class WithInfrastructure(Conformance):
    """Base class for tests that need the author's test double for the infrastructure."""

    @pytest.fixture
    def infrastructure(
        self, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> InfrastructureDouble:
        """Return a test double for the infrastructure."""
        assert case.provider.infrastructure is not None, "PROVIDER has no infrastructure"
        double = case.provider.infrastructure(tmp_path)
        double.start(monkeypatch)
        return double


def has_cluster_resources(double: InfrastructureDouble) -> bool:
    """Return whether clusters have resources of their own, which the double counts."""
    try:
        double.clusters()
    except NotImplementedError:
        return False
    return True


def check_one_cluster(double: InfrastructureDouble) -> None:
    """Fail the test, with what to do, unless the double reports shared resources of one cluster.

    A double whose clusters have nothing of their own passes.
    """
    if not has_cluster_resources(double):
        return
    names = double.clusters()
    assert len(names) == 1, (
        f"clusters() of the test double returned {names}, although one cluster exists.\n"
        "It has to return one name for each cluster, however many resources the cluster has, and"
        " one more for what was created twice. If your provider creates nothing for a cluster,"
        ' raise NotImplementedError("nothing is created for a cluster") there.'
    )


class InfrastructureConformance(WithInfrastructure):
    """Base class for scenarios that run a manager for clusters and machines."""

    needs_machines: ClassVar[bool] = True
    """Whether the scenarios run only for providers with a kind of machine."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return cases in which each kind occurs with each core version."""
        return [
            InfrastructureCase(
                provider=provider,
                core_version=version,
                component=component,
                controllers=controllers,
                cluster_kind=cluster_kind,
                machine=machine,
            )
            for component, controllers in provider.groups_of(InfrastructureControllers)
            for version in provider.core_versions
            for cluster_kind, machine in _pairs(controllers)
            if machine is not None or not cls.needs_machines
        ]

    @pytest.fixture
    def env(
        self, case: InfrastructureCase, infrastructure: InfrastructureDouble
    ) -> InfrastructureEnvironment:
        """Return a management cluster with the infrastructure's kinds."""
        return InfrastructureEnvironment(
            case.provider,
            case.component,
            case.core_version,
            infrastructure=infrastructure,
            controllers=case.controllers,
            cluster_kind=case.cluster_kind,
            machine_kind=case.machine,
            identity_kind=case.identity,
        )


def _pairs(
    controllers: InfrastructureControllers,
) -> Iterator[tuple[InfraClusterKind, InfraMachineKind | None]]:
    """Yield each kind of cluster and machine at least once, in as few pairs as possible.

    Without kinds of machines, each cluster has None.
    """
    clusters, machines = controllers.clusters, controllers.machines or (None,)
    for index in range(max(len(clusters), len(machines)) if clusters else 0):
        yield clusters[index % len(clusters)], machines[index % len(machines)]
