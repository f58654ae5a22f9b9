"""Servers that several modules share rest while no test needs them.

An idle etcd with an API server takes up to four per cent of a processor, in each process of a run
to its end.  A stopped process takes nothing, and goes on within half a second; a new API server
would cost three seconds of processor time.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from capsmith.clusters.processes.process import Process
from tests.distribution import group_of


@dataclass
class _Shared:
    """The processes of one fixture."""

    processes: Sequence[Process]
    wait_ready: Callable[[], object]
    needs: str = ""
    """The fixture of the server that this one needs; empty if it needs none."""
    resting: bool = False

    def rest(self) -> None:
        """Stop the processes, as Ctrl-Z does."""
        if not self.resting:
            self.resting = True
            for process in self.processes:
                process.send(signal.SIGSTOP)

    def wake(self) -> None:
        """Let the processes go on, and wait until they respond."""
        if self.resting:
            self.resting = False
            for process in self.processes:
                process.send(signal.SIGCONT)
            self.wait_ready()


_SHARED = pytest.StashKey[dict[str, _Shared]]()
"""The running servers, by the name of their fixture, in the order in which they were started."""


@contextlib.contextmanager
def shared_servers(
    request: pytest.FixtureRequest,
    *processes: Process,
    wait_ready: Callable[[], object],
    needs: str = "",
) -> Iterator[None]:
    """Let a session fixture's processes rest between the groups of tests that use it.

    A test must request the fixture by name, directly or through another fixture:
    ``getfixturevalue`` is not noticed. ``needs`` is the shared fixture whose server this one
    requires to become ready.
    """
    name = request.fixturename
    assert name is not None
    shared = _Shared(processes, wait_ready, needs)
    servers = request.config.stash.setdefault(_SHARED, {})
    servers[name] = shared
    try:
        yield
    finally:
        # All of them, in the order of their start: an API server does not end well while its etcd
        # is stopped.
        for each in servers.values():
            each.wake()
        del servers[name]


def wake_servers(item: pytest.Item) -> None:
    """Wake the servers that a test needs."""
    servers = item.config.stash.get(_SHARED, {})
    needed = _needed_by(item, servers)
    for name, shared in servers.items():
        if name in needed:
            shared.wake()


def rest_servers(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let servers rest that the next group does not need first.

    Within a group they keep running, because fixtures of the group may have started processes
    that need them.
    """
    if nextitem is None or group_of(item.nodeid) == group_of(nextitem.nodeid):
        return
    servers = item.config.stash.get(_SHARED, {})
    needed = _needed_by(nextitem, servers)
    for name, shared in servers.items():
        if name not in needed:
            shared.rest()


def _needed_by(item: pytest.Item, servers: Mapping[str, _Shared]) -> set[str]:
    """Return the names of the servers that a test needs, with those that these need."""
    # A fixture of another folder may have the same name as a shared one.  Its test wakes a server
    # that it does not use, which must get ready all the same.
    needed = set(servers.keys() & getattr(item, "fixturenames", ()))
    while missing := {servers[name].needs for name in needed} & servers.keys() - needed:
        needed |= missing
    return needed
