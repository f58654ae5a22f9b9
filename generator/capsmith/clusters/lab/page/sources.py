"""Data for the page that is not in API objects: logs, simulated servers, the lab's state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from capsmith.clusters.conditions import JSON, get_mapping
from capsmith.clusters.hiding import hide_in_line
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.page.model.store import SimulatedServer
from capsmith.clusters.lab.state import read_lab
from capsmith.clusters.lab.status import find_logs, read_new_text, read_status

_BACKLOG = 256 * 1024
"""Number of bytes at the end of each log that are read first."""


class LogReader:
    """Reads the lines added to a lab's logs since the last call."""

    def __init__(self, logs: Mapping[str, Path], backlog: int = _BACKLOG) -> None:
        """Start ``backlog`` bytes before the end of each log."""
        self._positions = {name: _find_start(path, backlog) for name, path in logs.items()}

    def read(self, logs: Mapping[str, Path]) -> list[tuple[str, list[str]]]:
        """Return (component, new lines) for each log that has new lines.

        New logs are read from their start.
        """
        found = []
        for name, path in logs.items():
            text, self._positions[name] = read_new_text(path, self._positions.get(name, 0))
            if text:
                found.append((name, text.splitlines()))
        return found


def _find_start(path: Path, backlog: int) -> int:
    try:
        size = path.stat().st_size
        if size <= backlog:
            return 0
        with path.open("rb") as file:
            file.seek(size - backlog)
            return size - backlog + len(file.readline())
    except OSError:
        return 0


class LabSource:
    """Provides a lab's processes, logs and simulated servers to the lab's page."""

    def __init__(self, lab: LabFolder) -> None:
        self._lab = lab
        self._stamp = 0.0
        self._servers: tuple[SimulatedServer, ...] = ()

    @property
    def title(self) -> str:
        """Return the cluster's name on the page."""
        return f"lab {self._lab.name}"

    def find_logs(self) -> dict[str, Path]:
        """Return the path to each component's log."""
        return find_logs(self._lab)

    def describe(self) -> JSON:
        """Return the state of the lab and its processes without secrets, as JSON data."""
        status = read_status(self._lab)
        run = status.run
        return {
            "title": self.title,
            "running": status.is_running,
            "provider": hide_in_line(f"{run.state}: {run.message}") if run and run.message else "",
            "logs": sorted(self.find_logs()),
            "components": [
                {
                    "name": each.name,
                    "state": each.state,
                    "restarts": each.restarts,
                    "reason": hide_in_line(each.reason),
                }
                for each in status.components
            ],
        }

    def read_servers(self) -> tuple[SimulatedServer, ...] | None:
        """Return the simulated cloud's servers, or None if there is no simulated cloud.

        The files are read again only if the folder has changed.
        """
        state, folder = read_lab(self._lab.state), self._lab.cloud / "servers"
        try:
            stamp = folder.stat().st_mtime
        except OSError:
            return None
        if state is None or not state.simulated:
            return None
        if stamp != self._stamp:
            self._servers = tuple(
                each for path in sorted(folder.glob("*.json")) for each in _read(path)
            )
            self._stamp = stamp
        return self._servers


class ClusterSource:
    """A management cluster that is not a lab, and therefore has no logs or simulated servers."""

    def __init__(self, title: str) -> None:
        self.title = title

    def find_logs(self) -> dict[str, Path]:
        """Return an empty mapping, because there are no logs."""
        return {}

    def describe(self) -> JSON:
        """Return the cluster's name, as JSON data."""
        return {"title": self.title, "running": True, "provider": "", "logs": [], "components": []}

    def read_servers(self) -> None:
        """Return None, because nothing is simulated."""


def _read(path: Path) -> list[SimulatedServer]:
    try:
        data = get_mapping(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return []  # deleted since the folder was listed
    id, name, provider_id = (str(data.get(each) or "") for each in ("id", "name", "provider_id"))
    return [SimulatedServer(id, name, provider_id, path.name)]
