"""Restart components that exit unexpectedly, with exponential back-off."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from capsmith.clusters.lab.state import ComponentState, LabState, write_state
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.process import Process, describe_exit

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 10.0
_FORGIVEN_SECONDS = 60.0
_MAX_REASON = 200
_SENT = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM})
"""Signals that others send; other signals are errors, about which the log may say more."""


@dataclass
class SupervisedProcess:
    """A process to keep running, and the number of its restarts."""

    name: str
    process: Process
    restarts: int = 0
    wait: float = _FIRST_SECONDS
    started: float = field(default_factory=time.monotonic)
    due: float = 0.0
    kills: Path | None = None
    """Folder of :func:`record_kill`, or None if the lab never kills the process."""

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
            note(f"{self.name} {self._describe_end()}")
            self.due = now + self.wait
            self.wait = min(2 * self.wait, _LONGEST_SECONDS)
        elif now >= self.due:
            self.due = 0.0
            self.started = now
            self.restarts += 1
            forget_kill(self.kills, _pid(self.process))
            self.process.start()
            # Another process may have had the new process id.
            forget_kill(self.kills, _pid(self.process))
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
            reason="" if running else self._describe_end(),
        )

    def _describe_end(self) -> str:
        """Return how the process ended, with the last line of its log if that may say why."""
        code = self.process.exit_code
        if code is None:
            return ""
        if code == -signal.SIGKILL and is_kill_recorded(self.kills, _pid(self.process)):
            return "was killed from the page of the lab"
        line = "" if -code in _SENT else _read_last_line(self.process)
        return f"{describe_exit(code)}: {line}" if line else describe_exit(code)


def _read_last_line(process: Process) -> str:
    """Return the last line of a process's log; empty if the log is empty."""
    # The first line is a heading.
    lines = process.tail().rstrip().splitlines()[1:]
    return lines[-1][:_MAX_REASON] if lines else ""


def record_kill(kills: Path, pid: int) -> None:
    """Record that the lab kills a process, so that its end is not taken for a crash.

    Raises OSError if this cannot be written.
    """
    kills.mkdir(exist_ok=True)
    (kills / str(pid)).touch()


def forget_kill(kills: Path | None, pid: int) -> None:
    """Remove the record of a process that had this process id before."""
    if kills is not None:
        (kills / str(pid)).unlink(missing_ok=True)


def is_kill_recorded(kills: Path | None, pid: int) -> bool:
    """Return whether :func:`record_kill` was called for a process."""
    return kills is not None and (kills / str(pid)).exists()


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
        self._expected: tuple[str, ...] = ()
        self._written: LabState | None = None

    def add(self, name: str, process: Process) -> None:
        """Supervise a process that has already been started."""
        self._processes.append(SupervisedProcess(name, process))

    def expect(self, *names: str) -> None:
        """Report processes as starting until they are added."""
        self._expected = names

    def list_states(self) -> tuple[ComponentState, ...]:
        """Return the processes' states, in the order in which the processes were added."""
        added = {each.name for each in self._processes}
        missing = (name for name in self._expected if name not in added)
        states = (each.state() for each in self._processes)
        return (*states, *map(ComponentState.starting, missing))

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
