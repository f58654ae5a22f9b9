"""The actions on the page: which labs offer them, and that the shown commands do the same."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from capsmith.clusters.conditions import JSON
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.page.actions import Action, LabActions
from capsmith.clusters.lab.page.model.store import ObjectStore, SimulatedServer, get_key
from capsmith.clusters.lab.state import ComponentState, read_lab, write_state
from capsmith.clusters.lab.supervision import is_kill_recorded
from capsmith.clusters.processes.wait import eventually
from tests.browser.api_server import SimulatedApi, serve_api
from tests.browser.objects import copy, make_cluster, make_machine
from tests.unit.clusters.lab.page.test_page_of_a_lab import make_lab, run_provider


class Lab:
    """A lab with a simulated API server, and what its page offers."""

    def __init__(self, lab: LabFolder, api: SimulatedApi, actions: LabActions) -> None:
        self.lab = lab
        self.api = api
        self.actions = actions
        self.store = ObjectStore()
        server = SimulatedServer("17", "one", "acme://one", "one.json")
        self.store.set_servers((server,))
        for obj in [*make_cluster(), *make_machine("one")]:
            self.store.apply(api.put(obj))
        lab.cloud.mkdir()
        (lab.cloud / "servers").mkdir()
        (lab.cloud / "servers" / "one.json").write_text("{}")

    def list(self, id: str) -> dict[str, Action]:
        found = self.store.find(id)
        assert found is not None
        return {each.title: each for each in self.actions.list_for_object(self.store, found)}

    def read(self, obj: JSON) -> JSON:
        kind = f"{obj['kind'].lower()}s"
        path = f"/apis/{obj['apiVersion']}/namespaces/default/{kind}/{obj['metadata']['name']}"
        return self.api.find(path) or {}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    folder = make_lab(tmp_path)
    with serve_api(tmp_path) as (api, client), closing(client):
        yield Lab(folder, api, LabActions(client, folder))


CLUSTER, _, DEPLOYMENT, MACHINES = make_cluster()
_, MACHINE = make_machine("one")


def test_a_deployment_is_scaled_and_its_set_is_not(lab: Lab) -> None:
    actions = lab.list(get_key(DEPLOYMENT).id)
    assert shlex.split(actions["Scale to 3"].command)[1:] == [
        *("--kubeconfig", "kubeconfig", "patch"),
        *("--namespace", "default", "machinedeployment.cluster.x-k8s.io", "demo-md-0"),
        *("--type", "merge", "--patch", '{"spec":{"replicas":3}}'),
    ]
    actions["Scale to 3"].run()
    assert lab.read(DEPLOYMENT)["spec"]["replicas"] == 3
    assert not any(title.startswith("Scale") for title in lab.list(get_key(MACHINES).id))


@pytest.mark.parametrize("obj", [CLUSTER, MACHINE], ids=["Cluster", "AcmeMachine"])
def test_an_object_is_paused_and_resumed(lab: Lab, obj: JSON) -> None:
    for title in ("Pause", "Resume", "Pause"):
        lab.list(get_key(obj).id)[title].run()
        lab.store.apply(lab.read(obj))
    assert "Resume" in lab.list(get_key(obj).id)


def test_an_object_is_deleted(lab: Lab) -> None:
    delete = lab.list(get_key(MACHINE).id)["Delete"]
    assert delete.command.endswith("acmemachine.infrastructure.cluster.x-k8s.io one --wait=false")
    delete.run()
    assert lab.read(MACHINE) == {}
    delete.run()  # which has no effect, but is no error


def test_a_server_is_lost(lab: Lab) -> None:
    lose = lab.list(get_key(MACHINE).id)["Lose the server"]
    path = lab.lab.cloud / "servers" / "one.json"
    assert shlex.split(lose.command) == ["rm", str(path)]
    lose.run()
    assert not path.exists()


def test_a_machine_after_the_loss_of_its_server_is_still_deleted(lab: Lab) -> None:
    lab.list(get_key(MACHINE).id)["Lose the server"].run()
    lab.store.set_servers(())
    assert "Delete" in lab.list(get_key(MACHINE).id)


def test_a_machine_of_a_real_cloud_is_only_read(lab: Lab) -> None:
    machine = copy(MACHINE)
    machine["metadata"] |= {"name": "real", "uid": "real"}
    machine["spec"]["providerID"] = "acme://real"
    lab.store.apply(lab.api.put(machine))
    assert lab.list(get_key(MACHINE).id) == {}
    assert lab.list(get_key(DEPLOYMENT).id) == {}


def test_another_lab_of_the_same_name_is_only_read(lab: Lab) -> None:
    state = read_lab(lab.lab.state)
    assert state is not None
    write_state(lab.lab.state, replace(state, pid=state.pid + 1))
    assert lab.actions.list_for_lab() == []
    assert lab.list(get_key(MACHINE).id) == {}


def test_faults_of_the_user_are_kept(lab: Lab) -> None:
    lab.lab.faults.write_text("error=0.1,seed=7\n")
    assert not [each for each in lab.actions.list_for_lab() if each.id.startswith("faults")]


@pytest.mark.parametrize(
    ("begin", "end", "fault"),
    [
        ("Take the cloud away", "Bring the cloud back", "error=1"),
        ("Let the cloud hang", "Let the cloud answer again", "hang=1"),
        ("Refuse logins", "Accept logins again", "refuse=1"),
    ],
)
def test_faults_begin_and_end(lab: Lab, begin: str, end: str, fault: str) -> None:
    def read() -> dict[str, Action]:
        return {each.title: each for each in lab.actions.list_for_lab()}

    with run_provider(lab.lab):
        command = read()[begin].command
        read()[begin].run()
        assert lab.lab.faults.read_text() == f"{fault}\n"
        read()[end].run()
        assert lab.lab.faults.read_text().strip() == ""
        subprocess.run(["sh", "-c", command], check=True)
        assert end in read()
        subprocess.run(["sh", "-c", read()[end].command], check=True)
        assert begin in read()


def test_only_faults_that_the_runtime_library_knows_begin(lab: Lab) -> None:
    def read() -> set[str]:
        return {each.id for each in lab.actions.list_for_lab()}

    assert read() == set()
    with run_provider(lab.lab, faults=("error", "hang")):
        assert read() == {"faults:error=1", "faults:hang=1"}
        lab.lab.faults.write_text("refuse=1\n")
        assert "faults:" in read()
    assert read() == {"faults:"}


def test_only_a_manager_of_this_lab_is_killed(lab: Lab) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    own = {**os.environ, "KUBECONFIG": str(lab.lab.root / "provider" / "x.kubeconfig")}
    with (
        subprocess.Popen(sleep, env=own) as manager,
        subprocess.Popen(sleep) as other,
        ExitStack() as running,
    ):
        try:
            parts = tuple(
                ComponentState(name, "running", each.pid)
                for name, each in (("manager-infrastructure", manager), ("manager-x", other))
            )
            running.enter_context(run_provider(lab.lab, components=parts))
            # A new process has no environment for a moment.
            (kill,) = eventually(
                lambda: [each for each in lab.actions.list_for_lab() if each.id[:4] == "kill"]
            )
            assert kill.command == f"kill -9 {manager.pid}"
            kill.run()
            assert manager.wait(60) == -signal.SIGKILL
            assert is_kill_recorded(lab.lab.kills, manager.pid)
            assert not is_kill_recorded(lab.lab.kills, other.pid)
            assert other.poll() is None
            kill.run()  # which has no effect: the process id may be another process's by now
        finally:
            manager.kill()
            other.kill()


@pytest.mark.parametrize("change", [{"simulated": False}, {"node": "/node"}])
def test_a_lab_whose_cloud_is_not_simulated_is_only_read(lab: Lab, change: JSON) -> None:
    state = read_lab(lab.lab.state)
    assert state is not None
    write_state(lab.lab.state, replace(state, **change))
    assert lab.actions.list_for_lab() == []
    assert lab.list(get_key(MACHINE).id) == {}
