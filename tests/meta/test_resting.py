"""Shared servers rest between the groups of tests that use them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from capsmith.clusters.processes.process import Process
from capsmith.clusters.processes.wait import eventually
from tests.resting import rest_servers, shared_servers, wake_servers


def _test(config: Any, module: str, *fixtures: str) -> Any:
    return SimpleNamespace(
        config=config, nodeid=f"tests/unit/{module}.py::test", fixturenames=fixtures
    )


def _request(config: Any, fixture: str) -> Any:
    return SimpleNamespace(config=config, fixturename=fixture)


def _state(process: Process) -> str:
    """`T` is stopped; see proc(5)."""
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    made = Process("sleep", ["sleep", "600"], tmp_path / "log")
    made.start()
    yield made
    made.kill()


def test_a_server_wakes_before_one_that_needs_it_ends(process: Process) -> None:
    config = SimpleNamespace(stash=pytest.Stash())
    etcd, server = (_request(config, each) for each in ("etcd", "server"))
    woken: list[str] = []

    with shared_servers(etcd, process, wait_ready=lambda: woken.append("etcd")):
        with shared_servers(server, wait_ready=lambda: woken.append("server")):
            rest_servers(_test(config, "a", "etcd", "server"), _test(config, "b"))

        assert woken == ["etcd", "server"]


def test_what_a_server_needs_wakes_before_it(process: Process) -> None:
    """A fixture of another folder can have a shared fixture's name, without what that needs."""
    config = SimpleNamespace(stash=pytest.Stash())
    etcd, server = (_request(config, each) for each in ("etcd", "server"))
    woken: list[str] = []

    with (
        shared_servers(etcd, process, wait_ready=lambda: woken.append("etcd")),
        shared_servers(server, wait_ready=lambda: woken.append("server"), needs="etcd"),
    ):
        rest_servers(_test(config, "a", "etcd", "server"), _test(config, "b"))
        eventually(lambda: _state(process) == "T")
        namesake = _test(config, "c", "server")
        wake_servers(namesake)
        assert woken == ["etcd", "server"]
        rest_servers(_test(config, "b"), namesake)
        assert _state(process) != "T"


def test_servers_rest_between_the_groups_that_use_them(process: Process) -> None:
    config = SimpleNamespace(stash=pytest.Stash())
    request = _request(config, "server")
    first, second = (_test(config, "a", *each) for each in (("server",), ()))
    other, user = _test(config, "b"), _test(config, "c", "site", "server")
    woken: list[str] = []

    with shared_servers(request, process, wait_ready=lambda: woken.append("server")):
        rest_servers(first, second)
        assert _state(process) != "T", "the group goes on"
        rest_servers(first, user)
        assert _state(process) != "T", "the next group uses it"
        rest_servers(second, other)
        eventually(lambda: _state(process) == "T")
        wake_servers(other)
        assert woken == [], "a test of another module does not need it"
        wake_servers(user)
        assert len(woken) == 1
        rest_servers(user, other)
        eventually(lambda: _state(process) == "T")

    assert len(woken) == 2, "a stopped process would not end"
    eventually(lambda: _state(process) != "T")
    rest_servers(user, other)
    assert _state(process) != "T", "it is no longer shared"
