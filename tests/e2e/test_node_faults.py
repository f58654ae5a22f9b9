"""Managers as Pods on one node, while Pods, their node and the API server fail."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually, steadily
from tests.e2e.node_lab import (
    ROOT,
    Answers,
    Deployment,
    NodeLab,
    count_reasons,
    open_node_lab,
    send_requests,
)

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]

_API = "infrastructure.cluster.x-k8s.io/v1alpha1"
_NAMESPACE = "acme-system"
_CERTIFICATE = f"{_NAMESPACE}-serving-cert"
_THREADS = 4
_MOMENTS = 20
_STARTING = 3
_START_SECONDS = 6.0
_GRACE_SECONDS = 60
"""Far less than the 310 s after which the kubelet would kill a manager that ignores SIGTERM."""
_QUIET_SECONDS = 3.0


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeLab]:
    """Return a lab with a cluster of three Machines, and a provider with an admission webhook."""
    folder = tmp_path_factory.mktemp("faults")
    with open_node_lab(folder, "acme") as lab:
        text = (ROOT / "examples/acme/provider.yaml").read_text(encoding="utf-8")
        kind = "    implements: InfraMachine\n"
        assert kind in text
        described = folder / "provider.yaml"
        described.write_text(text.replace(kind, f"{kind}    webhooks: {{validation: true}}\n"))
        lab.run("generate", str(described), "--output", str(lab.provider))
        shown = lab.run("lab", "demo", str(lab.provider), "--pod", "--name", lab.name)
        assert "The Cluster demo has 3 Machines Running" in shown
        yield lab


@pytest.fixture(scope="module")
def client(lab: NodeLab) -> Iterator[KubeClient]:
    with lab.connect() as client:
        yield client


@pytest.fixture
def manager(client: KubeClient) -> Iterator[Deployment]:
    """Return the manager's Deployment: one ready Pod before the test, three Machines after it."""
    manager = Deployment(client, _NAMESPACE)
    manager.roll_out({"replicas": 1})
    yield manager
    core = client.preferred_version("cluster.x-k8s.io")

    def check_machines() -> None:
        phases = [each["status"]["phase"] for each in client.list(core, "Machine", "default")]
        assert phases == ["Running"] * 3

    steadily(check_machines, seconds=_QUIET_SECONDS)


def _admit(client: KubeClient) -> AbstractContextManager[Answers]:
    """Send requests that the webhook has to admit."""

    def send(probe: KubeClient, number: int) -> None:
        obj: JSON = {
            "apiVersion": _API,
            "kind": "AcmeMachine",
            "metadata": {"name": f"probe-{number}", "namespace": "default"},
            "spec": {"size": "example", "image": "example"},
        }
        probe.apply(obj, dry_run=True)

    return send_requests(client, send, _THREADS)


def _annotated() -> JSON:
    """Return a change of the Pods' form, which replaces all of them."""
    stamp = {"e2e/changed": str(time.monotonic_ns())}
    return {"template": {"metadata": {"annotations": stamp}}}


def _find_processes(pod: JSON) -> list[int]:
    """Return the ids, on this computer, of the processes of a Pod's manager."""
    cgroup = f"pod{pod['metadata']['uid']}"
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_manager = b"cluster_api_provider_acme" in (folder / "cmdline").read_bytes()
            if is_manager and cgroup in (folder / "cgroup").read_text():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def _count_restarts(manager: Deployment) -> int:
    statuses = [each["status"].get("containerStatuses") or [] for each in manager.list_pods()]
    return sum(int(each["restartCount"]) for found in statuses for each in found)


@pytest.mark.parametrize("replicas", [1, 2])
def test_rolling_update(manager: Deployment, client: KubeClient, replicas: int) -> None:
    """No admission request is lost."""
    manager.roll_out({"replicas": replicas})
    with _admit(client) as answers:
        for _ in range(2):
            manager.roll_out(_annotated())
    print(answers.describe(f"two rolling updates with {replicas} replicas"))
    assert not answers.failures, count_reasons(answers)
    assert answers.answered > 2 * _THREADS


def test_early_end(manager: Deployment) -> None:
    """A manager ends when it is asked to, at whichever moment of its start."""
    manager.roll_out({"replicas": _STARTING})
    known = {each["metadata"]["uid"] for each in manager.list_pods()}
    for pod in manager.list_pods():
        manager.client.delete(pod)
    chance = random.Random(_MOMENTS)
    with ThreadPoolExecutor(_STARTING) as threads:
        ends = []
        for _ in range(_MOMENTS):
            # Each Pod that ends is replaced by a new one.
            pod = manager.wait_new_pod(known)
            known.add(pod["metadata"]["uid"])
            delay = chance.uniform(0, _START_SECONDS)
            ends.append(threads.submit(_end_early, manager, pod, delay))
        seconds = sorted(each.result() for each in ends)
    shown = ", ".join(f"{each:.1f}" for each in seconds)
    print(f"SIGTERM at {_MOMENTS} moments of the start, seconds until the Pod is gone: {shown}")


def _end_early(manager: Deployment, pod: JSON, delay: float) -> float:
    """Delete a Pod a moment after its start, and return the seconds until it is gone."""
    time.sleep(delay)
    began = time.monotonic()
    manager.client.delete(pod)
    what = "the manager that was starting is gone"
    eventually(_is_gone(manager, pod), what=what, timeout=_GRACE_SECONDS)
    return time.monotonic() - began


def _is_gone(manager: Deployment, pod: JSON) -> Callable[[], bool]:
    uid = pod["metadata"]["uid"]
    return lambda: uid not in {each["metadata"]["uid"] for each in manager.list_pods()}


def test_kill(manager: Deployment) -> None:
    """A manager that was killed starts again in its Pod, and leads."""
    (pod,) = manager.list_pods()
    restarts = _count_restarts(manager)
    began = time.monotonic()
    for process in _find_processes(pod):
        os.kill(process, signal.SIGKILL)
    eventually(lambda: _count_restarts(manager) > restarts, what="the container is restarted")
    _wait_leader(manager, pod["metadata"]["name"])
    print(f"kill -9: ready and leading after {time.monotonic() - began:.1f} s")


def _wait_leader(manager: Deployment, name: str = "") -> None:
    """Wait until Pods are ready, and one of them, perhaps a named one, holds a renewed lease."""
    renewed = _read_renewals(manager)

    def is_leading() -> bool:
        ready = manager.read()["status"].get("readyReplicas", 0)
        leader = manager.find_leader()
        names = {each["metadata"]["name"] for each in manager.list_pods()}
        is_renewed = _read_renewals(manager) > renewed
        return bool(ready and is_renewed and leader in names and leader == (name or leader))

    eventually(is_leading, what="a manager leads")


def _read_renewals(manager: Deployment) -> str:
    (lease,) = manager.client.list("coordination.k8s.io/v1", "Lease", manager.namespace)
    return str(lease["spec"].get("renewTime") or "")


def test_leader_change(manager: Deployment, client: KubeClient) -> None:
    """Of two managers the other one takes over, and no admission request is lost."""
    manager.roll_out({"replicas": 2})
    _wait_leader(manager)
    leader = manager.find_leader()
    (pod,) = [each for each in manager.list_pods() if each["metadata"]["name"] == leader]
    with _admit(client) as answers:
        began = time.monotonic()
        client.delete(pod)
        eventually(lambda: manager.find_leader() not in ("", leader), what="another one leads")
        print(f"leader deleted: another leads after {time.monotonic() - began:.1f} s")
        eventually(_is_gone(manager, pod), what="the former leader is gone")
    print(answers.describe("leader deleted, 2 replicas"))
    assert not answers.failures, count_reasons(answers)


def test_drain(manager: Deployment, client: KubeClient) -> None:
    """Evictions, one after the other, lose no admission request of two managers."""
    manager.roll_out({"replicas": 2})
    with _admit(client) as answers:
        for pod in manager.list_pods():
            _evict(client, pod)
            eventually(_is_gone(manager, pod), what="the evicted Pod is gone")
            manager.roll_out({})
    print(answers.describe("eviction of both Pods, one after the other"))
    assert not answers.failures, count_reasons(answers)


def test_drain_with_one_replica(manager: Deployment, client: KubeClient) -> None:
    """While the only Node is cordoned, only requests that need the webhook fail."""
    (pod,) = manager.list_pods()
    node = client.get("v1", "Node", pod["spec"]["nodeName"])
    with _admit(client) as answers, _read(client) as reads:
        client.patch(node, {"spec": {"unschedulable": True}})
        try:
            began = time.monotonic()
            _evict(client, pod)
            eventually(_is_gone(manager, pod), what="the evicted Pod is gone")
            eventually(lambda: bool(answers.failures), what="a request fails")
        finally:
            client.patch(node, {"spec": {"unschedulable": None}})
        manager.roll_out({})
        seconds = time.monotonic() - began
    reasons = count_reasons(answers)
    print(answers.describe(f"drain with one replica, {seconds:.1f} s from eviction to ready"))
    print(reads.describe("reads meanwhile"))
    assert all("failed calling webhook" in each for each in reasons), reasons
    assert not reads.failures, count_reasons(reads)
    with _admit(client) as answers:
        eventually(lambda: answers.answered > _THREADS, what="requests are admitted again")
    assert not answers.failures, count_reasons(answers)


def _evict(client: KubeClient, pod: JSON) -> None:
    """Evict a Pod, as `kubectl drain` does."""
    name = pod["metadata"]["name"]
    path = client.path("v1", "Pod", name, _NAMESPACE, "eviction")
    metadata = {"name": name, "namespace": _NAMESPACE}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    client.request("POST", path, body=eviction)


def _read(client: KubeClient) -> AbstractContextManager[Answers]:
    """Send requests that no webhook has to admit."""
    return send_requests(client, lambda probe, _: probe.list(_API, "AcmeMachine", "default"), 1)


def test_out_of_memory(manager: Deployment, client: KubeClient) -> None:
    """A form of the Pods that the kernel kills does not replace the one that works."""
    (former,) = manager.read()["spec"]["template"]["spec"]["containers"]
    with _admit(client) as answers:
        client.patch(manager.read(), {"spec": _limited(former, _TOO_SMALL)})
        eventually(lambda: "OOMKilled" in _list_reasons(manager), what="a Pod is killed")
        assert manager.read()["status"]["readyReplicas"] == 1
        manager.roll_out(_limited(former, former["resources"]))
    print(answers.describe("a Pod killed for its memory, beside one that works"))
    assert not answers.failures, count_reasons(answers)


_TOO_SMALL = {"limits": {"memory": "20Mi"}, "requests": {"cpu": "50m", "memory": "16Mi"}}


def _limited(container: JSON, resources: JSON) -> JSON:
    return {"template": {"spec": {"containers": [{**container, "resources": resources}]}}}


def _list_reasons(manager: Deployment) -> set[str]:
    statuses = [each["status"].get("containerStatuses") or [] for each in manager.list_pods()]
    states = [each.get(key) or {} for found in statuses for each in found for key in _STATES]
    return {state["terminated"]["reason"] for state in states if "terminated" in state}


_STATES = ("state", "lastState")


def test_certificate_renewal(manager: Deployment, client: KubeClient) -> None:
    """The webhook's certificate is renewed, and no admission request is lost meanwhile."""
    secret = _find_secret(client)
    former = secret["data"]["tls.crt"]
    with _admit(client) as answers:
        certificate = client.get("cert-manager.io/v1", "Certificate", _CERTIFICATE, _NAMESPACE)
        condition = {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered"}
        conditions = [*certificate["status"]["conditions"], {**condition, "message": "by a test"}]
        client.patch(certificate, {"status": {"conditions": conditions}}, subresource="status")
        eventually(lambda: _find_secret(client)["data"]["tls.crt"] != former, what="a renewal")
        steadily(lambda: None, seconds=_QUIET_SECONDS)
    print(answers.describe("renewal of the webhook's certificate"))
    assert not answers.failures, count_reasons(answers)


def _find_secret(client: KubeClient) -> JSON:
    certificate = client.get("cert-manager.io/v1", "Certificate", _CERTIFICATE, _NAMESPACE)
    return client.get("v1", "Secret", certificate["spec"]["secretName"], _NAMESPACE)


def test_api_server_outage(lab: NodeLab, manager: Deployment, client: KubeClient) -> None:
    """After an outage that outlasts the lease, a manager leads again without help."""
    (pod,) = manager.list_pods()
    managers = set(_find_processes(pod))
    servers = _find_api_servers(lab)
    began = time.monotonic()
    try:
        for process in servers:
            os.kill(process, signal.SIGSTOP)
        # It must not act without its lease.
        eventually(lambda: not managers & set(_find_processes(pod)), what="the manager ends")
    finally:
        for process in servers:
            os.kill(process, signal.SIGCONT)
    eventually(lambda: _responds(client), what="the API server responds")
    back = time.monotonic()
    _wait_leader(manager)
    print(
        f"API server away for {back - began:.0f} s: leading {time.monotonic() - back:.1f} s later, "
        f"{_count_restarts(manager)} restarts"
    )
    assert _count_restarts(manager) <= 2


def _responds(client: KubeClient) -> bool:
    try:
        return bool(client.request("GET", "/readyz"))
    except (ApiError, OSError):
        return False


def _find_api_servers(lab: NodeLab) -> list[int]:
    """Return the process ids of the API servers that Pods use."""
    root = str(lab.folder.root.resolve()).encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        is_server = words[0].endswith(b"/kube-apiserver") and any(root in each for each in words)
        if is_server and any(b"NodeRestriction" in each for each in words):
            found.append(int(folder.name))
    assert found
    return found
