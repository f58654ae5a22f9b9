"""Report what is running in a lab, as lines and as data, and read the lab's logs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.folder import LabFolder, is_held
from capsmith.clusters.lab.state import (
    STARTING,
    ComponentState,
    LabState,
    RunState,
    read_lab,
    read_run,
)


@dataclass(frozen=True)
class Status:
    """A lab's status at one point in time, as `capsmith lab status` prints it."""

    name: str
    is_running: bool
    lab: LabState | None
    run: RunState | None

    @property
    def components(self) -> tuple[ComponentState, ...]:
        """Return the lab's processes, followed by the provider's.

        If the lab is not running, its processes are returned as ``stopped``, without a process id.
        """
        found = self.lab.components if self.lab else ()
        if not self.is_running:
            found = tuple(
                ComponentState(each.name, "stopped", 0, each.restarts, each.log) for each in found
            )
        return (*found, *(self.run.components if self.run else ()))

    @property
    def is_starting(self) -> bool:
        """Return whether one of the lab's own processes is still starting."""
        return any(each.state == STARTING for each in (self.lab.components if self.lab else ()))

    @property
    def is_healthy(self) -> bool:
        """Return whether the lab, all its processes and the provider (if started) are running."""
        states = {each.state for each in self.components}
        is_provided = self.run is None or self.run.state == "running"
        return self.is_running and states <= {"running"} and is_provided


def read_status(lab: LabFolder) -> Status:
    """Return a lab's status according to its files and locks."""
    run = read_run(lab.run_state) if is_held(lab.run_lock) else None
    return Status(lab.name, lab.is_running, read_lab(lab.state), run)


def format_table(status: Status) -> list[tuple[str, ...]]:
    """Return the processes as table rows, with a header."""
    heading = ("COMPONENT", "STATE", "PID", "RESTARTS", "NOTE")
    return [heading, *(_row(each) for each in status.components)]


def format_lines(status: Status) -> list[str]:
    """Return the lines in `capsmith lab status` that describe the lab as a whole."""
    if status.lab is None:
        state = "starts" if status.is_running else "has not started"
        return [f"lab {status.name}: {state}"]
    state = "starts" if status.is_starting else "runs"
    found = [f"lab {status.name}: {state if status.is_running else 'has crashed'}"]
    found.append(f"  core {status.lab.core}, Kubernetes {status.lab.kubernetes}")
    found.append(f"  kubeconfig {status.lab.kubeconfig}")
    if status.run is not None:
        run = status.run
        found.append(f"  provider {run.folder} {run.version}: {run.state}")
        if run.message:
            found.append(f"    {run.message.splitlines()[0]}")
    elif status.is_running:
        found.append("  no provider is running: capsmith lab run [DIR]")
    if not status.is_running:
        found.append(f"  clean up with capsmith lab down --name {status.name}")
    return found


def to_data(status: Status) -> dict[str, Any]:
    """Return the status as JSON data."""
    run = status.run
    return {
        "name": status.name,
        "running": status.is_running,
        "healthy": status.is_healthy,
        "core": status.lab.core if status.lab else None,
        "kubernetes": status.lab.kubernetes if status.lab else None,
        "kubeconfig": status.lab.kubeconfig if status.lab else None,
        "provider": (
            {"folder": run.folder, "version": run.version, "state": run.state} if run else None
        ),
        "components": [asdict(each) for each in status.components],
    }


def find_logs(lab: LabFolder) -> dict[str, Path]:
    """Return the path to each component's log, including components that have exited."""
    status = read_status(lab)
    found = {"lab": lab.log, "run": lab.run_log}
    found |= {each.name: Path(each.log) for each in status.components}
    for path in sorted((lab.root / "provider").glob("manager-*.log")):
        found[path.stem] = path
    for path in sorted(lab.root.glob("workload-*/apiserver-*.log")):
        found[path.stem.removeprefix("apiserver-")] = path
    return {name: path for name, path in found.items() if path.is_file()}


def _row(component: ComponentState) -> tuple[str, ...]:
    pid = str(component.pid or "-")
    return component.name, component.state, pid, str(component.restarts), component.reason


_ALIAS = "manager"
_STEP_SECONDS = 0.3


def select_logs(lab: LabFolder, component: str | None) -> dict[str, Path]:
    """Return logs by component name: only the log of ``component``, or all logs if it is None.

    `manager` selects all of the provider's managers.  Raises LabError if there is no such log.
    """
    found = find_logs(lab)
    if component is None:
        return found
    matching = {
        name: path
        for name, path in found.items()
        if name == component or (component == _ALIAS and name.startswith(f"{_ALIAS}-"))
    }
    if not matching:
        hint = f"Use one of {', '.join(sorted(found))}." if found else "Nothing has started yet."
        raise LabError("lab-component", f"no log of {component}", hint=hint)
    return matching


def read_last_lines(path: Path, count: int) -> list[str]:
    """Return up to the last ``count`` lines of a log file; all of them if ``count`` is -1."""
    lines = path.read_text(errors="replace").splitlines()
    return lines if count < 0 else lines[max(len(lines) - count, 0) :]


def follow(
    lab: LabFolder, files: Mapping[str, Path], *, from_start: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield (component, line) for each new line in the logs, until the lab is shut down.

    If ``from_start`` is true, existing lines are included.
    """
    positions = {name: 0 if from_start else path.stat().st_size for name, path in files.items()}
    while True:
        is_running = lab.is_running
        for name, path in files.items():
            text, positions[name] = read_new_text(path, positions[name])
            for line in text.splitlines():
                yield name, line
        if not is_running:
            return
        time.sleep(_STEP_SECONDS)


def read_new_text(path: Path, position: int) -> tuple[str, int]:
    """Return the complete lines after a byte offset, and the offset at their end.

    If a log is shorter than the offset, it has been rotated and is read from its start.
    """
    try:
        with path.open("rb") as file:
            # A rotated log starts from the beginning.
            if file.seek(0, os.SEEK_END) < position:
                position = 0
            file.seek(position)
            data = file.read()
    except OSError:
        return "", position
    end = data.rfind(b"\n") + 1
    return data[:end].decode(errors="replace"), position + end
