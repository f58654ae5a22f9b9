"""Verdicts of the soak, and what its observed managers record."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import cast

import pytest

from benchmarks.soak.faults import at_random, each_once
from benchmarks.soak.hostile import EVENTS
from benchmarks.soak.report import Figure, print_figures
from benchmarks.soak.site import Site

ROOT = Path(__file__).parents[2]
FIGURES = [Figure("free", 7.0, "s"), Figure("kept", 3.0, "", 3.0), Figure("passed", 5.1, "s", 5.0)]


@pytest.mark.parametrize(("count", "code"), [(2, 0), (3, 1)])
def test_an_exceeded_limit_is_the_exit_code(
    count: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_figures(FIGURES[:count], "json", "title") == code
    found = json.loads(capsys.readouterr().out)
    assert [each["verdict"] for each in found["figures"]] == ["", "ok", "exceeded"][:count]
    assert print_figures(FIGURES[:count], "text", "title") == code
    assert ("| passed | 5.1 s | 5 s   | exceeded |" in capsys.readouterr().out) == bool(code)


@dataclass
class StubSite:
    """Counts the kills of an hour in which nothing runs."""

    rng: Random
    kills: int = 0


@pytest.mark.parametrize("seconds", [5.0, 15.0, 25.0])
def test_an_hour_has_each_fault_and_a_hundred_kills(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long an event takes; a manager is ready again after some ten seconds."""
    clock = itertools.count(0.0, seconds)
    monkeypatch.setattr("benchmarks.soak.faults.time.monotonic", lambda: next(clock))
    site = StubSite(Random(7))
    happened: Counter[str] = Counter()
    for name in at_random(cast(Site, site), 60.0):
        happened[name] += 1
        site.kills += {"manager killed": 1, "both managers killed": 2}.get(name, 0)
    assert [name for name in EVENTS if not happened[name]] == []
    assert site.kills >= 100


def test_a_short_run_has_each_fault_once_in_an_order_that_its_seed_decides() -> None:
    orders = [each_once(Random(seed)) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert all(sorted(each) == sorted(EVENTS) for each in orders)
    ends = {tuple(each[-2:]) for each in orders}
    assert ends == {("connections half open", "both managers killed")}


def test_blocks_of_the_event_loop_are_recorded_and_the_clock_is_wrong(tmp_path: Path) -> None:
    package = tmp_path / "provider"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import asyncio, sys, time\n"
        "from datetime import UTC, datetime\n"
        "async def block():\n"
        "    time.sleep(0.2)\n"
        "asyncio.run(block())\n"
        "print(sys.argv[1], datetime.now(UTC).timestamp(), time.time())\n"
    )
    (tmp_path / "clock").write_text("-86400")
    before = time.time()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak.manager", "provider", "--flag"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
            "SOAK_BLOCKS": str(tmp_path / "blocks"),
            "SOAK_CLOCK": str(tmp_path / "clock"),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    flag, *times = done.stdout.split()
    assert flag == "--flag"
    assert all(0 <= float(each) - (before - 86_400) < 120 for each in times)
    blocks = [json.loads(line) for line in (tmp_path / "blocks").read_text().splitlines()]
    (block,) = (each for each in blocks if each["what"].endswith(": block"))
    assert block["seconds"] >= 0.2
    assert block["processor"] < block["seconds"]
