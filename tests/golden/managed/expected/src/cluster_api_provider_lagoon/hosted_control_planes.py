"""Simulated control planes that the cloud runs for its users, like a managed Kubernetes service.

Environment:
  CAPSMITH_SIMULATED_KUBECONFIG  file with the kubeconfig of all control planes; by default a
                                 kubeconfig with the endpoint of the cloud and an invalid token
  CAPSMITH_SIMULATED_FAULTS      faults to inject, for example error=0.1: one in ten calls fails;
                                 see capsmith_runtime.fault_injection
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from capsmith_runtime.controlplane import ClusterCredentials, Endpoint

from .cloud import SimulatedCloud


@dataclass(frozen=True, slots=True)
class HostedControlPlane:
    """A simulated control plane."""

    id: str
    name: str
    version: str


class HostedControlPlanes:
    """All control planes; safe to use from several threads and processes at once."""

    def __init__(self, cloud: SimulatedCloud) -> None:
        self._cloud = cloud
        self._folder = cloud.folder / "control-planes"
        self._folder.mkdir(parents=True, exist_ok=True)
        if os.environ.get("CAPSMITH_SIMULATED_FAULTS"):
            from capsmith_runtime.fault_injection import inject_faults

            inject_faults(self, cloud.folder)

    def all(self) -> list[HostedControlPlane]:
        """Return all control planes that exist."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            # Another call may delete it in the meantime.
            with contextlib.suppress(FileNotFoundError):
                found.append(HostedControlPlane(**json.loads(path.read_text())))
        return found

    def find(self, external_id: str) -> HostedControlPlane | None:
        """Return the control plane with this external id, if it exists."""
        try:
            return HostedControlPlane(**json.loads(self._path(external_id).read_text()))
        except FileNotFoundError:
            return None

    def create(self, external_id: str, name: str, version: str) -> HostedControlPlane:
        """Create the control plane, or return the existing one with this external id."""
        control_plane = HostedControlPlane(external_id, name, version)
        draft = self._draft(control_plane)
        try:
            # Creating a hard link is atomic, and fails if the name exists.
            os.link(draft, self._path(external_id))
            self._log(f"create control-plane {external_id}")
        except FileExistsError:
            return self.find(external_id) or control_plane
        finally:
            draft.unlink()
        return control_plane

    def upgrade(self, control_plane: HostedControlPlane, version: str) -> HostedControlPlane:
        """Upgrade a control plane to another version of Kubernetes."""
        upgraded = replace(control_plane, version=version)
        self._draft(upgraded).replace(self._path(upgraded.id))
        self._log(f"upgrade control-plane {upgraded.id} {version}")
        return upgraded

    def delete(self, external_id: str) -> None:
        """Delete a control plane; do nothing if it does not exist."""
        try:
            self._path(external_id).unlink()
        except FileNotFoundError:
            return
        self._log(f"delete control-plane {external_id}")

    def endpoint(self) -> Endpoint:
        """Return the endpoint of all control planes."""
        return Endpoint(*self._cloud.endpoint())

    def kubeconfig(self, control_plane: HostedControlPlane) -> str | ClusterCredentials:
        """Return the credentials for a control plane."""
        path = os.environ.get("CAPSMITH_SIMULATED_KUBECONFIG")
        return Path(path).read_text() if path else ClusterCredentials(token=control_plane.id)

    def _path(self, external_id: str) -> Path:
        # Names of objects may be longer than those of files; the end, a UID, is unique.
        return self._folder / f"{external_id[-200:]}.json"

    def _draft(self, control_plane: HostedControlPlane) -> Path:
        handle, draft = tempfile.mkstemp(dir=self._folder, prefix=".")
        with os.fdopen(handle, "w") as file:
            file.write(json.dumps(asdict(control_plane)))
        return Path(draft)

    def _log(self, line: str) -> None:
        with (self._cloud.folder / "journal.log").open("a") as journal:
            journal.write(line + "\n")
