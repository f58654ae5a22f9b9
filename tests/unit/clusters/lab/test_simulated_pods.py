"""Simulated Pods: which Node takes them, and what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capsmith.clusters.lab.simulated.kubelet import KubeadmKubelet, Server
from capsmith.clusters.lab.simulated.pods import SimulatedPods, find_node, is_selected
from capsmith.clusters.processes.kube import ApiError
from tests.unit.judge.running.memory import NAMESPACE, Memory, MemoryClient

JSON = dict[str, Any]
ROLE = {"key": "role", "effect": "NoSchedule"}


class Controllers:
    """A process that only counts its starts."""

    def __init__(self) -> None:
        self.running = False
        self.starts = 0

    def start(self) -> None:
        self.running = True
        self.starts += 1

    def stop(self) -> None:
        self.running = False


class Cloud:
    """The servers that the test specifies."""

    def __init__(self, *found: Server) -> None:
        self.found = list(found)

    def servers(self, cluster: str | None = None) -> list[Server]:
        return self.found


class PodClient(MemoryClient):
    """Lists all namespaces as one, and takes bindings."""

    def path(
        self,
        api_version: str,
        kind: str,
        name: str | None = None,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> str:
        namespace = NAMESPACE if kind != "Node" else None
        return super().path(api_version, kind, name, namespace, subresource)

    def request(self, method: str, path: str, **arguments: Any) -> JSON:
        if path.endswith("/binding"):
            pod = self.memory.find("Pod", path.split("/")[-2])
            assert pod is not None
            pod["spec"]["nodeName"] = arguments["body"]["target"]["name"]
            return self.memory.write(pod)
        return super().request(method, path.removesuffix("/status"), **arguments)


class RefusingClient(PodClient):
    """Its server can fail to delete anything."""

    refuses_deletions = False

    def request(self, method: str, path: str, **arguments: Any) -> JSON:
        if method == "DELETE" and self.refuses_deletions:
            raise ApiError(method, path, 500, "unavailable")
        return super().request(method, path, **arguments)


def pod(name: str = "a", *, on: str = "", **spec: Any) -> JSON:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"app": "x"}}
    full = {**spec, **({"nodeName": on} if on else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": full}


def node(name: str, *taints: JSON, **labels: str) -> JSON:
    metadata = {"name": name, "labels": labels}
    spec: JSON = {"taints": list(taints)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}


def test_a_node_must_have_the_labels_that_are_selected() -> None:
    nodes = [node("n1"), node("n2", zone="b")]
    assert find_node(pod(nodeSelector={"zone": "b"}), [], nodes) == "n2"
    assert find_node(pod(nodeSelector={"zone": "c"}), [], nodes) is None


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], None),
        ([{"key": "role", "effect": "NoSchedule"}], "n1"),
        ([{"operator": "Exists"}], "n1"),
        ([{"key": "role", "value": "x"}], None),
        ([{"key": "role", "effect": "NoExecute"}], None),
    ],
)
def test_taints_must_be_tolerated(tolerations: list[JSON], expected: str | None) -> None:
    assert find_node(pod(tolerations=tolerations), [], [node("n1", ROLE)]) == expected


def test_preferences_and_cordons() -> None:
    """A taint that only discourages is no obstacle; a cordoned Node takes nothing."""
    cordoned = node("n1")
    cordoned["spec"]["unschedulable"] = True
    discouraged = node("n2", {"key": "role", "effect": "PreferNoSchedule"})
    assert find_node(pod(), [], [cordoned, discouraged]) == "n2"


def test_pods_that_repel_each_other_get_nodes_of_their_own() -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    placed = pod("b", on="n1")
    nodes = [node("n1"), node("n2")]
    assert find_node(pod(affinity=affinity), [placed], nodes) == "n2"
    assert find_node(pod(), [placed], nodes) == "n1"
    assert find_node(pod(affinity=affinity), [placed], nodes[:1]) is None


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ["x"], True),
        ("In", ["y"], False),
        ("NotIn", ["y"], True),
        ("NotIn", ["x"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
    ],
)
def test_label_expressions(operator: str, values: list[str], expected: bool) -> None:
    expression = {"key": "app", "operator": operator, "values": values}
    assert is_selected({"matchExpressions": [expression]}, {"app": "x"}) is expected


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not is_selected(None, {"app": "x"})
    assert is_selected({}, {"app": "x"})


def test_pods_run_and_end_once_there_is_a_deployment(tmp_path: Path) -> None:
    client, controllers = PodClient(Memory()), Controllers()
    pods = SimulatedPods(client, lambda: controllers, tmp_path / "log")
    pods.tick()
    assert not controllers.running  # most clusters have none, and the process is large
    write = client.memory.write
    metadata = {"name": "web", "namespace": NAMESPACE}
    write({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})
    write(pod())
    write(node("n1"))
    pods = SimulatedPods(client, lambda: controllers, tmp_path / "log")
    pods.tick()
    pods.tick()
    found = client.memory.find("Pod", "a")
    assert found is not None
    assert found["spec"]["nodeName"] == "n1"
    assert found["status"]["phase"] == "Running"
    assert controllers.starts == 1
    pods.stop()
    assert not controllers.running


def test_an_evicted_pod_keeps_its_condition_and_ends(tmp_path: Path) -> None:
    client = PodClient(Memory())
    metadata = {"name": "web", "namespace": NAMESPACE}
    client.memory.write({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})
    evicted = pod(on="n1")
    evicted["metadata"] |= {"deletionTimestamp": "now", "deletionGracePeriodSeconds": 30}
    evicted["metadata"]["finalizers"] = ["example.com/block"]
    evicted["status"] = {"phase": "Running", "conditions": [{"type": "DisruptionTarget"}]}
    client.memory.write(evicted)
    SimulatedPods(client, Controllers, tmp_path / "log").tick()
    found = client.memory.find("Pod", "a")
    assert found is not None
    status = {"phase": "Succeeded", "conditions": [{"type": "DisruptionTarget"}]}
    assert found["status"] == status


def test_only_the_pods_of_deleted_servers_are_deleted(tmp_path: Path) -> None:
    """A Pod that has no Node yet, such as that of an add-on, waits for one."""
    client, cloud = PodClient(Memory()), Cloud(Server("1", "n1", "box://1", "demo", None))
    kubelet = KubeadmKubelet(client, cloud, "demo", tmp_path / "log")
    for name, on in (("waits", ""), ("runs", "n1"), ("remains", "n2")):
        client.memory.write(pod(name, on=on))
    kubelet.tick()
    assert [each["metadata"]["name"] for each in client.memory.all("Pod")] == ["waits", "runs"]


def test_a_node_is_deleted_after_a_request_failed(tmp_path: Path) -> None:
    client, cloud = RefusingClient(Memory()), Cloud(Server("1", "n1", "box://1", "demo", None))
    kubelet = KubeadmKubelet(client, cloud, "demo", tmp_path / "log")
    kubelet.tick()
    assert len(client.memory.all("Node")) == 1
    cloud.found.clear()
    client.refuses_deletions = True
    with pytest.raises(ApiError):
        kubelet.tick()
    client.refuses_deletions = False
    kubelet.tick()
    assert client.memory.all("Node") == []
