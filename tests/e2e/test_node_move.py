"""`clusterctl move` from a manager in a Pod to one in a process, and back to the Pod.

Each manager is in a lab of its own, and both see one simulated cloud.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from capsmith.clusters.lab.connection import LabConnection, connect
from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.wait import NotYet, eventually, steadily
from tests.e2e.harness.cloud import VARIABLE, Event, SimulatedCloud
from tests.e2e.harness.manager_log import bad_ends, complaints
from tests.e2e.node_lab import ROOT, Deployment, NodeLab, open_node_lab

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]

_MANAGER = "acme-system"
_API = "infrastructure.cluster.x-k8s.io/v1alpha1"
_KINDS = ("AcmeCluster", "AcmeMachine")
_BLOCK = "clusterctl.cluster.x-k8s.io/block-move"
_NAMESPACE, _NAME, _MACHINES = "default", "demo", 3
_QUIET_SECONDS = 3.0
_ERRORS = ("ERROR", "CRITICAL")

# The manager's namespace admits no Pod with a folder of the node, but one with a claim to it.
_VOLUME = "simulated-cloud"
_FOLDER = "/srv/cloud"
_ACCESS: JSON = {"storageClassName": "", "accessModes": ["ReadWriteMany"]}
_CLAIM: JSON = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": _VOLUME, "namespace": _MANAGER},
    "spec": {**_ACCESS, "volumeName": _VOLUME, "resources": {"requests": {"storage": "1Gi"}}},
}
_POD = "/spec/template/spec"
_ADDED = {
    f"{_POD}/volumes/-": {"name": _VOLUME, "persistentVolumeClaim": {"claimName": _VOLUME}},
    f"{_POD}/containers/0/volumeMounts/-": {"name": _VOLUME, "mountPath": _FOLDER},
    f"{_POD}/containers/0/env/-": {"name": VARIABLE, "value": _FOLDER},
}


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    """Return the cloud of both managers; that in the Pod has a user of its own."""
    cloud = SimulatedCloud(tmp_path / "cloud")
    cloud.folder.chmod(0o777)
    return cloud


@pytest.fixture
def pods(tmp_path: Path, cloud: SimulatedCloud) -> Iterator[LabConnection]:
    """Return a lab with a cluster of three Machines, and a provider that runs as a Pod."""
    with open_node_lab(tmp_path, "acme") as lab:
        example = ROOT / "examples/acme/provider.yaml"
        lab.run("generate", str(example), "--output", str(lab.provider))
        _add_volume(lab.provider)
        with _timed("a lab with a node"):
            lab.run("lab", "up", "--node", "--name", lab.name)
        with connect(lab.folder) as connection:
            connection.client.apply(_describe_volume(cloud.folder))
            with _timed("image, release and a cluster of three Machines"):
                shown = lab.run("lab", "demo", str(lab.provider), "--pod", "--name", lab.name)
            assert f"The Cluster {_NAME} has {_MACHINES} Machines Running" in shown
            yield connection


@pytest.fixture
def processes(
    tmp_path: Path, pods: LabConnection, cloud: SimulatedCloud
) -> Iterator[LabConnection]:
    """Return a lab without a cluster, and the same provider as a process; it ends with `pods`."""
    lab = NodeLab(tmp_path, "target", **{VARIABLE: str(cloud.folder)})
    with _timed("a lab of processes, with the provider"):
        lab.run("lab", "up", "--name", lab.name)
        # The run that this starts goes on in the background.
        lab.run("lab", "exec", "--dir", str(tmp_path / "acme"), "--name", lab.name, "--", "true")
    with connect(lab.folder) as connection:
        yield connection


def _add_volume(provider: Path) -> None:
    """Put the simulated cloud on a volume, in the author's own folder of manifests."""
    overlay = provider / "config/overlay"
    (overlay / "volume.yaml").write_text(yaml.safe_dump(_CLAIM))
    file = overlay / "kustomization.yaml"
    described = yaml.safe_load(file.read_text())
    described["resources"].append("volume.yaml")
    added = [{"op": "add", "path": path, "value": value} for path, value in _ADDED.items()]
    described["patches"] = [{"patch": yaml.safe_dump(added), "target": {"kind": "Deployment"}}]
    file.write_text(yaml.safe_dump(described))


def _describe_volume(folder: Path) -> JSON:
    source = {"hostPath": {"path": str(folder), "type": "Directory"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": _VOLUME},
        "spec": {**_ACCESS, "capacity": {"storage": "1Gi"}, **source},
    }


def test_move(pods: LabConnection, processes: LabConnection, cloud: SimulatedCloud) -> None:
    """Servers and Machines stay the same ones; in the end, deletion removes the servers."""
    deployment = Deployment(pods.client, _MANAGER)
    (pod,) = deployment.list_pods()
    servers, journal = cloud.servers(), cloud.journal()
    machines = _read_machines(pods.client)
    assert sorted(machines.values()) == sorted(each.provider_id for each in servers)
    for source, target in ((pods, processes), (processes, pods)):
        _move(source, target)
        _check_identity(target.client)
        _check_machines(target, machines, cloud, journal)
        assert cloud.servers() == servers
        assert _list_objects(source.client) == []
    _delete(pods.client, cloud)
    assert _list_objects(processes.client) == []
    _check_pod(deployment, pod)
    _check_log((processes.folder / "manager-infrastructure.log").read_text())


def _move(source: LabConnection, target: LabConnection) -> None:
    """Move the cluster, and check that it is paused from before its copy exists until the end."""
    since = {each.name: _read_version(each.client) for each in (source, target)}
    (held,) = source.client.list(_API, "AcmeCluster", _NAMESPACE)
    # Otherwise the objects could be gone before their manager has seen that they are paused.
    source.client.patch(held, {"metadata": {"annotations": {_BLOCK: ""}}})
    with (
        _timed(f"clusterctl move from {source.name} to {target.name}"),
        ThreadPoolExecutor(1) as threads,
    ):
        moved = threads.submit(
            source.clusterctl.move, source.kubeconfig, target.kubeconfig, _NAMESPACE
        )
        with _timed(f"{source.name}: its manager reports the pause"):
            eventually(
                lambda: moved.done() or _have_pause(source.client, "True"), what="all is paused"
            )
        source.client.patch(held, {"metadata": {"annotations": {_BLOCK: None}}})
        moved.result()
    pauses = _list_pauses(source.client, since[source.name], until="DELETED")
    assert pauses in ([True], [False, True]), "the source is deleted while it is paused"
    pauses = _list_pauses(target.client, since[target.name], until="RESUMED")
    assert pauses == [True, False], "the target is created paused"
    eventually(lambda: _have_pause(target.client, "False"), what="the manager reports the end")


def _check_machines(
    lab: LabConnection, machines: dict[str, str], cloud: SimulatedCloud, journal: list[Event]
) -> None:
    """Wait until the same Machines are Running, and check that they stay so."""
    client = lab.client
    with _timed(f"{lab.name}: all Machines are Running"):
        eventually(lambda: _read_machines(client) == machines, what="the same Machines run")

    def check_unchanged() -> None:
        assert _read_machines(client) == machines
        assert cloud.journal() == journal

    steadily(check_unchanged, seconds=_QUIET_SECONDS)


def _read_version(client: KubeClient) -> str:
    core = client.preferred_version("cluster.x-k8s.io")
    found = client.request("GET", client.path(core, "Cluster", None, _NAMESPACE))
    return str(found["metadata"]["resourceVersion"])


def _list_pauses(client: KubeClient, since: str, until: str) -> list[bool]:
    """Return the states of the Cluster, True if it is paused, without repetitions.

    They end with its deletion, or with the end of a pause.
    """
    core = client.preferred_version("cluster.x-k8s.io")
    pauses: list[bool] = []
    for event in client.watch(core, "Cluster", _NAMESPACE, since):
        is_paused = _is_paused(event["object"])
        ends = {event["type"], "RESUMED" if True in pauses and not is_paused else ""}
        if pauses[-1:] != [is_paused]:
            pauses.append(is_paused)
        if until in ends:
            return pauses
    raise AssertionError(f"the Cluster is not {until}: {pauses}")


def _is_paused(cluster: JSON) -> bool:
    return bool(cluster["spec"].get("paused"))


def _have_pause(client: KubeClient, status: str) -> bool:
    """Report whether all infrastructure objects have the condition Paused with this status."""
    found = {
        f"{kind} {each['metadata']['name']}": condition["status"]
        for kind in _KINDS
        for each in client.list(_API, kind, _NAMESPACE)
        for condition in (each.get("status") or {}).get("conditions") or []
        if condition["type"] == "Paused"
    }
    if list(found.values()) != [status] * (_MACHINES + 1):
        raise NotYet(f"Paused: {found}")
    return True


def _read_machines(client: KubeClient) -> dict[str, str]:
    """Return the provider IDs of all Machines by name.

    Raises NotYet if one is not Running.
    """
    core = client.preferred_version("cluster.x-k8s.io")
    found = client.list(core, "Machine", _NAMESPACE)
    phases = [(each.get("status") or {}).get("phase") for each in found]
    if phases != ["Running"] * _MACHINES:
        raise NotYet(f"phases of Machines: {phases}")
    return {each["metadata"]["name"]: each["spec"]["providerID"] for each in found}


def _check_identity(client: KubeClient) -> None:
    """The identity has come along with its Secret, which no user has created there."""
    identity = client.get(_API, "AcmeIdentity", "acme")
    secret = client.get("v1", "Secret", identity["spec"]["secretRef"]["name"], _MANAGER)
    owners = [each["uid"] for each in secret["metadata"]["ownerReferences"]]
    assert owners == [identity["metadata"]["uid"]]


def _list_objects(client: KubeClient) -> list[str]:
    """Return the cluster's Secrets, and all objects of Cluster API and providers beside it."""
    versions = [
        each["preferredVersion"]["groupVersion"]
        for each in client.request("GET", "/apis")["groups"]
        if each["name"].endswith("cluster.x-k8s.io")
    ]
    kinds = [
        (version, resource["kind"])
        for version in versions
        for resource in client.request("GET", f"/apis/{version}")["resources"]
        if resource["namespaced"] and "list" in resource["verbs"]
    ]
    return [
        f"{kind} {each['metadata']['name']}"
        for version, kind in [*kinds, ("v1", "Secret")]
        for each in client.list(version, kind, _NAMESPACE)
    ]


def _delete(client: KubeClient, cloud: SimulatedCloud) -> None:
    core = client.preferred_version("cluster.x-k8s.io")
    client.delete(client.get(core, "Cluster", _NAME, _NAMESPACE))
    with _timed("the Cluster is deleted"):
        eventually(
            lambda: client.find(core, "Cluster", _NAME, _NAMESPACE) is None,
            what="the Cluster is deleted",
        )
    assert (cloud.servers(), cloud.clusters()) == ([], [])
    actions = [each.action for each in cloud.journal()]
    assert actions == ["create"] * (_MACHINES + 1) + ["delete"] * (_MACHINES + 1)


def _check_pod(deployment: Deployment, first: JSON) -> None:
    """The Pod is still the first one, has never restarted, and its log has no error."""
    (pod,) = deployment.list_pods()
    assert pod["metadata"]["uid"] == first["metadata"]["uid"]
    assert [each["restartCount"] for each in pod["status"]["containerStatuses"]] == [0]
    client = deployment.client
    path = client.path("v1", "Pod", pod["metadata"]["name"], _MANAGER, "log")
    _check_log(client.request("GET", path)["text"])


def _check_log(log: str) -> None:
    assert log
    words = (line.split(maxsplit=2) for line in log.splitlines())
    assert [each for each in words if len(each) > 1 and each[1] in _ERRORS] == []
    assert complaints(log) == bad_ends(log) == []


@contextmanager
def _timed(what: str) -> Iterator[None]:
    """Print the seconds that the body takes, as a line of a report."""
    began = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - began:.1f} s")
