"""The simulated cloud that a generated provider writes to a folder, with simulated outages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capsmith.clusters.lab.simulated.kubelet import Server

VARIABLE = "CAPSMITH_SIMULATED_CLOUD_DIR"
FAULTS_VARIABLE = "CAPSMITH_SIMULATED_FAULTS"
_JOURNALED = ("server", "cluster")


@dataclass(frozen=True)
class CloudCluster:
    """What the cloud keeps for a whole cluster, such as a network or a load balancer."""

    id: str
    name: str


@dataclass(frozen=True)
class Event:
    """One line of the journal."""

    action: str
    what: str
    id: str


class SimulatedCloud:
    """Files appear by rename and vanish by unlink, so every file that exists is whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def faults(self) -> Path:
        """Return the path of the file of faults, which clients read at each call."""
        return self.folder / "faults"

    @contextmanager
    def outage(self, faults: str = "hang=1") -> Iterator[None]:
        """Let all calls hang or fail as ``faults`` says; calls that hang at the end fail."""
        self.faults.write_text(faults)
        try:
            yield
        finally:
            self.faults.unlink()

    def servers(self, cluster: str | None = None) -> list[Server]:
        found = [
            Server(
                id=data["id"],
                name=data["name"],
                provider_id=data["provider_id"],
                cluster=data["cluster"],
                user_data=data["user_data"],
            )
            for data in self._read("servers")
        ]
        return [server for server in found if cluster is None or server.cluster == cluster]

    def clusters(self) -> list[CloudCluster]:
        return [CloudCluster(data["id"], data["name"]) for data in self._read("clusters")]

    def resources(self) -> list[str]:
        """Return the ids of the resources that kinds implementing Resource have created."""
        return [data["id"] for data in self._read("resources")]

    def restarts(self) -> int:
        """Return how often servers have been restarted."""
        return len(self._read("restarts"))

    def remove_server(self, name: str) -> None:
        """Remove a server as a failure would."""
        (found,) = (each for each in (self.folder / "servers").glob(f"{name}.*.json"))
        found.unlink()

    def journal(self) -> list[Event]:
        """Return every creation and deletion since the cloud began, in order.

        A line is written after the action that it records. If a process was killed in
        between, the existing files show the action instead.
        """
        path = self.folder / "journal.log"
        text = path.read_text() if path.exists() else ""
        events = [Event(*line.split(maxsplit=2)) for line in text.splitlines()]
        last = {(event.what, event.id): event.action for event in events}
        there = {
            (what, path.stem)
            for what in _JOURNALED
            for path in (self.folder / f"{what}s").glob("*.json")
        }
        events += [Event("create", *each) for each in sorted(there) if last.get(each) != "create"]
        made = {each for each, action in last.items() if action == "create"}
        gone = sorted(each for each in made - there if each[0] in _JOURNALED)
        return [*events, *(Event("delete", *each) for each in gone)]

    def _read(self, kind: str) -> list[dict[str, Any]]:
        found = []
        for path in sorted((self.folder / kind).glob("*.json")):
            try:
                found.append(json.loads(path.read_text()))
            except FileNotFoundError:
                # Deleted between the listing and the reading.
                continue
        return found
