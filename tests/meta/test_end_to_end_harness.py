"""What the end-to-end tests judge by: logs of managers, the cloud's journal, and waits."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from capsmith.clusters.processes import wait
from capsmith.clusters.processes.wait import NotYet, PassingError, eventually, settled
from tests.e2e.harness.cloud import Event, SimulatedCloud
from tests.e2e.harness.manager_log import bad_ends, complaints

_TIME = "2026-01-02T03:04:05.678Z"
_TRACE = '  + Exception Group Traceback (most recent call last):\n  |   File "manager.py", line 1'


def _log(reason: str) -> str:
    end = f"{_TIME} ERROR manager the manager ends error=\"ExceptionGroup('x', [{reason}])\""
    return f"{_TIME} INFO leader leading\n{end}\n{_TRACE}\n{_TIME} INFO leader leading\n"


def test_a_lost_lease_is_no_complaint() -> None:
    log = _log("LeadershipLost('not renewed for 4 s')")
    assert complaints(log) == []
    assert bad_ends(log) == []


def test_another_end_is_one() -> None:
    log = _log("KeyError('spec')")
    assert [line.strip() for line in complaints(log)] == [_TRACE.splitlines()[0].strip()]
    assert len(bad_ends(log)) == 1


@pytest.mark.parametrize(
    "line",
    ['error="403 Forbidden: no"', 'error="422 Invalid: no"', "Traceback (most recent call last):"],
)
def test_what_comes_after_a_lost_lease_counts_again(line: str) -> None:
    said = f"{_TIME} WARNING controller reconcile failed {line}"
    assert complaints(_log("LeadershipLost('x')") + said) == [said]


def test_the_journal_reports_existing_files(tmp_path: Path) -> None:
    """Who makes a server may die before it writes that down, and who removes it too."""
    cloud = SimulatedCloud(tmp_path)
    for part in ("servers", "clusters"):
        (tmp_path / part).mkdir()
    (tmp_path / "journal.log").write_text("create server a\ncreate server b\ndelete server b\n")
    (tmp_path / "servers" / "c.json").touch()
    assert cloud.journal() == [
        Event("create", "server", "a"),
        Event("create", "server", "b"),
        Event("delete", "server", "b"),
        Event("create", "server", "c"),
        Event("delete", "server", "a"),
    ]


def _then(*steps: Exception | bool) -> Callable[[], bool]:
    left = iter(steps)

    def probe() -> bool:
        step = next(left)
        if isinstance(step, Exception):
            raise step
        return step

    return probe


def test_a_wait_survives_passing_errors() -> None:
    assert eventually(_then(PassingError(), NotYet(), False, True), interval=0)


def test_a_wait_looks_less_often_the_longer_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is late by a twentieth at most, and looks twice a second in the end."""
    now, pauses = 0.0, []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        pauses.append(seconds)

    clock = SimpleNamespace(monotonic=lambda: now, sleep=sleep)
    monkeypatch.setattr(wait, "time", clock)

    assert eventually(lambda: now >= 60)

    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.1, 0.5)
    assert len(pauses) < 200
    with pytest.raises(TimeoutError):
        eventually(lambda: False, timeout=1, interval=0.3)
    assert pauses[-4:] == [0.3] * 4


def test_a_fault_ends_a_wait() -> None:
    with pytest.raises(KeyError):
        eventually(_then(KeyError(), True), interval=0)


def test_passing_errors_are_not_at_rest() -> None:
    looks = itertools.count()

    def observe() -> str:
        if next(looks) < 3:
            raise PassingError
        return "here"

    settled(observe, seconds=0.5, what="it")
    assert next(looks) > 5
