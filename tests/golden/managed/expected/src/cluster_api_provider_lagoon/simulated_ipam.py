"""A simulated IPAM system, which keeps its addresses as links in a folder.

It lets everything run before there is a real IPAM system.

Environment:
  CAPSMITH_SIMULATED_IPAM_DIR   the folder; by default a folder in the system's temporary folder
  CAPSMITH_SIMULATED_FAULTS     faults to inject, for example error=0.1: one in ten calls fails; see
                                capsmith_runtime.fault_injection
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from ipaddress import IPv4Network
from pathlib import Path

NAME = "lagoon"


class SimulatedIpam:
    """A folder with a link for each allocated address, to the external id that holds it.

    Safe to use from several threads and processes at once.
    """

    network = IPv4Network("198.51.100.0/24")
    gateway = "198.51.100.1"

    def __init__(self, folder: Path | None = None) -> None:
        chosen = os.environ.get("CAPSMITH_SIMULATED_IPAM_DIR")
        default = Path(tempfile.gettempdir()) / f"{NAME}-simulated-ipam"
        self.folder = folder or (Path(chosen) if chosen else default)
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.environ.get("CAPSMITH_SIMULATED_FAULTS"):
            from capsmith_runtime.fault_injection import inject_faults

            inject_faults(self, self.folder)

    def addresses(self) -> list[str]:
        """Return all allocated addresses."""
        return sorted(path.name for path in self.folder.iterdir() if path.is_symlink())

    def find(self, external_id: str) -> str | None:
        """Return the address that this external id holds, if any."""
        for address in self.addresses():
            # Another call may release it in the meantime.
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(self.folder / address) == external_id:
                    return address
        return None

    def allocate(self, external_id: str) -> str | None:
        """Allocate a free address; return None if there is none."""
        for address in self.network.hosts():
            if str(address) == self.gateway:
                continue
            try:
                # Creating a link is atomic, and fails if another claim holds the address.
                (self.folder / str(address)).symlink_to(external_id)
            except FileExistsError:
                continue
            return str(address)
        return None

    def release(self, external_id: str) -> None:
        """Release the address of this external id; do nothing if it holds none."""
        address = self.find(external_id)
        if address is not None:
            (self.folder / address).unlink(missing_ok=True)
