"""The infrastructure of a lab, and the cluster template of a provider with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.provider import ProviderRepository
from capsmith.clusters.lab.simulated.infrastructure import (
    build_cluster_template,
    generate_infrastructure,
)

_RAFT: dict[str, Any] = {
    "capsmith": 1,
    "name": "raft",
    "repository": "https://github.com/raft/cluster-api-provider-raft",
    "contracts": ["v1beta1"],
    "releases": {"v0.1": "v1beta1"},
}
_KUBEADM = {"bootstrap": {"group": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig"}}
_CONTROL_PLANE = {"RaftControlPlane": {"implements": "ControlPlane", **_KUBEADM}}
_MANAGED = {"features": {"externalManagedControlPlane": True}}


@pytest.fixture
def lab(tmp_path: Path) -> LabFolder:
    return LabFolder(tmp_path)


def _provider(lab: LabFolder, **sections: Any) -> ProviderRepository:
    return ProviderRepository(lab.root, {**_RAFT, **sections}, "raft")


def _template(lab: LabFolder, provider: ProviderRepository) -> dict[tuple[str, str], Any]:
    generate_infrastructure(lab, provider)
    found = yaml.safe_load_all(build_cluster_template(lab, provider).read_text(encoding="utf-8"))
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def test_references_have_the_version_of_the_simulated_kinds(lab: LabFolder) -> None:
    provider = _provider(
        lab,
        apiVersions=["v1beta1"],
        groups={"infrastructure": "raft.example.com"},
        controlPlane=_CONTROL_PLANE,
        credentials="RaftIdentity",
    )

    found = _template(lab, provider)

    cluster = found["Cluster", "${CLUSTER_NAME}"]["spec"]
    infrastructure = found["SimulatedCluster", "${CLUSTER_NAME}"]
    version = "infrastructure.cluster.x-k8s.io/v1alpha1"
    assert infrastructure["apiVersion"] == version
    assert infrastructure["spec"] == {}
    assert cluster["infrastructureRef"]["apiVersion"] == version
    assert cluster["controlPlaneRef"]["kind"] == "RaftControlPlane"
    assert cluster["controlPlaneRef"]["apiVersion"] == "controlplane.cluster.x-k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("sections", "workers"),
    [
        ({"controlPlane": _CONTROL_PLANE}, "KubeadmConfigTemplate"),
        (
            {"controlPlane": {"RaftControlPlane": {"implements": "ControlPlane", **_MANAGED}}},
            "SimulatedConfigTemplate",
        ),
        ({"bootstrap": {"RaftConfig": {"implements": "BootstrapConfig"}}}, "RaftConfigTemplate"),
        ({"ipam": {"RaftPool": {"implements": "IPPool"}}}, "KubeadmConfigTemplate"),
    ],
)
def test_what_a_provider_lacks_is_added(
    lab: LabFolder, sections: dict[str, Any], workers: str
) -> None:
    provider = _provider(lab, **sections)

    found = _template(lab, provider)
    components = generate_infrastructure(lab, provider)

    assert (workers, "${CLUSTER_NAME}-md-0") in found
    has_bootstrap = (components.folder / "bootstrap").is_dir()
    assert has_bootstrap == (workers == "SimulatedConfigTemplate")


def test_a_control_plane_may_have_credentials_of_its_own(lab: LabFolder) -> None:
    managed = {"features": {"externalManagedControlPlane": True, "credentials": True}}
    provider = _provider(
        lab,
        controlPlane={"RaftControlPlane": {"implements": "ControlPlane", **managed}},
        credentials="RaftIdentity",
    )

    found = _template(lab, provider)

    control_plane = found["RaftControlPlane", "${CLUSTER_NAME}-control-plane"]
    assert control_plane["apiVersion"] == "controlplane.cluster.x-k8s.io/v1alpha1"
    assert control_plane["spec"]["identityRef"] == {"kind": "RaftIdentity", "name": "raft"}
    assert found["SimulatedCluster", "${CLUSTER_NAME}"]["spec"] == {}


def test_without_kubeadm_a_bootstrap_provider_gets_a_control_plane(lab: LabFolder) -> None:
    provider = _provider(
        lab,
        apiVersions=["v1beta1"],
        groups={"bootstrap": "raft.example.com"},
        bootstrap={
            "RaftMirror": {"implements": "Resource"},
            "RaftConfig": {"implements": "BootstrapConfig"},
        },
    )

    simulated = generate_infrastructure(lab, provider, has_kubeadm=False)
    text = build_cluster_template(lab, provider, has_kubeadm=False).read_text(encoding="utf-8")
    found = {each["kind"]: each for each in yaml.safe_load_all(text)}

    control_plane = simulated.spec["controlPlane"]["SimulatedControlPlane"]
    assert control_plane["bootstrap"] == {"group": "raft.example.com", "kind": "RaftConfig"}
    version = "controlplane.cluster.x-k8s.io/v1alpha1"
    assert found["SimulatedControlPlane"]["apiVersion"] == version
    assert found["RaftConfigTemplate"]["apiVersion"] == "raft.example.com/v1beta1"


@pytest.mark.parametrize("mistake", [{"controlPlane": ["x"]}, {"controlPlane": {"X": None}}])
def test_a_mistake_in_provider_yaml_is_reported(lab: LabFolder, mistake: dict[str, Any]) -> None:
    provider = _provider(lab, **mistake)
    generate_infrastructure(lab, provider)
    with pytest.raises(LabError) as caught:
        build_cluster_template(lab, provider)

    assert caught.value.finding.id == "lab-template"
    assert "error " in caught.value.finding.message
