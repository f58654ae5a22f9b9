"""A cloud that is a folder on disk, so that everything runs before there is a real one.

It does what yours should let you do: things are found again by a mark that the caller chooses
(``external_id``), so nothing is ever created twice, whatever crashes when.

Environment:
  CAPSMITH_SIMULATED_CLOUD_DIR   the folder; by default one in the temporary folder
  CAPSMITH_SIMULATED_ENDPOINT    host:port of all control planes; by default 127.0.0.1:6443
  CAPSMITH_SIMULATED_USER_DATA   true: servers keep their bootstrap data
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

SCHEME = "skiff"


@dataclass(frozen=True, slots=True)
class Server:
    """A simulated server."""

    id: str
    name: str
    provider_id: str
    cluster: str
    user_data: str | None


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What the simulated servers of a cluster share."""

    id: str
    name: str


class SimulatedCloud:
    """Files in place of servers; safe for many threads and processes at a time."""

    zones = ("zone-1", "zone-2")

    def __init__(self, folder: Path | None = None) -> None:
        chosen = os.environ.get("CAPSMITH_SIMULATED_CLOUD_DIR")
        default = Path(tempfile.gettempdir()) / f"{SCHEME}-simulated-cloud"
        self.folder = folder or (Path(chosen) if chosen else default)
        for part in ("servers", "clusters"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)

    def endpoint(self) -> tuple[str, int]:
        """Where control planes are reached."""
        address = os.environ.get("CAPSMITH_SIMULATED_ENDPOINT") or "127.0.0.1:6443"
        host, _, port = address.rpartition(":")
        return host, int(port)

    def wants_user_data(self) -> bool:
        """Whether servers keep their bootstrap data."""
        return os.environ.get("CAPSMITH_SIMULATED_USER_DATA") == "true"

    def find_server(self, external_id: str) -> Server | None:
        """The server with that mark."""
        text = self._read("servers", external_id)
        return Server(**json.loads(text)) if text is not None else None

    def create_server(
        self, external_id: str, name: str, cluster: str, user_data: str | None
    ) -> Server:
        """A new server, or the one that somebody has created with that mark meanwhile."""
        server = Server(
            id=external_id,
            name=name,
            provider_id=f"{SCHEME}://{external_id}",
            cluster=cluster,
            user_data=user_data,
        )
        self._create("server", external_id, json.dumps(asdict(server)))
        return self.find_server(external_id) or server

    def delete_server(self, external_id: str) -> None:
        """Remove a server; one that is gone already is no error."""
        self._delete("server", external_id)

    def find_cluster(self, external_id: str) -> SharedParts | None:
        """What the servers of a cluster share."""
        text = self._read("clusters", external_id)
        return SharedParts(**json.loads(text)) if text is not None else None

    def create_cluster(self, external_id: str, name: str) -> SharedParts:
        """What the servers of a cluster will share."""
        shared = SharedParts(external_id, name)
        self._create("cluster", external_id, json.dumps(asdict(shared)))
        return shared

    def delete_cluster(self, external_id: str) -> None:
        """Remove what the servers of a cluster shared."""
        self._delete("cluster", external_id)

    def _read(self, part: str, external_id: str) -> str | None:
        try:
            return (self.folder / part / f"{external_id}.json").read_text()
        except FileNotFoundError:
            return None

    def _create(self, what: str, external_id: str, text: str) -> None:
        folder = self.folder / f"{what}s"
        handle, draft = tempfile.mkstemp(dir=folder, prefix=".")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            # A link is there at once and whole, and fails if another was faster.
            os.link(draft, folder / f"{external_id}.json")
        except FileExistsError:
            return
        finally:
            Path(draft).unlink()
        self._note(f"create {what} {external_id}")

    def _delete(self, what: str, external_id: str) -> None:
        try:
            (self.folder / f"{what}s" / f"{external_id}.json").unlink()
        except FileNotFoundError:
            return
        self._note(f"delete {what} {external_id}")

    def _note(self, line: str) -> None:
        with (self.folder / "journal.log").open("a") as journal:
            journal.write(line + "\n")
