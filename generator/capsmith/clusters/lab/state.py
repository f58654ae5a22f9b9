"""The state shared by a lab's processes, as JSON files that are replaced atomically."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from capsmith.clusters.processes.tools import Toolbox

STARTING = "starting"
"""State of a run, or of a process, that is not ready yet."""


@dataclass(frozen=True)
class ComponentState:
    """The state of one process in a lab; `capsmith lab status` prints a row for each."""

    name: str
    state: str
    """``starting``, ``running``, ``restarting``, ``stopped``, or ``unknown`` if the API server does
    not respond."""
    pid: int = 0
    restarts: int = 0
    log: str = ""
    """Path to the process's log file."""
    reason: str = ""
    """Why the process is not running, such as its exit code and the last line of its log; empty if
    it is running."""

    @classmethod
    def starting(cls, name: str, pid: int = 0, log: str = "") -> ComponentState:
        """Return the state of a process that is not ready yet."""
        return cls(name, STARTING, pid, log=log, reason="not ready yet")


@dataclass(frozen=True)
class LabState:
    """A lab's state, which its supervisor writes to ``state.json`` in the lab's folder."""

    pid: int
    core: str
    """Core release that the lab runs."""
    series: str
    """Release series of core and clusterctl."""
    kubernetes: str
    kubeconfig: str
    simulated: bool
    """Whether workload clusters and Nodes are simulated."""
    tools: dict[str, str] = field(default_factory=dict)
    """Paths to the folders that contain built tools, by module."""
    found: dict[str, str] = field(default_factory=dict)
    """Paths to the user's own Kubernetes servers and clusterctl, by name."""
    etcd: str = ""
    """URL of the lab's etcd; empty if the lab did not start the cluster."""
    address: str = "127.0.0.1"
    """Address on which the simulated clusters' API servers listen."""
    node: str = ""
    """Path to the folder of the lab's node; empty if Pods cannot run."""
    ctr: str = ""
    """Path to containerd's command line; empty if Pods cannot run."""
    components: tuple[ComponentState, ...] = ()


@dataclass(frozen=True)
class RunState:
    """A running provider's state, which `capsmith lab run` writes to ``run.json``."""

    pid: int
    folder: str
    """Path to the provider's repository."""
    version: str
    state: str
    """``starting``, ``running`` or ``crashed``."""
    components: tuple[ComponentState, ...] = ()
    message: str = ""
    faults: tuple[str, ...] = ()
    """Names of the faults that the run's simulated cloud can inject."""


def restore_toolbox(
    folders: dict[str, str], found: dict[str, str], kubernetes: str = ""
) -> Toolbox:
    """Return the toolbox described in a lab's state or in its supervisor's settings."""
    return Toolbox(_paths(folders), _paths(found), kubernetes)


def _paths(texts: dict[str, str]) -> dict[str, Path]:
    return {name: Path(text) for name, text in texts.items()}


def write_state(path: Path, state: LabState | RunState) -> None:
    """Write a lab's ``state.json`` or ``run.json``, replacing the old file atomically."""
    write_text(path, json.dumps(asdict(state), indent=1))


def read_lab(path: Path) -> LabState | None:
    """Return a lab's state, or None if its state file is missing or damaged."""
    data = _read(path)
    try:
        return None if data is None else LabState(**{**data, "components": _components(data)})
    except (TypeError, KeyError):
        return None


def read_run(path: Path) -> RunState | None:
    """Return a run's state, or None if its state file is missing or damaged."""
    data = _read(path)
    try:
        if data is None:
            return None
        faults = tuple(map(str, data.get("faults", ())))
        return RunState(**{**data, "components": _components(data), "faults": faults})
    except (TypeError, KeyError):
        return None


def write_text(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace a file's content atomically, by renaming a temporary file."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, mode)
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _components(data: dict[str, Any]) -> tuple[ComponentState, ...]:
    return tuple(ComponentState(**each) for each in data["components"])


def _read(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
