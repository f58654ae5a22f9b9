"""A pool with Machines that are provisioned at once, with the manifests of the example pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure import (
    Deleted,
    Endpoint,
    InfraClusterDeleteScope,
    InfraClusterReconciler,
    InfraClusterScope,
    InfraClusterState,
    InfraMachineDeleteScope,
    InfraMachinePoolDeleteScope,
    InfraMachinePoolReconciler,
    InfraMachinePoolScope,
    InfraMachinePoolState,
    InfraMachineReconciler,
    InfraMachineScope,
    InfraMachineState,
    Instance,
    MachinePoolMachinesReconciler,
    Waiting,
)
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.kinds import InfraClusterKind, InfraMachineKind
from capsmith_runtime.infrastructure.machine_pool.controllers import MachinePoolKinds
from capsmith_runtime.infrastructure.machine_pool.kinds import (
    InfraMachinePoolKind,
    MachinePoolMachinesKind,
)
from capsmith_runtime.kube.client import ResourceType
from capsmith_runtime.testing.machine_pool.environment import (
    MachinePoolEnvironment,
    PoolMachinesEnvironment,
)
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.golden.expected import expected_folder
from tests.runtime.infrastructure.scripted_provider import NoInfrastructure

REPOSITORY = expected_folder("pools")
GROUP = "infrastructure.cluster.x-k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    region: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpec:
    size: str
    image: str
    disk_gib: int = field(default=20, metadata={"json": "diskGiB"})


class Servers(NoInfrastructure):
    """The names of all servers."""

    existing: ClassVar[set[str]] = set()

    def servers(self) -> list[str]:
        return sorted(self.existing)


class Clusters(InfraClusterReconciler[ClusterSpec]):
    def reconcile_normal(
        self, cluster: InfraClusterScope[ClusterSpec]
    ) -> InfraClusterState | Waiting:
        return InfraClusterState(control_plane_endpoint=Endpoint("10.0.0.100", 6443))

    def reconcile_delete(self, cluster: InfraClusterDeleteScope[ClusterSpec]) -> Deleted | Waiting:
        return Deleted()


class Machines(InfraMachineReconciler[MachineSpec]):
    def reconcile_normal(
        self, machine: InfraMachineScope[MachineSpec]
    ) -> InfraMachineState | Waiting:
        Servers.existing.add(machine.name)
        return InfraMachineState(provider_id=f"tidal://{machine.name}")

    def reconcile_delete(self, machine: InfraMachineDeleteScope[MachineSpec]) -> Deleted | Waiting:
        Servers.existing.discard(machine.name)
        return Deleted()


def _resource(kind: str) -> ResourceType:
    return ResourceType(GROUP, "v1alpha1", kind, f"{kind.lower()}s")


def _common(kind: str, features: set[str]) -> dict[str, Any]:
    return {
        "resource": _resource(kind),
        "finalizer": f"{kind.lower()}.{GROUP}",
        "features": frozenset(features),
    }


class Groups(InfraMachinePoolReconciler[MachineSpec]):
    """Scaling groups with as many instances as the test sets."""

    instances: ClassVar[Sequence[Instance]] = ()

    def reconcile_normal(
        self, pool: InfraMachinePoolScope[MachineSpec]
    ) -> InfraMachinePoolState | Waiting:
        return InfraMachinePoolState(instances=self.instances)

    def reconcile_delete(self, pool: InfraMachinePoolDeleteScope[MachineSpec]) -> Deleted | Waiting:
        return Deleted()


GROUP_POOL = InfraMachinePoolKind(
    **_common("TidalMachinePool", {"instances", "providerID"}),
    spec=MachineSpec,
    reconciler=Groups,
)
POOL = MachinePoolMachinesKind(
    **_common("TidalNodePool", {"instances", "machines", "providerID"}),
    spec=MachineSpec,
    reconciler=MachinePoolMachinesReconciler,
    machines=_resource("TidalMachine"),
    machine_fields=("size", "image", "diskGiB"),
)
CONTROLLERS = InfrastructureControllers(
    clusters=(
        InfraClusterKind(
            **_common("TidalCluster", {"controlPlaneEndpoint"}),
            spec=ClusterSpec,
            reconciler=Clusters,
        ),
    ),
    machines=(
        InfraMachineKind(
            **_common("TidalMachine", {"addresses"}), spec=MachineSpec, reconciler=Machines
        ),
    ),
    pools=MachinePoolKinds(whole=(GROUP_POOL,), with_machines=(POOL,)),
)
COMPONENT = Component(
    label="infrastructure-tidal",
    namespace="tidal-system",
    contract="v1beta2",
    groups=(CONTROLLERS,),
)
PROVIDER = ProviderUnderTest(
    components={"infrastructure": COMPONENT},
    repository=REPOSITORY,
    infrastructure=Servers,
)


def environment() -> PoolMachinesEnvironment:
    """Return a management cluster with a running cluster, and no pool with Machines yet."""
    Servers.existing.clear()
    return PoolMachinesEnvironment(
        PROVIDER,
        COMPONENT,
        "v1beta2",
        infrastructure=Servers(REPOSITORY),
        controllers=CONTROLLERS,
        kind=POOL,
    )


def group_environment() -> MachinePoolEnvironment:
    """Return a management cluster with a running cluster, and no pool without Machines yet."""
    return MachinePoolEnvironment(
        PROVIDER,
        COMPONENT,
        "v1beta2",
        infrastructure=Servers(REPOSITORY),
        controllers=CONTROLLERS,
        kind=GROUP_POOL,
    )
