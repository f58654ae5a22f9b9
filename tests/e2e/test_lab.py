"""`capsmith lab` as its users run it: a demo, crashes in it, and what is left in the end."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from capsmith.clusters.lab.demo import observe
from capsmith.clusters.lab.folder import LabFolder, find_labs_folder, resolve_lab
from capsmith.clusters.lab.state import read_run
from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.clusters.processes.tools import Toolbox
from capsmith.clusters.processes.user_kubeconfig import open_client
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.checkout import environment

_ROOT = Path(__file__).parents[2]
_EXAMPLES = _ROOT / "examples"
_ACME = _EXAMPLES / "acme" / "provider.yaml"
_RAFT = """\
capsmith: 1
name: raft
repository: https://github.com/raft/cluster-api-provider-raft
contracts: [v1beta2]
releases: {v0.1: v1beta2}
controlPlane:
  RaftControlPlane:
    implements: ControlPlane
    features: {externalManagedControlPlane: true}
"""
_SECONDS = 720
"""Longer than `lab demo` waits, so that its own report of what is missing is seen."""


def _example(name: str) -> str:
    return (_EXAMPLES / name / "provider.yaml").read_text(encoding="utf-8")


class Lab:
    """The command in an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self.provider = folder / "acme"
        self.state = folder / "state"
        self.environment = environment(XDG_STATE_HOME=str(self.state), PATH=self._path())
        self.folder: LabFolder = resolve_lab(find_labs_folder(self.environment), "acme")

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run a command that ends with ``code``, and return what it prints."""
        done = self.ended(*arguments)
        assert (
            done.returncode == code
        ), f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def ended(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        command = [sys.executable, "-m", "capsmith", *arguments]
        return subprocess.run(
            command,
            cwd=self.provider if self.provider.is_dir() else _ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )

    def components(self) -> dict[str, dict[str, Any]]:
        """Return what `status` says of each process."""
        found = json.loads(self.ended("lab", "status", "--format", "json").stdout)
        return {each["name"]: each for each in found["components"]}

    def processes(self) -> list[str]:
        """Return the command lines of processes that have the lab's folder in theirs."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self.state) in line:
                found.append(line)
        return found

    def _path(self) -> str:
        return os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.fixture
def lab(tools: Toolbox, tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    lab.run("generate", str(_ACME), "--output", str(lab.provider))
    try:
        yield lab
    finally:
        lab.ended("lab", "down", "--all", "--force")


def test_demo(lab: Lab, tmp_path: Path) -> None:
    """Three Machines run; then what the demo proposes, a killed API server, and the end."""
    shown = lab.run("lab", "demo", ".", "--page")
    steps = re.findall(r"^(?:starting|installing) .* \((\d) of (\d)\)$", shown, re.MULTILINE)
    assert steps == [(str(number), "6") for number in range(1, 7)]
    assert "The Cluster demo has 3 Machines Running" in shown
    assert "Machine/demo-" in shown
    run = read_run(lab.folder.run_state)
    assert run is not None
    assert {"error", "hang", "refuse"} <= set(run.faults)
    assert str(lab.folder.page_opener) in shown
    _check_page(lab)
    assert lab.run("lab", "kubeconfig").strip() in shown
    kubeconfig = Path(lab.run("lab", "kubeconfig").strip())
    with closing(open_client(kubeconfig, tmp_path)) as client:
        manager = _kill(lab, "manager-infrastructure")
        _scale(client, 3)
        _wait_running(client, 4)
        assert lab.components()["manager-infrastructure"]["pid"] not in (0, manager)
        ended = "manager-infrastructure was terminated by SIGKILL"
        assert ended in lab.run("lab", "logs", "run")
        apiserver = _kill(lab, "apiserver")
        _wait_answer(lab, client, apiserver)
        _scale(client, 2)
        _wait_running(client, 3)
        _check_changed_samples(lab, client)
    assert "error lab-exists" in lab.run("lab", "up", code=1)
    assert "error lab-run-active" in lab.run("lab", "run", code=1)
    assert "reconcile" in lab.run("lab", "logs", "manager")
    _check_exec(lab, kubeconfig)
    _check_given(lab, kubeconfig)
    lab.run("lab", "down")
    assert lab.processes() == []
    assert not lab.state.exists() or list(lab.state.iterdir()) == []
    assert "error lab-not-running" in lab.run("lab", "status", code=2)


def _check_changed_samples(lab: Lab, client: KubeClient) -> None:
    """A second demo keeps credentials and identities that the user has changed."""
    group = client.preferred_version("infrastructure.cluster.x-k8s.io")
    credentials = ("v1", "Secret", "acme-credentials", "acme-system")
    samples = [client.get(*credentials), client.get(group, "AcmeIdentity", "acme")]
    assert "differs" not in lab.run("lab", "demo", ".")
    token = base64.b64encode(b"5ecret").decode()
    client.patch(samples[0], {"data": {"token": token}})
    client.patch(samples[1], {"spec": {"allowedNamespaces": {"list": ["default", "team"]}}})
    shown = lab.run("lab", "demo", ".")
    for name in ("Secret acme-system/acme-credentials", "AcmeIdentity acme"):
        assert f"the {name} differs from the provider's, and is left unchanged" in shown
    assert client.get(*credentials)["data"] == {"token": token}
    identity = client.get(group, "AcmeIdentity", "acme")
    assert identity["spec"]["allowedNamespaces"] == {"list": ["default", "team"]}


def _check_page(lab: Lab) -> None:
    """The page in the background shows the Machines and what can be tried."""
    opener = lab.folder.page_opener.read_text(encoding="utf-8")
    address = re.search(r"http://(127\.0\.0\.1:\d+)/", opener)
    assert address is not None
    key = opener.split("<pre>")[1].split("</pre>")[0]
    headers = {"Authorization": f"Bearer {key}", "Origin": f"http://{address[1]}"}
    with closing(http.client.HTTPConnection(address[1], timeout=60)) as connection:
        connection.request("POST", "/api/stream", b"{}", headers)
        response = connection.getresponse()
        assert response.status == 200
        missing = {"Machine", "Kill the manager-infrastructure"}
        while missing and (line := response.readline()):
            message = json.loads(line)
            rows = message.get("tree", {}).get("rows", [])
            missing -= {row["kind"] for row in rows if row["state"] == "Running"}
            missing -= {each["title"] for each in message.get("actions", {}).get("lab", [])}
    assert missing == set()


def _check_exec(lab: Lab, kubeconfig: Path) -> None:
    """A command in the lab finds the lab, its kubectl, and its clusterctl with the provider."""
    lines = (
        "ls $KUBECONFIG $CLUSTERCTL_CONFIG",
        "clusterctl describe cluster demo",
        "clusterctl generate cluster other --infrastructure acme --list-variables",
        "kubectl get clusters -o name",
        "exit 3",
    )
    seen = lab.run("lab", "exec", "--", "sh", "-ec", "\n".join(lines), code=3)
    assert str(kubeconfig) in seen
    assert "clusterctl.yaml" in seen
    assert "AcmeCluster default/demo" in seen
    assert "Required Variables:" in seen
    assert "cluster.cluster.x-k8s.io/demo" in seen


def _check_given(lab: Lab, kubeconfig: Path) -> None:
    """A second lab may use the cluster of the first, and is not ended while that has clusters."""
    second = ("--name", "second")
    lab.run("lab", "up", *second, "--kubeconfig", str(kubeconfig))
    assert "no provider is running" in lab.run("lab", "status", *second)
    assert "error lab-clusters" in lab.run("lab", "down", *second, code=1)
    assert "stays there" in lab.run("lab", "down", *second, "--force")


@pytest.mark.parametrize(
    ("text", "machines", "kinds"),
    [
        pytest.param(
            *(_example("bootstrap"), 3, ["KindleConfig", "KubeadmControlPlane"]),
            id="bootstrap",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(_example("control-plane"), 3, ["KeelControlPlane"], id="control-plane"),
        pytest.param(_RAFT, 2, ["RaftControlPlane", "SimulatedConfig"], id="managed"),
    ],
)
def test_a_provider_without_infrastructure_gets_one(
    tools: Toolbox, tmp_path: Path, text: str, machines: int, kinds: list[str]
) -> None:
    """It works with kubeadm's real provider for the other role, where that can serve it."""
    lab, spec = Lab(tmp_path), tmp_path / "provider.yaml"
    spec.write_text(text, encoding="utf-8")
    lab.run("generate", str(spec), "--output", str(lab.provider))
    try:
        shown = lab.run("lab", "demo", ".")
        assert f"The Cluster demo has {machines} Machines Running" in shown
        for kind in (*kinds, "SimulatedMachine"):
            assert f"{kind}/demo-" in shown
        assert "simulated-infrastructure" in lab.components()
    finally:
        lab.ended("lab", "down", "--all", "--force")
    assert lab.processes() == []


def test_nothing_is_left_after_crashes(lab: Lab) -> None:
    """A supervisor that is killed takes its processes along; `down` removes the files."""
    interrupted = _started(lab)
    eventually(lambda: _says(lab, "kube-apiserver"), what="the API server of a lab", interval=0.1)
    interrupted.send_signal(signal.SIGINT)
    interrupted.wait(60)
    assert not lab.folder.root.exists()
    assert lab.processes() == []
    killed = _started(lab)
    eventually(lambda: _says(lab, "kube-apiserver"), what="the API server of a lab")
    os.kill(int((lab.folder.root / "pid").read_text()), signal.SIGKILL)
    assert killed.wait(60) == 2
    eventually(lambda: lab.processes() == [], what="no process")
    assert not lab.folder.root.exists()


def _started(lab: Lab) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "capsmith", "lab", "up"]
    null = subprocess.DEVNULL
    return subprocess.Popen(
        command, cwd=lab.provider, env=lab.environment, stdout=null, stderr=null
    )


def _says(lab: Lab, name: str) -> bool:
    return any(name in line for line in lab.processes())


def _kill(lab: Lab, component: str) -> int:
    pid = int(lab.components()[component]["pid"])
    os.kill(pid, signal.SIGKILL)
    return pid


def _wait_answer(lab: Lab, client: KubeClient, former: int) -> None:
    """Wait until `status` knows the new process, and that answers."""

    def answers() -> bool:
        found = lab.components()["apiserver"]
        if found["pid"] in (0, former):
            raise NotYet(str(found))
        try:
            return client.request("GET", "/readyz") == {"text": "ok"}
        except (ApiError, OSError) as error:
            raise NotYet(str(error)) from error

    eventually(answers, what="an API server after the killed one", interval=0.5)
    assert lab.components()["apiserver"]["restarts"] == 1


def _scale(client: KubeClient, workers: int) -> None:
    def scaled() -> bool:
        (deployment,) = observe(client, "default", "demo").deployments
        try:
            client.patch(deployment, {"spec": {"replicas": workers}})
        except ApiError as error:
            raise NotYet(str(error)) from error
        return True

    eventually(scaled, what=f"{workers} workers are wanted")


def _wait_running(client: KubeClient, machines: int) -> None:
    def running() -> bool:
        found = observe(client, "default", "demo")
        if found.wanted != machines or not found.is_running:
            raise NotYet(f"{found.running} of {found.wanted} run")
        return True

    eventually(running, what=f"{machines} Machines Running")


def test_a_crashing_manager_is_named(lab: Lab) -> None:
    """The demo ends with the manager's own words, before anything is started."""
    (main,) = lab.provider.glob("src/*/__main__.py")
    main.write_text("raise SystemError('no credentials')\n")
    said = lab.run("lab", "demo", ".", code=2)
    assert "error lab-manager-imports" in said
    assert "no credentials" in said
    shutil.rmtree(lab.provider)
    assert "error lab-not-running" in lab.run("lab", "status", "--name", "acme", code=2)
