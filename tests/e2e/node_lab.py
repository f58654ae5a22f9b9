"""A lab with a node in which one provider runs as Pods, for modules that share it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path

import pytest

from capsmith.clusters.lab.folder import find_labs_folder, resolve_lab
from capsmith.clusters.lab.state import RunState, read_run
from capsmith.clusters.node.builder import find_builder
from capsmith.clusters.node.host import find_missing, read_facts, require_host
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.tools.catalogue import core_module, default_core, kubeadm_module
from capsmith.clusters.processes.user_kubeconfig import open_client
from capsmith.clusters.processes.wait import eventually
from capsmith.errors import CapsmithError
from tests.checkout import environment
from tests.e2e.base_image import build_base_images, has_base_images
from tests.e2e.tools.required import required_toolbox

ROOT = Path(__file__).parents[2]
_SECONDS = 900
_RUN_SECONDS = 500
_PAUSE_SECONDS = 0.1


class NodeLab:
    """The command in its own environment, with one lab and the folder of one provider.

    The managers of a lab without a node have ``variables`` in their environment.
    """

    def __init__(self, folder: Path, provider: str, **variables: str) -> None:
        self.provider = folder / provider
        self.name = provider
        self._keys = folder
        paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = environment(
            XDG_STATE_HOME=str(folder / "state"), PATH=paths, **variables
        )
        self.folder = resolve_lab(find_labs_folder(self.environment), self.name)

    def run(self, *arguments: str, is_checked: bool = True) -> str:
        """Run a command and return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "capsmith", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        assert not is_checked or done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def run_provider(self, provider: Path) -> None:
        """Install the release of a provider as Pods, which keep running when this returns."""
        command = [sys.executable, "-m", "capsmith", "lab", "run", str(provider), "--pod"]
        child = subprocess.Popen(
            [*command, "--name", self.name],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            state: RunState | None = eventually(
                lambda: self._find_settled(child), what="the release runs", timeout=_RUN_SECONDS
            )
        finally:
            child.send_signal(signal.SIGINT)
            shown, _ = child.communicate()
        assert state is not None
        assert state.state == "running", f"{state.message}\n{shown}"

    def _find_settled(self, child: subprocess.Popen[str]) -> RunState | None:
        """Return the state of a run that has started or failed, or None while it starts."""
        assert child.poll() is None
        state = read_run(self.folder.run_state)
        if state is None or state.pid != child.pid or state.state == "starting":
            return None
        return state

    @contextmanager
    def connect(self) -> Iterator[KubeClient]:
        """Return a context manager with a client of the running lab that has all permissions."""
        kubeconfig = Path(self.run("lab", "kubeconfig", "--name", self.name).strip())
        with closing(open_client(kubeconfig, self._keys)) as client:
            yield client


@contextmanager
def open_node_lab(folder: Path, provider: str) -> Iterator[NodeLab]:
    """Provide a lab that is not started, and end it; skip the test where no node can run."""
    try:
        require_host()
        builder = find_builder()
    except CapsmithError as error:
        if os.environ.get("CI") and not find_missing(replace(read_facts(), tools={})):
            raise  # the job that runs this test installs the packages
        pytest.skip(f"no node can run here: {error}")
    if builder.name == "buildah" and not has_base_images():
        build_base_images(folder / "base")
    series = default_core()
    required_toolbox("the tests on a node", ["k8s", core_module(series), kubeadm_module(series)])
    lab = NodeLab(folder, provider)
    try:
        yield lab
    finally:
        lab.run("lab", "down", "--all", "--force", is_checked=False)


@dataclass(frozen=True)
class Deployment:
    """The Deployment of a provider's manager."""

    client: KubeClient
    namespace: str

    @property
    def name(self) -> str:
        """Return the name, which starts with the name of the namespace."""
        return f"{self.namespace}-controller-manager"

    def read(self) -> JSON:
        """Return the Deployment object."""
        return self.client.get("apps/v1", "Deployment", self.name, self.namespace)

    def list_pods(self) -> list[JSON]:
        """Return the Deployment's Pods, including those that are ending."""
        labels = {"control-plane": "controller-manager"}
        return self.client.list("v1", "Pod", self.namespace, labels)

    def find_leader(self) -> str:
        """Return the name of the Pod that holds the lease; empty if none does."""
        leases = self.client.list("coordination.k8s.io/v1", "Lease", self.namespace)
        (lease,) = leases or [{"spec": {}}]
        return str(lease["spec"].get("holderIdentity") or "").partition("_")[0]

    def roll_out(self, spec: JSON) -> None:
        """Change the Deployment, and wait until only new Pods exist and all are ready."""
        changed = self.client.patch(self.read(), {"spec": spec})

        def is_done() -> bool:
            found = self.read()
            status, replicas = found.get("status") or {}, found["spec"]["replicas"]
            keys = ("updatedReplicas", "readyReplicas", "replicas")
            counts = [status.get(key, 0) for key in keys]
            is_seen = status.get("observedGeneration", 0) >= changed["metadata"]["generation"]
            return is_seen and counts == [replicas] * 3 and len(self.list_pods()) == replicas

        eventually(is_done, what="the Deployment is rolled out", timeout=300)

    def wait_new_pod(self, known: set[str]) -> JSON:
        """Wait until the container of a Pod whose uid is not in `known` runs; return the Pod."""
        pod, *_ = eventually(
            lambda: [each for each in self.list_pods() if _is_started(each, known)],
            what="a new manager starts",
            interval=0.05,
        )
        return pod


def _is_started(pod: JSON, known: set[str]) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    is_running = any("running" in (each.get("state") or {}) for each in statuses)
    return is_running and pod["metadata"]["uid"] not in known


@dataclass
class Answers:
    """The number of requests that were answered, and the reasons for those that were not."""

    answered: int = 0
    failures: list[str] = field(default_factory=list)

    def describe(self, what: str) -> str:
        """Return failed and all requests, as a line of a report."""
        failed = len(self.failures)
        return f"{what}: {failed} failed of {self.answered + failed} requests"


@contextmanager
def send_requests(
    client: KubeClient, send: Callable[[KubeClient, int], object], threads: int
) -> Iterator[Answers]:
    """Call `send` again and again, and count the answers.

    It is called with the number of its thread, and with a client like `client` that reports a
    webhook that does not respond, where other clients would try again.
    """
    answers, ended, lock = Answers(), threading.Event(), threading.Lock()
    probe = KubeClient(client.server, client.credentials)
    probe.retries_webhooks = False

    def repeat(number: int) -> None:
        while not ended.wait(_PAUSE_SECONDS):
            try:
                send(probe, number)
                with lock:
                    answers.answered += 1
            except (ApiError, OSError, HTTPException) as error:
                answers.failures.append(str(error))

    running = [threading.Thread(target=repeat, args=(each,)) for each in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield answers
    finally:
        ended.set()
        for thread in running:
            thread.join()
        probe.close()


def count_reasons(answers: Answers) -> Counter[str]:
    """Return how often each reason occurs, for the message of an assertion."""
    return Counter(answers.failures)
