"""Groups of servers in the simulated cloud, like the scaling groups of a real one.

A group has a size and numbers its servers; it never uses a number twice.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .cloud import Server, SimulatedCloud


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """A simulated group."""

    id: str
    name: str
    size: int
    """Desired number of servers; an autoscaler of the cloud would change it."""
    created: int
    """Number of servers created so far."""


class ServerGroups:
    """All groups; safe to use from several threads and processes at once."""

    def __init__(self, cloud: SimulatedCloud) -> None:
        self._cloud = cloud
        self._folder = cloud.folder / "groups"
        self._folder.mkdir(parents=True, exist_ok=True)
        cloud.inject_faults(self)

    def find(self, external_id: str) -> ServerGroup | None:
        """Return the group with this external id, if it exists."""
        return self._read(external_id)

    def servers(self, external_id: str) -> list[Server]:
        """Return the servers of a group, the oldest first."""
        found = (
            self._cloud.find_server(path.stem)
            for path in (self._cloud.folder / "servers").glob(f"*{external_id[-150:]}-*.json")
        )
        return sorted((server for server in found if server), key=_number)

    def scale(
        self,
        external_id: str,
        name: str,
        cluster: str,
        size: int | None,
        version: str | None,
        user_data: str | None,
    ) -> list[Server]:
        """Create the group if necessary, scale it, and replace at most one outdated server.

        Outdated servers are deleted first, then the newest ones.  Without ``size``, a group keeps
        the size that it has.
        """
        with self._locked():
            group = self.find(external_id) or ServerGroup(external_id, name, size or 0, 0)
            size = group.size if size is None else size
            servers = self.servers(external_id)
            outdated = outdated_servers(servers, version)
            current = [server for server in servers if server not in outdated]
            # An earlier call may have crashed between creating servers and storing the number.
            created = max([group.created, *(_number(server) + 1 for server in servers)])
            # A new server runs before the outdated one that it replaces is deleted.
            is_replacing = size == len(servers) and bool(outdated)
            for number in range(created, created + size - len(servers) + is_replacing):
                created = number + 1
                current.append(
                    self._cloud.create_server(
                        f"{external_id}-{number}",
                        f"{name}-{number}",
                        cluster,
                        user_data,
                        version=version,
                    )
                )
            servers = [*current, *outdated]
            for server in servers[size:]:
                self._cloud.delete_server(f"{external_id}-{_number(server)}")
            self._write(ServerGroup(external_id, name, size, created))
        return servers[:size]

    def resize(self, external_id: str, size: int) -> None:
        """Set the size of an existing group, as an autoscaler of the cloud would.

        The simulated cloud adds and removes servers at the next call of ``scale``.
        """
        with self._locked():
            if group := self._read(external_id):
                self._write(replace(group, size=size))

    def delete(self, external_id: str) -> bool:
        """Delete a group with all its servers; return False if it does not exist."""
        with self._locked():
            existed = self._path(external_id).exists()
            for server in self.servers(external_id):
                self._cloud.delete_server(f"{external_id}-{_number(server)}")
            self._path(external_id).unlink(missing_ok=True)
            return existed

    def _read(self, external_id: str) -> ServerGroup | None:
        try:
            return ServerGroup(**json.loads(self._path(external_id).read_text()))
        except FileNotFoundError:
            return None

    def _path(self, external_id: str) -> Path:
        # Names of objects may be longer than those of files; the end, a UID, is unique.
        return self._folder / f"{external_id[-200:]}.json"

    def _write(self, group: ServerGroup) -> None:
        handle, draft = tempfile.mkstemp(dir=self._folder, prefix=".")
        with os.fdopen(handle, "w") as file:
            file.write(json.dumps(asdict(group)))
        Path(draft).replace(self._path(group.id))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def outdated_servers(servers: Sequence[Server], version: str | None) -> list[Server]:
    """Return the servers that do not run the desired Kubernetes version, if there is one."""
    return [server for server in servers if version and server.version != version]


def _number(server: Server) -> int:
    return int(server.name.rpartition("-")[2])
