"""The address and certificate of a manager's webhooks when the manager runs as a process."""

from __future__ import annotations

import shutil
from pathlib import Path

import trustme

from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.process import free_port

_HOST = "127.0.0.1"


class HookServing:
    """Replacement for the Service, cert-manager and the mounted Secret."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def flags(self) -> list[str]:
        """Return the flags for a port that is free now; a new Pod would have a new address, too."""
        port = free_port()
        return [
            f"--webhook-host={_HOST}",
            f"--webhook-port={port}",
            f"--webhook-cert-dir={self.folder}",
            f"--webhook-url=https://{_HOST}:{port}",
        ]

    def renew(self) -> bytes:
        """Issue a certificate from another authority; return the authority's in PEM."""
        self.folder.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA()
        issued = authority.issue_cert(_HOST)
        issued.private_key_pem.write_to_path(self.folder / "tls.key")
        issued.cert_chain_pems[0].write_to_path(self.folder / "tls.crt")
        authority.cert_pem.write_to_path(self.folder / "ca.crt")
        return authority.cert_pem.bytes()


class ConversionServing:
    """Like HookServing, for a manager that converts objects for the API server.

    The port is chosen early, because the CustomResourceDefinitions name it before the manager
    starts.
    """

    def __init__(self, folder: Path, pki: Pki) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pki.serving.cert, folder / "tls.crt")
        shutil.copyfile(pki.serving.key, folder / "tls.key")
        self._folder = folder
        self.port = free_port()

    def flags(self) -> list[str]:
        """Return the flags for the address and the certificate."""
        return [
            f"--webhook-host={_HOST}",
            f"--webhook-port={self.port}",
            f"--webhook-cert-dir={self._folder}",
        ]
