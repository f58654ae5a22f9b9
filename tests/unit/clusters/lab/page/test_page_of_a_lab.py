"""What the page reads from the files of a lab: processes, logs and simulated servers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capsmith.clusters.hiding import HIDDEN
from capsmith.clusters.lab.folder import LabFolder, acquire
from capsmith.clusters.lab.page.cluster import WatchedCluster
from capsmith.clusters.lab.page.model.store import SimulatedServer
from capsmith.clusters.lab.page.sources import LabSource, LogReader
from capsmith.clusters.lab.page.stream import StreamRequest, ViewStream
from capsmith.clusters.lab.state import ComponentState, LabState, RunState, write_state


def make_lab(folder: Path, *, is_simulated: bool = True) -> LabFolder:
    lab = LabFolder(folder / "acme")
    lab.root.mkdir()
    core = ComponentState("core", "running", 1, 2, str(lab.root / "core.log"))
    (lab.root / "core.log").write_text("one\ntwo\n")
    arguments = (1, "v1.14.0", "v1.14", "v1.36", "kubeconfig", is_simulated)
    write_state(lab.state, LabState(*arguments, components=(core,)))
    return lab


@contextmanager
def run_provider(
    lab: LabFolder,
    faults: tuple[str, ...] = ("error", "hang", "refuse"),
    components: tuple[ComponentState, ...] = (),
) -> Iterator[None]:
    """Return a context manager in which this process is the run of a provider in a lab."""
    lock = acquire(lab.run_lock)
    assert lock is not None
    try:
        state = RunState(1, "/acme", "v0.1.0", "running", components, faults=faults)
        write_state(lab.run_state, state)
        yield
    finally:
        os.close(lock)


def test_logs_are_read_from_where_the_last_call_ended(tmp_path: Path) -> None:
    source = LabSource(make_lab(tmp_path))
    reader = LogReader(source.find_logs())
    assert reader.read(source.find_logs()) == [("core", ["one", "two"])]
    with (tmp_path / "acme" / "core.log").open("a") as log:
        log.write("three\nnot complete")
    (tmp_path / "acme" / "lab.log").write_text("new\n")
    assert reader.read(source.find_logs()) == [("lab", ["new"]), ("core", ["three"])]


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_text("".join(f"line {number}\n" for number in range(100_000)))
    ((_, lines),) = LogReader({"core": path}).read({"core": path})
    assert len(lines) < 50_000
    assert (lines[0][:5], lines[-1]) == ("line ", "line 99999")


def test_processes_of_a_lab_that_has_ended_are_stopped(tmp_path: Path) -> None:
    described = LabSource(make_lab(tmp_path)).describe()
    assert (described["title"], described["running"]) == ("lab acme", False)
    assert [(each["name"], each["state"]) for each in described["components"]] == [
        ("core", "stopped")
    ]
    assert described["logs"] == ["core"]


def test_a_private_key_in_a_log_is_hidden_across_messages(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    view = ViewStream(WatchedCluster(), LabSource(lab), StreamRequest())
    shown = []
    for text in (
        "-----BEGIN PRIVATE KEY-----\ns3cret\n",
        "s3cret\n-----END PRIVATE KEY-----\nend\n",
    ):
        with (lab.root / "core.log").open("a") as log:
            log.write(text)
        shown += [line["text"] for line in view.next_message()["logs"]]
    assert shown == ["one", "two", *[HIDDEN] * 4, "end"]


def test_reasons_and_messages_of_a_lab_have_no_secrets(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    manager = ComponentState("manager", "stopped", reason="token=s3cretvalue")
    message = "password: s3cretvalue"
    write_state(lab.run_state, RunState(4, "/acme", "v0.1.0", "crashed", (manager,), message))
    lock = acquire(lab.run_lock)
    assert lock is not None
    try:
        described = LabSource(lab).describe()
    finally:
        os.close(lock)
    assert described["provider"] == f"crashed: password: {HIDDEN}"
    assert described["components"][1]["reason"] == f"token={HIDDEN}"


def test_servers_are_those_of_the_simulated_cloud(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    source = LabSource(lab)
    assert source.read_servers() is None
    servers = lab.cloud / "servers"
    servers.mkdir(parents=True)
    data = {"id": "17", "name": "one", "provider_id": "acme://17", "user_data": "secret"}
    (servers / "a.json").write_text(json.dumps(data))
    (servers / "b.json").write_text("[")
    assert source.read_servers() == (SimulatedServer("17", "one", "acme://17", "a.json"),)


def test_a_lab_in_another_cluster_has_no_simulated_servers(tmp_path: Path) -> None:
    lab = make_lab(tmp_path, is_simulated=False)
    (lab.cloud / "servers").mkdir(parents=True)
    assert LabSource(lab).read_servers() is None
