"""A provider as it ships: an image of its Dockerfile, a Deployment of its release, on a node.

cert-manager, core and the providers for kubeadm are Pods as well, which the unmodified clusterctl
installs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path

import pytest

from capsmith.clusters.lab.folder import find_labs_folder, resolve_lab
from capsmith.clusters.node.builder import find_builder
from capsmith.clusters.node.host import find_missing, read_facts, require_host
from capsmith.clusters.node.plan import name_cgroup
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.tools import Toolbox
from capsmith.clusters.processes.user_kubeconfig import open_client
from capsmith.clusters.processes.wait import eventually
from capsmith.errors import CapsmithError
from tests.checkout import environment
from tests.e2e.base_image import build_base_images, has_base_images

# Its images and Pods cost more processor time than any other test.
pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]

_ROOT = Path(__file__).parents[2]
_NAME = "shipped"
_NAMESPACE = "acme-system"
_DEPLOYMENT = "acme-system-controller-manager"
_API = "infrastructure.cluster.x-k8s.io/v1alpha1"
_READERS = 4
_SECONDS = 900
_GRACE_SECONDS = 60
"""Far less than the 310 s after which the kubelet would kill a manager that ignores SIGTERM."""


class NodeLab:
    """The command in an environment of its own, for a provider with an admission webhook."""

    def __init__(self, folder: Path) -> None:
        self.provider = folder / "acme"
        paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = environment(XDG_STATE_HOME=str(folder / "state"), PATH=paths)
        self.folder = resolve_lab(find_labs_folder(self.environment), _NAME)

    def run(self, *arguments: str, is_checked: bool = True) -> str:
        """Run a command and return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "capsmith", *arguments],
            cwd=_ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        assert not is_checked or done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture
def lab(tools: Toolbox, tmp_path: Path) -> Iterator[NodeLab]:
    try:
        require_host()
        builder = find_builder()
    except CapsmithError as error:
        if os.environ.get("CI") and not find_missing(replace(read_facts(), tools={})):
            raise  # the job that runs this test installs the packages
        pytest.skip(f"no node can run here: {error}")
    if builder.name == "buildah" and not has_base_images():
        build_base_images(tmp_path / "base")
    lab = NodeLab(tmp_path)
    text = (_ROOT / "examples/acme/provider.yaml").read_text(encoding="utf-8")
    kind = "    implements: InfraMachine\n"
    assert kind in text
    described = tmp_path / "provider.yaml"
    described.write_text(text.replace(kind, f"{kind}    webhooks: {{validation: true}}\n"))
    lab.run("generate", str(described), "--output", str(lab.provider))
    try:
        yield lab
    finally:
        lab.run("lab", "down", "--all", "--force", is_checked=False)


def test_provider_as_it_ships(lab: NodeLab, tmp_path: Path) -> None:
    """Machines run; no admission request is lost in an update; nothing is left in the end."""
    before = _list_traces(lab.folder.root)
    shown = lab.run("lab", "demo", str(lab.provider), "--pod", "--name", _NAME)
    assert "The Cluster demo has 3 Machines Running" in shown
    kubeconfig = Path(lab.run("lab", "kubeconfig", "--name", _NAME).strip())
    with closing(open_client(kubeconfig, tmp_path)) as client:
        _check_restricted(client)
        _check_rolling_update(client)
        _check_early_end(client)
        demo = client.get(_core(client), "Cluster", "demo", "default")
        client.delete(demo)
        eventually(
            lambda: client.find(_core(client), "Cluster", "demo", "default") is None,
            what="the Cluster is deleted",
        )
    lab.run("lab", "down", "--name", _NAME)
    assert _list_traces(lab.folder.root) == before


def _core(client: KubeClient) -> str:
    return client.preferred_version("cluster.x-k8s.io")


def _check_restricted(client: KubeClient) -> None:
    """The Pods of the provider are admitted under the strictest of Kubernetes' standards."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = client.get("v1", "Namespace", _NAMESPACE)
    client.patch(namespace, {"metadata": {"labels": labels}})
    _roll_out(client, {"replicas": 2})
    *_, first = _pods(client)
    assert first["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"]


def _check_rolling_update(client: KubeClient) -> None:
    """With two managers, one of them serves at each moment of an update."""
    with _admissions(client) as (answers, failures):
        _roll_out(client, {"template": {"metadata": {"annotations": {"changed": "1"}}}})
    assert not failures, Counter(failures)
    assert answers.total() > 2 * _READERS, answers


def _check_early_end(client: KubeClient) -> None:
    """A manager ends when it is asked to while it starts, and need not be killed."""
    known = {each["metadata"]["uid"] for each in _pods(client)}
    for pod in _pods(client):
        client.delete(pod)
    starting, *_ = eventually(
        lambda: [pod for pod in _pods(client) if _is_new(pod, known)],
        what="a new manager starts",
        interval=0.05,
    )
    began = time.monotonic()
    client.delete(starting)
    eventually(
        lambda: starting["metadata"]["uid"] not in {p["metadata"]["uid"] for p in _pods(client)},
        what="the manager that was starting is gone",
        timeout=_GRACE_SECONDS,
    )
    assert time.monotonic() - began < _GRACE_SECONDS
    _roll_out(client, {})


def _is_new(pod: JSON, known: set[str]) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    is_started = any("running" in (each.get("state") or {}) for each in statuses)
    return is_started and pod["metadata"]["uid"] not in known


def _pods(client: KubeClient) -> list[JSON]:
    return client.list("v1", "Pod", _NAMESPACE, {"control-plane": "controller-manager"})


def _roll_out(client: KubeClient, spec: JSON) -> None:
    """Change the Deployment, and wait until only Pods of the new form are there and ready."""
    deployment = client.get("apps/v1", "Deployment", _DEPLOYMENT, _NAMESPACE)
    wanted = client.patch(deployment, {"spec": spec})

    def is_done() -> bool:
        found = client.get("apps/v1", "Deployment", _DEPLOYMENT, _NAMESPACE)
        status, replicas = found["status"], found["spec"]["replicas"]
        counts = [status.get(key, 0) for key in ("updatedReplicas", "readyReplicas", "replicas")]
        is_seen = status.get("observedGeneration", 0) >= wanted["metadata"]["generation"]
        return is_seen and counts == [replicas] * 3 and len(_pods(client)) == replicas

    eventually(is_done, what="the Deployment is rolled out")


@contextmanager
def _admissions(client: KubeClient) -> Iterator[tuple[Counter[str], list[str]]]:
    """Send requests that the webhook has to admit, from several threads, and count the answers."""
    answers: Counter[str] = Counter()
    failures: list[str] = []
    ended = threading.Event()

    def send(number: int) -> None:
        obj: JSON = {
            "apiVersion": _API,
            "kind": "AcmeMachine",
            "metadata": {"name": f"probe-{number}", "namespace": "default"},
            "spec": {"size": "example", "image": "example"},
        }
        while not ended.wait(0.1):
            try:
                client.apply(obj, dry_run=True)
                answers["admitted"] += 1
            except (ApiError, OSError, HTTPException) as error:
                answers["failed"] += 1
                failures.append(str(error))

    threads = [threading.Thread(target=send, args=(each,)) for each in range(_READERS)]
    for thread in threads:
        thread.start()
    try:
        yield answers, failures
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _list_traces(lab: Path) -> dict[str, list[str]]:
    """Return what a node could leave behind: interfaces, mounts, cgroups, processes and files."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    cgroup = name_cgroup(lab)
    commands = [
        path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.exists()
    ]
    return {
        "interfaces": sorted(each.name for each in Path("/sys/class/net").iterdir()),
        "mounts": sorted(each.split()[4] for each in mounts),
        "cgroups": [str(each) for each in Path("/sys/fs/cgroup").rglob(cgroup)],
        "processes": [each for each in commands if f"/lab/{_NAME}" in each],
        "files": sorted(str(each) for each in Path("/opt").rglob("*")),
    }
