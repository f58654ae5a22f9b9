"""Restart components that exit unexpectedly, with exponential back-off."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from capsmith.clusters.lab.state import ComponentState, LabState, write_state
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.process import Process

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 10.0
_FORGIVEN_SECONDS = 60.0
_MAX_REASON = 200


@dataclass
class SupervisedProcess:
    """A process to keep running, and the number of its restarts."""

    name: str
    process: Process
    restarts: int = 0
    wait: float = _FIRST_SECONDS
    started: float = field(default_factory=time.monotonic)
    due: float = 0.0

    def look(self, now: float, note: Callable[[str], None]) -> None:
        """Restart the process if it has exited and its back-off has elapsed.

        ``now`` is a monotonic time in seconds, and ``note`` receives messages about restarts.
        """
        if self.process.running:
            # A component that has run for a minute counts as healthy, so its next end is a new
            # failure.
            if now - self.started > _FORGIVEN_SECONDS:
                self.wait = _FIRST_SECONDS
            return
        if not self.due:
            note(f"{self.name} has ended: {read_last_line(self.process)}")
            self.due = now + self.wait
            self.wait = min(2 * self.wait, _LONGEST_SECONDS)
        elif now >= self.due:
            self.due = 0.0
            self.started = now
            self.restarts += 1
            self.process.start()
            note(f"{self.name} restarts")

    def state(self) -> ComponentState:
        """Return the process's state for `capsmith lab status`."""
        running = self.process.running
        return ComponentState(
            name=self.name,
            state="running" if running else "restarting",
            pid=_pid(self.process) if running else 0,
            restarts=self.restarts,
            log=str(self.process.log),
            reason="" if running else read_last_line(self.process),
        )


def read_last_line(process: Process) -> str:
    """Return the last line of a process's log; empty if the log is empty."""
    lines = process.tail().rstrip().splitlines()
    return lines[-1][:_MAX_REASON] if lines else ""


def _pid(process: Process) -> int:
    try:
        return process.pid
    except (ProcessError, OSError):
        return 0


class SupervisedServers:
    """A lab's server processes, and the file with the lab's state."""

    def __init__(self, file: Path, describe: Callable[[], LabState]) -> None:
        """Create the object without any processes.

        ``describe`` returns the state to write to ``file``.
        """
        self._file = file
        self._describe = describe
        self._processes: list[SupervisedProcess] = []
        self._written: LabState | None = None

    def add(self, name: str, process: Process) -> None:
        """Supervise a process that has already been started."""
        self._processes.append(SupervisedProcess(name, process))

    def list_states(self) -> tuple[ComponentState, ...]:
        """Return the processes' states, in the order in which the processes were added."""
        return tuple(each.state() for each in self._processes)

    def look(self, now: float, note: Callable[[str], None]) -> None:
        """Restart processes that have exited, and write the lab's state if it changed.

        ``note`` receives messages about restarts.
        """
        for each in self._processes:
            each.look(now, note)
        state = self._describe()
        if state != self._written:
            write_state(self._file, state)
            self._written = state
