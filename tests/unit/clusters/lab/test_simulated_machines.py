"""Simulated servers of Machines and of pools, and the Secret through which core sees them."""

from __future__ import annotations

import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from capsmith.clusters.lab.simulated.kubelet import KubeadmKubelet, _node_info
from capsmith.clusters.lab.simulated.workload import (
    CLUSTER_NAME,
    Machines,
    SimulatedClusters,
    _Workload,
    build_kubeconfig_secret,
    has_control_plane,
    publish_kubeconfig,
)
from tests.unit.judge.running.memory import NAMESPACE, Memory, MemoryClient

JSON = dict[str, Any]

CORE = "cluster.x-k8s.io/v1beta1"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io/v1beta1"
EXPIRY = "machine.cluster.x-k8s.io/certificates-expiry"
JOINING = """\
write_files:
- path: /run/kubeadm/kubeadm-join-config.yaml
  content: |
    kind: JoinConfiguration
    discovery: {bootstrapToken: {token: abcdef.0123456789abcdef}}
"""
CLUSTER = {"apiVersion": CORE, "metadata": {"name": "demo", "namespace": NAMESPACE, "uid": "c"}}


class NodeClient(MemoryClient):
    """A client with which kubelets report."""

    def merge(self, obj: JSON, body: JSON, subresource: str | None = None) -> JSON:
        return self.patch(obj, body, subresource)


@pytest.fixture
def client() -> NodeClient:
    return NodeClient(Memory())


@pytest.fixture
def machines(client: MemoryClient) -> Machines:
    return Machines(client, CORE, NAMESPACE, "demo")


def test_a_server_has_the_version_of_its_machine(client: MemoryClient, machines: Machines) -> None:
    add(client, "Secret", "data", data={"value": encoded("#cloud-config")})
    spec = {"providerID": "a://1", "version": "v1.34.0", "bootstrap": {"dataSecretName": "data"}}
    add(client, "Machine", "m1", spec=spec)
    machines.refresh()
    (server,) = machines.servers()
    assert (server.name, server.provider_id, server.version) == ("m1", "a://1", "v1.34.0")
    assert _node_info(server)["nodeInfo"]["kubeletVersion"] == "v1.34.0"


def test_instances_of_a_pool_are_servers(client: MemoryClient, machines: Machines) -> None:
    """An infrastructure that keeps its pools as a whole lists provider IDs, and has no Machines."""
    add(client, "Secret", "data", data={"value": encoded("#cloud-config")})
    add_pool(client, {}, ["a://1", "a://2"])
    machines.refresh()
    servers = machines.servers()
    assert sorted(each.provider_id for each in servers) == ["a://1", "a://2"]
    assert {each.version for each in servers} == {"v1.34.0"}
    assert len({each.name for each in servers}) == 2
    names = {each.provider_id: each.name for each in servers}
    add_pool(client, {}, ["a://2"])
    machines.refresh()
    assert [each.name for each in machines.servers()] == [names["a://2"]]


def test_machines_of_a_pool_boot_with_its_data(client: MemoryClient, machines: Machines) -> None:
    """A pool with Machines has one server for each, though its list has the same provider IDs."""
    add(client, "Secret", "data", data={"value": encoded("#cloud-config")})
    add_pool(client, {"infrastructureMachineKind": "BoxMachine"}, ["a://1"])
    owner = {"apiVersion": CORE, "kind": "MachinePool", "name": "p1", "uid": "p"}
    spec = {"providerID": "a://1", "bootstrap": {"dataSecretName": ""}}
    add(client, "Machine", "p1-0", spec=spec, metadata={"ownerReferences": [owner]})
    machines.refresh()
    (server,) = machines.servers()
    assert (server.name, server.version) == ("p1-0", "v1.34.0")
    assert server.user_data == "#cloud-config"


def test_kubeadm_reports_when_certificates_expire(client: MemoryClient, machines: Machines) -> None:
    """Otherwise its control plane provider looks for them at each reconcile, in vain."""
    add(client, "Secret", "data", data={"value": encoded("#cloud-config")})
    version = "bootstrap.cluster.x-k8s.io/v1beta1"
    add(client, "KubeadmConfig", "k1", version)
    reference = {"apiVersion": version, "kind": "KubeadmConfig", "name": "k1"}
    bootstrap = {"dataSecretName": "data", "configRef": reference}
    labels = {"cluster.x-k8s.io/control-plane": "", CLUSTER_NAME: "demo"}
    spec = {"providerID": "a://1", "bootstrap": bootstrap}
    add(client, "Machine", "m1", spec=spec, metadata={"labels": labels})
    machines.refresh()
    config = client.memory.find("KubeadmConfig", "k1")
    assert config is not None
    assert config["metadata"]["annotations"][EXPIRY].endswith("Z")


def test_servers_of_a_paused_cluster_outlive_their_machines(
    client: MemoryClient, machines: Machines
) -> None:
    """Nothing deletes servers meanwhile; a Machine with the same provider ID takes one over."""
    add(client, "Secret", "data", data={"value": encoded("#cloud-config")})
    spec = {"providerID": "a://1", "bootstrap": {"dataSecretName": "data"}}
    add(client, "Machine", "m1", spec=spec, metadata={"uid": "u1"})
    machines.refresh()
    (server,) = machines.servers()
    client.memory.delete(("Machine", NAMESPACE, "m1"))
    machines.refresh(is_paused=True)
    assert machines.servers() == [server]
    machines.orphan()
    machines.refresh()
    assert machines.servers() == [server]
    add(client, "Machine", "m2", spec=spec, metadata={"uid": "u2"})
    machines.refresh()
    assert machines.servers() == [server]
    client.memory.delete(("Machine", NAMESPACE, "m2"))
    machines.refresh()
    assert machines.servers() == []


@pytest.mark.parametrize(
    ("pauses", "nodes"),
    [
        pytest.param([False], [], id="new"),
        pytest.param([True], ["m1"], id="arrives in the pause"),
        pytest.param([True, False], ["m1"], id="arrives complete after the pause"),
        pytest.param([True, False, False], [], id="new after the pause"),
    ],
)
def test_a_moved_machine_does_not_join_again(
    client: NodeClient, machines: Machines, tmp_path: Path, pauses: list[bool], nodes: list[str]
) -> None:
    """The token with which it has joined is not in the API server of this lab."""
    kubelet = KubeadmKubelet(client, machines, "demo", tmp_path / "log")
    for is_paused in pauses[:-1]:
        machines.refresh(is_paused=is_paused)
    add(client, "Secret", "data", data={"value": encoded(JOINING)})
    spec = {"providerID": "a://1", "bootstrap": {"dataSecretName": "data"}}
    add(client, "Machine", "m1", spec=spec)
    machines.refresh(is_paused=pauses[-1])
    kubelet.tick()
    assert [each["metadata"]["name"] for each in client.memory.all("Node")] == nodes


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"infrastructureRef": {"kind": "AcmeCluster"}}, False),
        ({"controlPlaneRef": {"kind": "KubeadmControlPlane"}}, True),
        ({"topology": {"version": "v1.36.0"}}, True),
    ],
)
def test_a_topology_will_have_a_control_plane(spec: JSON, expected: bool) -> None:
    assert has_control_plane({"spec": spec}) is expected


@pytest.mark.parametrize("type", ["", "cluster.x-k8s.io/secret", "Opaque"])
def test_the_kubeconfig_replaces_that_of_a_provider(client: MemoryClient, type: str) -> None:
    """The provider leaves a Secret of another type alone, and would write its own again."""
    if type:
        add(client, "Secret", "demo-kubeconfig", type=type, data={"value": "theirs"})
    publish_kubeconfig(client, CLUSTER, "text")
    found = client.memory.find("Secret", "demo-kubeconfig")
    assert found is not None
    assert found["type"] == build_kubeconfig_secret(CLUSTER, "")["type"] == "Opaque"
    assert found["data"] == {"value": encoded("text")}


def test_the_kubeconfig_is_published_again_after_a_move(
    client: MemoryClient, tmp_path: Path
) -> None:
    """A move writes the Secret of the source, whose API server the target may not reach."""
    unused: Any = None
    server: Any = SimpleNamespace(kubeconfig_text="target")
    clusters = SimulatedClusters(unused, unused, unused, client, tmp_path)
    workload = _Workload(1, server, unused)

    workload.update_pause(is_paused=True)
    clusters._publish(workload, CLUSTER)
    publish_kubeconfig(client, CLUSTER, "source")
    clusters._publish(workload, CLUSTER)
    workload.update_pause(is_paused=False)
    clusters._publish(workload, CLUSTER)

    secret = client.get("v1", "Secret", "demo-kubeconfig", NAMESPACE)
    assert secret["data"]["value"] == encoded("target")


def add_pool(client: MemoryClient, status: JSON, ids: list[str]) -> None:
    reference = {"apiVersion": INFRASTRUCTURE, "kind": "BoxPool", "name": "p1"}
    template = {
        "version": "v1.34.0",
        "bootstrap": {"dataSecretName": "data"},
        "infrastructureRef": reference,
    }
    spec = {"providerIDList": ids, "template": {"spec": template}}
    add(client, "BoxPool", "p1", INFRASTRUCTURE, status=status)
    add(client, "MachinePool", "p1", spec=spec)


def add(
    client: MemoryClient,
    kind: str,
    name: str,
    version: str = CORE,
    *,
    metadata: JSON | None = None,
    **fields: Any,
) -> None:
    labels = {"labels": {CLUSTER_NAME: "demo"}}
    full = {"name": name, "namespace": NAMESPACE, **labels, **(metadata or {})}
    version = "v1" if kind == "Secret" else version
    client.memory.write({"apiVersion": version, "kind": kind, "metadata": full, **fields})


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
