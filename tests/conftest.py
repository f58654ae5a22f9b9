"""What all tests share."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.distribution import group_of, rank_of
from tests.e2e.harness.report import Report
from tests.exhaustive import is_left_out
from tests.resting import rest_servers, wake_servers
from tests.run_folder import RUN_FOLDER

# How fast a machine is, is no property of what is tested; nor is luck.  New examples are looked for
# with `--hypothesis-profile=searching`.
_SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("searching", _SLOW)
settings.register_profile("capsmith", _SLOW, derandomize=True)
settings.load_profile("capsmith")

_NOBODY = 65534
_REPORT_FILE = "CAPSMITH_E2E_REPORT"
REPORT = pytest.StashKey[Report]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="run also the tests marked `exhaustive`, which take long and seldom find more",
    )


def pytest_configure(config: pytest.Config) -> None:
    _heed_signals()
    _share_a_folder(config)
    config.stash[REPORT] = Report()
    # Groups are handed out in the order of the tests: see rank_of.
    config.option.loadscopereorder = False


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collection, and freeze what was collected.

    The modules and items of 12,000 tests stay in memory until the end. Each full collection
    would visit all of them, which would slow down short tests most.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--exhaustive"):
        left_out = [item for item in items if is_left_out(item)]
        items[:] = [item for item in items if not is_left_out(item)]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: rank_of(item.nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let shared servers rest while no test needs them."""
    wake_servers(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    # What ends with the last test of a group may need the servers.
    try:
        yield
    finally:
        rest_servers(item, nextitem)


def _share_a_folder(config: pytest.Config) -> None:
    """Make a folder for the processes of this run; workers inherit the variable with its path."""
    if RUN_FOLDER in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="capsmith-tests-")
    os.environ[RUN_FOLDER] = folder

    def remove() -> None:
        del os.environ[RUN_FOLDER]
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(remove)


def _heed_signals() -> None:
    """Undo that a shell's background jobs ignore some signals, as would all their children."""
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadscope``, distribute tests as :func:`group_of` groups them."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc] # xdist ships no types
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand this worker's measurements to the controlling process."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["report"] = session.config.stash[REPORT].data()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the measurements of a worker in the controlling process."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[REPORT].add(output.get("report", {}))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    report = config.stash[REPORT]
    lines = report.lines()
    if not lines:
        return
    terminalreporter.section("end-to-end timings")
    for line in lines:
        terminalreporter.write_line(line)
    target = os.environ.get(_REPORT_FILE)
    if target:
        report.write(Path(target))


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """Return a context manager in which root has the file permissions of an ordinary user.

    Only file access by this thread is affected. ``seteuid`` would change the whole process,
    including the threads of other fixtures.
    """
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None)
    libc.setfsuid(_NOBODY)
    try:
        yield
    finally:
        libc.setfsuid(0)
