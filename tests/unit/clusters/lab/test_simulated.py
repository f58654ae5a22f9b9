"""Simulated machines: which of them boot, and with which configuration."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.clusters.lab.simulated.external_etcd import add_external_etcd
from capsmith.clusters.lab.simulated.kubelet import Server, read_configuration
from capsmith.clusters.lab.simulated.workload import build_kubeconfig_secret
from capsmith.clusters.processes.pki import Pki

JSON = dict[str, Any]


def _server(user_data: str) -> Server:
    return Server("1", "machine", "acme://1", "demo", user_data)


def _cloud_config(*documents: JSON) -> str:
    content = yaml.safe_dump_all(documents)
    file = {"path": "/run/kubeadm/kubeadm.yaml", "content": content}
    return f"#cloud-config\n{yaml.safe_dump({'write_files': [file]})}"


def test_the_first_machine_begins_the_cluster() -> None:
    found = read_configuration(_server(_cloud_config({"kind": "ClusterConfiguration", "a": 1})))
    assert (yaml.safe_load(found.cluster)["a"], found.token, found.control_plane) == (1, "", True)


@pytest.mark.parametrize("control_plane", [False, True])
def test_others_join_with_a_token(control_plane: bool) -> None:
    join: JSON = {
        "kind": "JoinConfiguration",
        "discovery": {"bootstrapToken": {"token": "a.b"}},
        **({"controlPlane": {}} if control_plane else {}),
    }
    found = read_configuration(_server(_cloud_config(join)))
    assert (found.cluster, found.token, found.control_plane) == ("", "a.b", control_plane)


@pytest.mark.parametrize(
    "data",
    [
        *("", "#!/bin/sh\n", "a: [", "- a", "write_files: [1]", "{}", "expires: 2001-99-99"),
        *("a: !!bool maybe", "a: !!int ''", "[" * 10_000),
    ],
)
def test_data_of_another_provider_configure_nothing(data: str) -> None:
    found = read_configuration(_server(data))
    assert (found.cluster, found.token, found.control_plane) == ("", "", False)


def test_a_control_plane_of_kubeadm_gets_an_external_etcd(tmp_path: Path) -> None:
    kept: JSON = {"clusterConfiguration": {"dns": {}}}
    control_plane = {"kind": "KubeadmControlPlane", "spec": {"kubeadmConfigSpec": kept}}
    pki = Pki(tmp_path)
    found = add_external_etcd([{"kind": "Cluster"}, control_plane], "http://e", pki, "ns", "demo")
    configuration = found[1]["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]
    assert configuration["etcd"]["external"]["endpoints"] == ["http://e"]
    assert configuration["dns"] == {}
    secrets = {each["metadata"]["name"]: set(each["data"]) for each in found[2:]}
    assert secrets == {
        "demo-etcd": {"tls.crt"},
        "demo-apiserver-etcd-client": {"tls.crt", "tls.key"},
    }


def test_other_control_planes_stay_as_they_are(tmp_path: Path) -> None:
    documents: list[JSON] = [{"kind": "Cluster"}, {"kind": "AcmeControlPlane"}]
    assert add_external_etcd(documents, "http://e", Pki(tmp_path), "ns", "demo") is documents


def test_the_kubeconfig_goes_with_its_cluster() -> None:
    metadata = {"name": "demo", "namespace": "ns", "uid": "u"}
    secret = build_kubeconfig_secret({"apiVersion": "v", "metadata": metadata}, "text")
    assert base64.b64decode(secret["data"]["value"]) == b"text"
    assert [each["uid"] for each in secret["metadata"]["ownerReferences"]] == ["u"]
    # Core reads only Secrets with this label.
    assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "demo"}
