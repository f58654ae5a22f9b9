"""A provider whose reconcilers return what a test says, with the manifests of the example acme."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure import (
    Address,
    Deleted,
    Endpoint,
    InfraClusterDeleteScope,
    InfraClusterReconciler,
    InfraClusterScope,
    InfraClusterState,
    InfraMachineDeleteScope,
    InfraMachineReconciler,
    InfraMachineScope,
    InfraMachineState,
    Waiting,
)
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.kinds import IdentityKind, InfraClusterKind, InfraMachineKind
from capsmith_runtime.kube.client import NamespacedName, ResourceType
from capsmith_runtime.testing.conformance.infrastructure.base import InfrastructureConformance
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.golden.expected import expected_folder

REPOSITORY = expected_folder("acme")
GROUP = "infrastructure.cluster.x-k8s.io"

MachineScope = InfraMachineScope[Any] | InfraMachineDeleteScope[Any]

PROVISIONED = InfraMachineState(
    provider_id="acme://1", addresses=[Address("InternalIP", "10.0.0.1")]
)


class Script:
    """Results of a reconcile function; the last one is repeated.

    An exception is raised, and a function is called with the scope.
    """

    def __init__(self, *results: Any) -> None:
        self.results = list(results)
        self.calls: list[MachineScope] = []

    def __call__(self, machine: MachineScope) -> Any:
        self.calls.append(machine)
        result = self.results.pop(0) if len(self.results) > 1 else self.results[0]
        if isinstance(result, Exception):
            raise result
        return result(machine) if callable(result) else result


@dataclass(frozen=True, slots=True, kw_only=True)
class AcmeClusterSpec:
    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AcmeMachineSpec:
    size: str
    image: str
    disk_gib: int = field(default=20, metadata={"json": "diskGiB"})


class ScriptedClusterReconciler(InfraClusterReconciler[AcmeClusterSpec]):
    """Clusters are provisioned at once."""

    def reconcile_normal(
        self, cluster: InfraClusterScope[AcmeClusterSpec]
    ) -> InfraClusterState | Waiting:
        return InfraClusterState(control_plane_endpoint=Endpoint("10.0.0.100", 6443))

    def reconcile_delete(
        self, cluster: InfraClusterDeleteScope[AcmeClusterSpec]
    ) -> Deleted | Waiting:
        return Deleted()


class ScriptedMachineReconciler(InfraMachineReconciler[AcmeMachineSpec]):
    """Machines are what the scripts of the test say."""

    normal: ClassVar[Script] = Script(PROVISIONED)
    delete: ClassVar[Script] = Script(Deleted())

    def reconcile_normal(
        self, machine: InfraMachineScope[AcmeMachineSpec]
    ) -> InfraMachineState | Waiting | Awaitable[InfraMachineState | Waiting]:
        result: InfraMachineState | Waiting = self.normal(machine)
        return result

    def reconcile_delete(
        self, machine: InfraMachineDeleteScope[AcmeMachineSpec]
    ) -> Deleted | Waiting:
        result: Deleted | Waiting = self.delete(machine)
        return result


def _resource(kind: str, plural: str, *, namespaced: bool = True) -> ResourceType:
    return ResourceType(GROUP, "v1alpha1", kind, plural, namespaced=namespaced)


COMPONENT = Component(
    label="infrastructure-acme",
    namespace="acme-system",
    contract="v1beta2",
    groups=(
        InfrastructureControllers(
            clusters=(
                InfraClusterKind(
                    resource=_resource("AcmeCluster", "acmeclusters"),
                    finalizer=f"acmecluster.{GROUP}",
                    features=frozenset({"controlPlaneEndpoint", "credentials", "failureDomains"}),
                    spec=AcmeClusterSpec,
                    reconciler=ScriptedClusterReconciler,
                ),
            ),
            machines=(
                InfraMachineKind(
                    resource=_resource("AcmeMachine", "acmemachines"),
                    finalizer=f"acmemachine.{GROUP}",
                    features=frozenset({"addresses", "credentials", "failureDomain"}),
                    spec=AcmeMachineSpec,
                    reconciler=ScriptedMachineReconciler,
                ),
            ),
            identities=(
                IdentityKind(
                    resource=_resource("AcmeIdentity", "acmeidentities", namespaced=False),
                    keys=("token",),
                ),
            ),
        ),
    ),
)


class NoInfrastructure:
    """The scripts know no servers."""

    def __init__(self, folder: Path) -> None: ...

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None: ...

    def servers(self) -> list[str]:
        return []

    def clusters(self) -> list[str]:
        return []


PROVIDER = ProviderUnderTest(
    components={"infrastructure": COMPONENT},
    repository=REPOSITORY,
    infrastructure=NoInfrastructure,
)

ScriptFactory = Callable[..., Script]


class ScriptedMachines(InfrastructureConformance):
    """Scenarios with scripts for ``reconcile_normal`` and ``reconcile_delete`` of machines."""

    @pytest.fixture
    def normal(self, monkeypatch: pytest.MonkeyPatch) -> ScriptFactory:
        return _factory(monkeypatch, "normal")

    @pytest.fixture
    def delete(self, monkeypatch: pytest.MonkeyPatch) -> ScriptFactory:
        return _factory(monkeypatch, "delete")


def _factory(monkeypatch: pytest.MonkeyPatch, name: str) -> ScriptFactory:
    def use(*results: Any) -> Script:
        script = Script(*results)
        monkeypatch.setattr(ScriptedMachineReconciler, name, script)
        return script

    return use


async def add_machine(env: InfrastructureEnvironment) -> NamespacedName:
    """Add a machine to a cluster with infrastructure."""
    cluster = await env.running_cluster()
    return env.core.add_machine(cluster)


def ready_condition(env: InfrastructureEnvironment, key: NamespacedName) -> tuple[str, str]:
    """Return status and reason of a machine's Ready condition."""
    return condition(env.core.infra_machine(key), "Ready")
