"""Control planes that the simulated cloud runs for its users, as Kubernetes services do.

Environment:
  CAPSMITH_SIMULATED_KUBECONFIG  file with the kubeconfig of all control planes; by default one is
                                 made with the endpoint of the cloud and a token that nobody knows
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from . import ClusterCredentials, Endpoint
from .cloud import SimulatedCloud


@dataclass(frozen=True, slots=True)
class HostedControlPlane:
    """A simulated control plane."""

    id: str
    name: str
    version: str


class HostedControlPlanes:
    """All of them; safe for many threads and processes at a time."""

    def __init__(self, cloud: SimulatedCloud) -> None:
        self._cloud = cloud
        self._folder = cloud.folder / "control-planes"
        self._folder.mkdir(parents=True, exist_ok=True)

    def find(self, external_id: str) -> HostedControlPlane | None:
        """The control plane with that mark."""
        try:
            return HostedControlPlane(**json.loads(self._path(external_id).read_text()))
        except FileNotFoundError:
            return None

    def create(self, external_id: str, name: str, version: str) -> HostedControlPlane:
        """A new one, or the one that somebody has created with that mark meanwhile."""
        made = HostedControlPlane(external_id, name, version)
        draft = self._draft(made)
        try:
            # A link is there at once and whole, and fails if another was faster.
            os.link(draft, self._path(external_id))
            self._note(f"create control-plane {external_id}")
        except FileExistsError:
            return self.find(external_id) or made
        finally:
            draft.unlink()
        return made

    def upgrade(self, found: HostedControlPlane, version: str) -> HostedControlPlane:
        """Bring one to another version of Kubernetes."""
        changed = replace(found, version=version)
        self._draft(changed).replace(self._path(found.id))
        self._note(f"upgrade control-plane {found.id} {version}")
        return changed

    def delete(self, external_id: str) -> None:
        """Remove one; one that is gone already is no error."""
        try:
            self._path(external_id).unlink()
        except FileNotFoundError:
            return
        self._note(f"delete control-plane {external_id}")

    def endpoint(self) -> Endpoint:
        """Where they are reached."""
        return Endpoint(*self._cloud.endpoint())

    def kubeconfig(self, found: HostedControlPlane) -> str | ClusterCredentials:
        """How to get into one."""
        path = os.environ.get("CAPSMITH_SIMULATED_KUBECONFIG")
        return Path(path).read_text() if path else ClusterCredentials(token=found.id)

    def _path(self, external_id: str) -> Path:
        return self._folder / f"{external_id}.json"

    def _draft(self, content: HostedControlPlane) -> Path:
        handle, draft = tempfile.mkstemp(dir=self._folder, prefix=".")
        with os.fdopen(handle, "w") as file:
            file.write(json.dumps(asdict(content)))
        return Path(draft)

    def _note(self, line: str) -> None:
        with (self._cloud.folder / "journal.log").open("a") as journal:
            journal.write(line + "\n")
