"""A control plane of Machines with scripted hooks, with the manifests of the example keel."""

from __future__ import annotations

from dataclasses import dataclass

from capsmith_runtime.component import Component
from capsmith_runtime.controlplane import ControlPlaneReconciler
from capsmith_runtime.controlplane.controllers import ControlPlaneControllers
from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.kube.client import ResourceType
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.golden.expected import expected_folder

REPOSITORY = expected_folder("control-plane")
GROUP = "controlplane.cluster.x-k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeelControlPlaneSpec:
    """A spec without author fields."""


class ScriptedControlPlaneReconciler(ControlPlaneReconciler[KeelControlPlaneSpec]):
    """A reconciler with the hooks that a test sets."""


COMPONENT = Component(
    label="control-plane-keel",
    namespace="keel-control-plane-system",
    contract="v1beta1",
    groups=(
        ControlPlaneControllers(
            (
                ControlPlaneKind(
                    resource=ResourceType(
                        GROUP, "v1alpha1", "KeelControlPlane", "keelcontrolplanes"
                    ),
                    finalizer=f"keelcontrolplane.{GROUP}",
                    features=frozenset({"machines", "replicas", "rolloutAfter", "version"}),
                    spec=KeelControlPlaneSpec,
                    reconciler=ScriptedControlPlaneReconciler,
                    bootstrap_group="bootstrap.cluster.x-k8s.io",
                    bootstrap_kind="KubeadmConfig",
                ),
            )
        ),
    ),
)

PROVIDER = ProviderUnderTest(
    components={"control-plane": COMPONENT},
    repository=REPOSITORY,
    config=("control-plane/config",),
)
