"""Whole processes, timed by turns, so that a busy moment of the machine hits all alike."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """A process to time; ``prepare`` runs before it, untimed."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    cwd: Path
    prepare: Callable[[], None] = lambda: None


@dataclass
class Times:
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Wall time in seconds."""
        return statistics.median(self.wall)

    @property
    def median_processor(self) -> float:
        """Processor time in seconds, which a busy machine hardly changes."""
        return statistics.median(self.processor)

    @property
    def least_processor(self) -> float:
        """The same of the run that was disturbed least, for differences of small figures."""
        return min(self.processor)


def run(command: Command) -> tuple[float, float]:
    """Wall and processor time of one run in seconds.  Raises RuntimeError when it fails."""
    command.prepare()
    before = _children()
    started = time.perf_counter()
    done = subprocess.run(
        command.arguments,
        env=dict(command.environment),
        cwd=command.cwd,
        capture_output=True,
        text=True,
    )
    took = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"{command.name}: {done.stdout}{done.stderr}")
    return took, _children() - before


def peak(command: Command) -> float:
    """Peak resident memory of one run and its children, in MiB; its exit code does not matter."""
    command.prepare()
    process = subprocess.Popen(
        command.arguments,
        env=dict(command.environment),
        cwd=command.cwd,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_maxrss / 1024


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def by_turns(commands: Sequence[Command], rounds: int) -> dict[str, Times]:
    """Each command ``rounds`` times after one run that does not count."""
    times = {command.name: Times() for command in commands}
    for round_ in range(rounds + 1):
        for command in commands:
            wall, processor = run(command)
            if round_:
                times[command.name].wall.append(wall)
                times[command.name].processor.append(processor)
    return times


def steps(sizes: Sequence[int], costs: Sequence[float]) -> list[float]:
    """What one more costs, between each size and the next."""
    return [
        (after - before) / (more - few)
        for before, after, few, more in zip(costs, costs[1:], sizes, sizes[1:], strict=False)
    ]


def table(rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns as a Markdown table; the first row is the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(f"| {' | '.join(cells)} |\n")
        if number == 0:
            sys.stdout.write("|" + "|".join("-" * (width + 2) for width in widths) + "|\n")
    sys.stdout.write("\n")
