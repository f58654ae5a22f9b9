"""Starting a provider's managers in a lab."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest

from capsmith.clusters.lab.connection import LabConnection
from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.installed import InstalledProvider
from capsmith.clusters.lab.provider import ProviderRepository
from capsmith.clusters.lab.run import ProviderRun
from capsmith.clusters.lab.state import ComponentState, read_run
from capsmith.clusters.processes.manager import ProviderManager
from capsmith.clusters.processes.process import Process

_SLEEP = "import time; time.sleep(600)"
_EXIT = "raise SystemExit('no credentials')"


class _Manager:
    """A process without an API server, which would be needed to launch a real manager."""

    def __init__(self, folder: Path, type: str, code: str = _SLEEP) -> None:
        name = f"manager-{type}"
        self.process = Process(name, [sys.executable, "-c", code], folder / f"{name}.log")
        self._fails = code != _SLEEP
        self.stop = self.process.stop

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self.process.pid if self.process.running else 0

    def launch(self) -> None:
        """Start the process."""
        self.process.start()

    def wait_ready(self) -> None:
        """Wait for a process that fails; the others are ready at once."""
        self.process.wait_ready(lambda: not self._fails)


class _Provider:
    folder = Path("/acme")

    def check_manager(self) -> None:
        """Find nothing wrong."""

    def list_faults(self) -> tuple[str, ...]:
        """Return no faults."""
        return ()


class _Connection:
    def __init__(self, root: Path) -> None:
        self.lab = LabFolder(root)
        self.folder = root


@pytest.fixture
def connection(tmp_path: Path) -> _Connection:
    return _Connection(tmp_path)


@pytest.fixture
def installed(connection: _Connection) -> Iterator[InstalledProvider]:
    """Return a provider whose managers the test defines; they are stopped in the end."""
    provider = cast(ProviderRepository, _Provider())
    found = InstalledProvider(provider, cast(LabConnection, connection), lambda _: None)
    with ExitStack() as ends:
        ends.callback(found.stop)
        yield found


def _define(installed: InstalledProvider, *managers: _Manager) -> None:
    types = [each.process.name.removeprefix("manager-") for each in managers]
    pairs = zip(types, managers, strict=True)
    installed._managers = {type: cast(ProviderManager, each) for type, each in pairs}


@pytest.mark.parametrize(("type_", "remains"), [("infrastructure", False), ("control-plane", True)])
def test_only_infrastructure_resets_the_simulated_cloud(
    connection: _Connection, installed: InstalledProvider, type_: str, remains: bool
) -> None:
    """A control plane provider starts after the simulated infrastructure, which uses the cloud."""
    servers = connection.lab.cloud / "servers"
    servers.mkdir(parents=True)
    _define(installed, _Manager(connection.folder, type_))
    installed.start(lambda: None)
    assert servers.is_dir() is remains


def test_managers_are_shown_while_they_start(
    connection: _Connection, installed: InstalledProvider
) -> None:
    managers = [_Manager(connection.folder, type) for type in ("infrastructure", "bootstrap")]
    _define(installed, *managers)
    seen: list[tuple[ComponentState, ...]] = []
    installed.start(lambda: seen.append(installed.components))
    assert {tuple(each.name for each in states) for states in seen} == {
        ("manager-infrastructure", "manager-bootstrap")
    }
    first, second = (each.pid for each in managers)
    assert [tuple((each.state, each.pid) for each in states) for states in seen] == [
        (("starting", 0), ("starting", 0)),
        (("starting", first), ("starting", 0)),
        (("running", first), ("starting", 0)),
        (("running", first), ("starting", second)),
        (("running", first), ("running", second)),
    ]
    assert all(Path(each.log).parent == connection.folder for each in seen[0])
    installed.stop()
    assert [(each.state, each.pid) for each in installed.components] == [("stopped", 0)] * 2


def test_a_manager_that_does_not_start_is_stopped(
    connection: _Connection, installed: InstalledProvider
) -> None:
    _define(installed, _Manager(connection.folder, "infrastructure", _EXIT))
    with pytest.raises(LabError, match="no credentials"):
        installed.start(lambda: None)
    installed.stop()
    assert [(each.state, each.pid) for each in installed.components] == [("stopped", 0)]


def test_the_state_of_a_run_has_the_manager_that_is_starting(
    connection: _Connection, installed: InstalledProvider
) -> None:
    manager, seen = _Manager(connection.folder, "infrastructure"), []

    def wait_ready() -> None:
        run = read_run(connection.lab.run_state)
        assert run is not None
        seen.append((run.state, [(each.state, each.pid) for each in run.components]))

    manager.wait_ready = wait_ready  # type: ignore[method-assign]
    _define(installed, manager)
    run = ProviderRun(cast(ProviderRepository, _Provider()), connection.lab, installed, None)
    assert run.restart(lambda error: pytest.fail(str(error)), is_release=False)
    assert seen == [("starting", [("starting", manager.pid)])]
    state = read_run(connection.lab.run_state)
    assert state is not None
    assert (state.state, [each.state for each in state.components]) == ("running", ["running"])
