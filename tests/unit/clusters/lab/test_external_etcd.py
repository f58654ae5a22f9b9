"""A lab's releases of templates with kubeadm use the lab's etcd, however they are applied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.clusters.lab.simulated.external_etcd import EtcdTemplates, publish_etcd_secrets
from capsmith.clusters.processes.pki import Pki
from tests.golden.expected import expected_folder
from tests.unit.judge.running.memory import Memory, MemoryClient

ETCD = "https://127.0.0.1:2379"
TEMPLATE, CLASS = "cluster-template.yaml", "clusterclass-acme.yaml"
TOPOLOGY = "cluster-template-topology.yaml"
PURPOSES = ("etcd", "apiserver-etcd-client")


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    """Return a lab's certificates."""
    return Pki(tmp_path_factory.mktemp("pki"))


def change(case: str, name: str, pki: Pki, etcd: str = ETCD) -> tuple[str, str]:
    """Return a template of a golden case, and the same as a lab releases it."""
    folder = expected_folder(case) / "templates"
    text = (folder / name).read_text()
    return text, EtcdTemplates(folder, etcd, pki).change(name, text)


def documents(text: str) -> dict[str, Any]:
    """Return the documents of a template by kind and name."""
    found = yaml.safe_load_all(text)
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


def test_a_template_gets_the_etcd_and_its_secrets(pki: Pki) -> None:
    """The Secrets are named after the cluster, and all else stays as it was."""
    before, after = (documents(text) for text in change("acme", TEMPLATE, pki))
    plane = "KubeadmControlPlane/${CLUSTER_NAME}-control-plane"
    spec = after[plane]["spec"]["kubeadmConfigSpec"]
    assert spec.pop("clusterConfiguration")["etcd"]["external"]["endpoints"] == [ETCD]
    secrets = [after.pop(f"Secret/${{CLUSTER_NAME}}-{name}") for name in PURPOSES]
    assert {each["metadata"]["namespace"] for each in secrets} == {"${NAMESPACE}"}
    assert after == before


def test_a_class_and_its_topology_get_one_half_each(pki: Pki) -> None:
    """clusterctl fills in no variables in a ClusterClass, so the cluster brings the Secrets."""
    _, text = change("acme", CLASS, pki)
    template = documents(text)["KubeadmControlPlaneTemplate/acme-control-plane"]
    kubeadm = template["spec"]["template"]["spec"]["kubeadmConfigSpec"]
    assert kubeadm["clusterConfiguration"]["etcd"]["external"]["endpoints"] == [ETCD]
    assert "kind: Secret" not in text
    assert change("acme", TOPOLOGY, pki)[1].count("kind: Secret") == len(PURPOSES)


def test_variables_keep_their_quotes(pki: Pki) -> None:
    """A quoted variable stays a string, and one without quotes a number, when it is filled in."""
    _, text = change("acme", TEMPLATE, pki)
    assert "replicas: ${WORKER_MACHINE_COUNT}\n" in text
    assert 'size: "${ACME_MACHINE_SIZE:=example}"\n' in text


@pytest.mark.parametrize(("case", "etcd"), [("acme", ""), ("complete", ETCD)])
def test_templates_that_need_no_etcd_stay(case: str, etcd: str, pki: Pki) -> None:
    """In a cluster that the lab did not start, and without kubeadm, nothing changes."""
    before, after = change(case, TEMPLATE, pki, etcd)
    assert after == before


def test_a_template_that_is_not_yaml_stays(pki: Pki) -> None:
    """Only clusterctl can say what a template is that becomes YAML with its variables."""
    folder = expected_folder("acme") / "templates"
    text = "kind: ${KIND:-[}\n]: {\n"
    assert EtcdTemplates(folder, ETCD, pki).change(TEMPLATE, text) == text


def test_a_template_that_is_nested_too_deeply_is_not_composed(pki: Pki, tmp_path: Path) -> None:
    text = "kind: KubeadmControlPlane\nspec: " + "[" * 200_000 + "]" * 200_000
    (tmp_path / TEMPLATE).write_text(text)
    assert EtcdTemplates(tmp_path, ETCD, pki).change(TEMPLATE, text) == text


class ManagementClient(MemoryClient):
    """A client of a management cluster with the control plane provider of kubeadm."""

    def preferred_version(self, group: str) -> str:
        return f"{group}/v1beta2"


def create_cluster(client: MemoryClient, kind: str, etcd: dict[str, Any]) -> dict[str, Any]:
    """Return a Cluster, whose control plane is created."""
    metadata = {"name": "renamed", "namespace": "ns", "uid": "u"}
    client.create(
        {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
            "kind": kind,
            "metadata": metadata,
            "spec": {"kubeadmConfigSpec": {"clusterConfiguration": {"etcd": etcd}}},
        }
    )
    return {"metadata": metadata, "spec": {"controlPlaneRef": {"kind": kind, "name": "renamed"}}}


@pytest.mark.parametrize(
    ("kind", "etcd", "purposes"),
    [
        ("KubeadmControlPlane", {"external": {"endpoints": [ETCD]}}, PURPOSES),
        ("KubeadmControlPlane", {}, ()),
        ("AcmeControlPlane", {"external": {"endpoints": [ETCD]}}, ()),
    ],
)
def test_a_renamed_cluster_gets_the_secrets(
    kind: str, etcd: dict[str, Any], purposes: tuple[str, ...], pki: Pki
) -> None:
    """Cluster API's ScaleSpec takes the Cluster from a template, and renames nothing else."""
    client = ManagementClient(Memory())
    cluster = create_cluster(client, kind, etcd)
    metadata = {"name": "renamed-etcd", "namespace": "ns"}
    client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {}})

    publish_etcd_secrets(client, pki, cluster)
    publish_etcd_secrets(client, pki, cluster)

    found = {each["metadata"]["name"]: each["data"] for each in client.list("v1", "Secret", "ns")}
    assert set(found) == {"renamed-etcd", *(f"renamed-{each}" for each in purposes)}
    assert found["renamed-etcd"] == {}, "what a user has created stays"
