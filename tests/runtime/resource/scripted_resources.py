"""A provider with scripted resources, with the manifests of the example everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure import (
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
from capsmith_runtime.kube.client import ResourceType
from capsmith_runtime.resource import (
    ResourceDeleteScope,
    ResourceReconciler,
    ResourceScope,
    ResourceState,
)
from capsmith_runtime.resource.caches import ResourceKind
from capsmith_runtime.resource.controllers import ResourceControllers
from capsmith_runtime.testing.conformance.resource.base import ResourceCase, ResourceConformance
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.golden.expected import expected_folder
from tests.runtime.infrastructure.scripted_provider import NoInfrastructure

REPOSITORY = expected_folder("everything")
GROUP = "infrastructure.nimbus.example.com"
CLUSTER, MACHINE, IDENTITY = "NimbusCluster", "NimbusMachine", "NimbusIdentity"
SECURITY_GROUP, IMAGE = "NimbusSecurityGroup", "NimbusImage"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnySpec:
    """Fields that no scenario reads are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroupSpec:
    rules: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroupStatus:
    group_id: str | None = field(default=None, metadata={"json": "groupID"})


class ClusterReconciler(InfraClusterReconciler[AnySpec]):
    delete: ClassVar[Callable[[InfraClusterDeleteScope[Any]], Any]]
    calls: ClassVar[list[InfraClusterScope[Any]]] = []

    def reconcile_normal(self, cluster: InfraClusterScope[AnySpec]) -> InfraClusterState:
        self.calls.append(cluster)
        return InfraClusterState(control_plane_endpoint=Endpoint("10.0.0.100", 6443))

    def reconcile_delete(self, cluster: InfraClusterDeleteScope[AnySpec]) -> Deleted | Waiting:
        result: Deleted | Waiting = type(self).delete(cluster)
        return result


class MachineReconciler(InfraMachineReconciler[AnySpec]):
    def reconcile_normal(self, machine: InfraMachineScope[AnySpec]) -> InfraMachineState:
        return InfraMachineState(provider_id=f"nimbus://{machine.name}")

    def reconcile_delete(self, machine: InfraMachineDeleteScope[AnySpec]) -> Deleted:
        return Deleted()


class SecurityGroupReconciler(ResourceReconciler[SecurityGroupSpec]):
    """Security groups are what the functions of the test return."""

    normal: ClassVar[Callable[[ResourceScope[Any]], Any]]
    delete: ClassVar[Callable[[ResourceDeleteScope[Any]], Any]]

    def reconcile_normal(
        self, resource: ResourceScope[SecurityGroupSpec]
    ) -> ResourceState | Waiting:
        result: ResourceState | Waiting = type(self).normal(resource)
        return result

    def reconcile_delete(
        self, resource: ResourceDeleteScope[SecurityGroupSpec]
    ) -> Deleted | Waiting:
        result: Deleted | Waiting = type(self).delete(resource)
        return result


class ImageReconciler(ResourceReconciler[AnySpec]):
    def reconcile_normal(self, resource: ResourceScope[AnySpec]) -> ResourceState:
        return ResourceState()

    def reconcile_delete(self, resource: ResourceDeleteScope[AnySpec]) -> Deleted:
        return Deleted()


def _arguments(kind: str, *, namespaced: bool = True) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    return {
        "resource": ResourceType(GROUP, "v1beta1", kind, plural, namespaced=namespaced),
        "finalizer": f"{kind.lower()}.{GROUP}",
        "features": frozenset({"controlPlaneEndpoint", "credentials"}),
    }


SECURITY_GROUPS = ResourceKind(
    **_arguments(SECURITY_GROUP), spec=SecurityGroupSpec, reconciler=SecurityGroupReconciler
)
IMAGES = ResourceKind(
    **_arguments(IMAGE, namespaced=False), spec=AnySpec, reconciler=ImageReconciler
)
CONTROLLERS = InfrastructureControllers(
    clusters=(InfraClusterKind(**_arguments(CLUSTER), spec=AnySpec, reconciler=ClusterReconciler),),
    machines=(InfraMachineKind(**_arguments(MACHINE), spec=AnySpec, reconciler=MachineReconciler),),
    identities=(
        IdentityKind(
            resource=ResourceType(GROUP, "v1beta1", IDENTITY, "nimbusidentities", namespaced=False),
            keys=("username", "password"),
        ),
    ),
    additional=(ResourceControllers(kinds=(SECURITY_GROUPS, IMAGES)),),
)
COMPONENT = Component(
    label="infrastructure-nimbus",
    namespace="capn-system",
    contract="v1beta2",
    groups=(CONTROLLERS,),
)
PROVIDER = ProviderUnderTest(
    components={"infrastructure": COMPONENT},
    repository=REPOSITORY,
    infrastructure=NoInfrastructure,
)


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the default behaviour; tests replace it."""
    for reconciler in (SecurityGroupReconciler, ClusterReconciler):
        monkeypatch.setattr(
            reconciler, "delete", staticmethod(lambda scope: Deleted()), raising=False
        )
    normal = staticmethod(lambda scope: ResourceState())
    monkeypatch.setattr(SecurityGroupReconciler, "normal", normal, raising=False)
    monkeypatch.setattr(ClusterReconciler, "calls", [])


def script(monkeypatch: pytest.MonkeyPatch, function: Any) -> None:
    """Let the reconciler of security groups do what ``function`` does."""
    monkeypatch.setattr(SecurityGroupReconciler, "normal", staticmethod(function))


class SecurityGroupConformance(ResourceConformance):
    """Tests of the one namespaced kind."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> list[ResourceCase]:
        """Return the cases of that kind."""
        found = super().cases(provider)
        return [case for case in found if case.kind.resource.kind == SECURITY_GROUP]
