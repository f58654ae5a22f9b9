"""A simulated cloud, which keeps its servers as files in a folder.

It lets everything run before there is a real cloud.  The caller chooses an ``external_id`` for each
resource and finds the resource by it, so nothing is created twice, even after a crash at any point.
Like a real cloud, it chooses the ids of its servers itself.  Your own client must offer the same.

In a Pod, the temporary folder disappears with the Pod, and all servers with it.  Each new Pod, for
example after an upgrade, starts with an empty cloud, and existing Machines fail.  To try upgrades,
put the folder on a volume.

Environment:
  CAPSMITH_SIMULATED_CLOUD_DIR   the folder; by default a folder in the system's temporary folder
  CAPSMITH_SIMULATED_ENDPOINT    host:port of all control planes; by default 127.0.0.1:6443
  CAPSMITH_SIMULATED_USER_DATA   true: servers store their bootstrap data
  CAPSMITH_SIMULATED_FAULTS      faults to inject, for example error=0.1,late=3: one in ten calls
                                 fails, and three searches do not find a new server yet; see
                                 capsmith_runtime.fault_injection
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

SCHEME = "harbour"


@dataclass(frozen=True, slots=True)
class Server:
    """A simulated server."""

    id: str
    name: str
    provider_id: str
    cluster: str
    user_data: str | None
    zone: str | None = None
    version: str | None = None
    """The Kubernetes version of a server in a group; a Machine has its own."""


@dataclass(frozen=True, slots=True)
class SharedResources:
    """The resources that all servers of a cluster share, such as a network."""

    id: str
    name: str


class SimulatedCloud:
    """A simulated cloud; safe to use from several threads and processes at once."""

    zones = ("zone-1", "zone-2")

    def __init__(self, folder: Path | None = None) -> None:
        chosen = os.environ.get("CAPSMITH_SIMULATED_CLOUD_DIR")
        default = Path(tempfile.gettempdir()) / f"{SCHEME}-simulated-cloud"
        self.folder = folder or (Path(chosen) if chosen else default)
        for name in ("servers", "clusters"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.inject_faults(self)

    def inject_faults(self, client: object) -> None:
        """Make calls of a client fail, if the environment requires it."""
        if os.environ.get("CAPSMITH_SIMULATED_FAULTS"):
            from capsmith_runtime.fault_injection import inject_faults

            inject_faults(client, self.folder)

    def endpoint(self) -> tuple[str, int]:
        """Return host and port of the control planes."""
        address = os.environ.get("CAPSMITH_SIMULATED_ENDPOINT") or "127.0.0.1:6443"
        host, _, port = address.rpartition(":")
        return host, int(port)

    def stores_user_data(self) -> bool:
        """Return whether servers store their bootstrap data."""
        return os.environ.get("CAPSMITH_SIMULATED_USER_DATA") == "true"

    def find_server(self, external_id: str) -> Server | None:
        """Return the server with this external id, if it exists."""
        text = self._read("servers", external_id)
        return Server(**json.loads(text)) if text is not None else None

    def create_server(
        self,
        external_id: str,
        name: str,
        cluster: str,
        user_data: str | None,
        zone: str | None = None,
        version: str | None = None,
    ) -> Server:
        """Create the server, or return the existing one with this external id."""
        server_id = uuid.uuid4().hex
        server = Server(
            id=server_id,
            name=name,
            provider_id=f"{SCHEME}://{server_id}",
            cluster=cluster,
            user_data=user_data,
            zone=zone,
            version=version,
        )
        self._create("server", external_id, json.dumps(asdict(server)))
        return self.find_server(external_id) or server

    def delete_server(self, external_id: str) -> bool:
        """Delete the server; return False if it does not exist."""
        return self._delete("server", external_id)

    def find_cluster(self, external_id: str) -> SharedResources | None:
        """Return the shared resources of the cluster with this external id, if they exist."""
        text = self._read("clusters", external_id)
        return SharedResources(**json.loads(text)) if text is not None else None

    def create_cluster(self, external_id: str, name: str) -> SharedResources:
        """Create the shared resources of a cluster, unless they exist."""
        shared = SharedResources(external_id, name)
        self._create("cluster", external_id, json.dumps(asdict(shared)))
        return shared

    def delete_cluster(self, external_id: str) -> bool:
        """Delete the shared resources of a cluster; return False if they do not exist."""
        return self._delete("cluster", external_id)

    def _read(self, collection: str, external_id: str) -> str | None:
        try:
            return (self.folder / collection / _file_name(external_id)).read_text()
        except FileNotFoundError:
            return None

    def _create(self, kind: str, external_id: str, text: str) -> None:
        folder = self.folder / f"{kind}s"
        handle, draft = tempfile.mkstemp(dir=folder, prefix=".")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            # Creating a hard link is atomic, and fails if the name exists.
            os.link(draft, folder / _file_name(external_id))
        except FileExistsError:
            return
        finally:
            Path(draft).unlink()
        self._log(f"create {kind} {external_id}")

    def _delete(self, kind: str, external_id: str) -> bool:
        try:
            (self.folder / f"{kind}s" / _file_name(external_id)).unlink()
        except FileNotFoundError:
            return False
        self._log(f"delete {kind} {external_id}")
        return True

    def _log(self, line: str) -> None:
        with (self.folder / "journal.log").open("a") as journal:
            journal.write(line + "\n")


def _file_name(external_id: str) -> str:
    # Names of objects may be longer than those of files; the end, a UID, is unique.
    return f"{external_id[-200:]}.json"
