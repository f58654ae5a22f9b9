"""Certificate authorities and a ServiceAccount key, shared by all processes of a session.

Only this user can read the keys. Needs trustme, which only the extra `conformance` installs, so
import this module only where it is used.
"""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from capsmith.clusters.processes.tls import create_api_server_context

ADMIN_GROUP = "system:masters"


@dataclass(frozen=True)
class KeyPair:
    """Paths to a certificate or public key, and to its private key, in PEM format."""

    cert: Path
    key: Path


class Pki:
    """A certificate authority that writes the certificates it issues to a folder."""

    def __init__(
        self, folder: Path, authority: trustme.CA | None = None, names: Sequence[str] = ()
    ) -> None:
        """Use an existing CA or create one, and write its files immediately.

        Server certificates are valid for this computer and for additional ``names``, such as
        addresses.
        """
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._authority = authority or trustme.CA()
        self.ca = folder / "ca.crt"
        self._authority.cert_pem.write_to_path(self.ca)
        self.service_account = self._service_account_keys()
        serving = self._authority.issue_cert("127.0.0.1", "localhost", *names)
        self.serving = _write_pair(folder, "serving", serving)
        # Go refuses a certificate with an empty list of names, hence an unused name.
        admin = self._authority.issue_cert(
            "admin.invalid", common_name="admin", organization_name=ADMIN_GROUP
        )
        self.admin = _write_pair(folder, "admin", admin)

    @classmethod
    def existing(cls, folder: Path) -> Pki:
        """Return the certificates that another process issued to ``folder``."""
        pki = cls.__new__(cls)
        pki._folder = folder
        pki.ca = folder / "ca.crt"
        pki.service_account = KeyPair(folder / "sa.pub", folder / "sa.key")
        pki.serving = KeyPair(folder / "serving.crt", folder / "serving.key")
        pki.admin = KeyPair(folder / "admin.crt", folder / "admin.key")
        return pki

    def issue(self, name: str, hosts: Sequence[str], user: str, group: str = "") -> KeyPair:
        """Issue a certificate for a server or client, and write it to files called ``name``.

        ``hosts`` are a server's names and addresses.  A client certificate needs at least one, too,
        but never uses it.  ``user`` and ``group`` are the identity that the API server sees.
        """
        issued = self._authority.issue_cert(
            *hosts, common_name=user, organization_name=group or None
        )
        return _write_pair(self._folder, name, issued)

    @property
    def ca_bundle(self) -> str:
        """Return the CA certificate in base64, as in webhook configurations and kubeconfigs."""
        return base64.b64encode(self.ca.read_bytes()).decode()

    def _service_account_keys(self) -> KeyPair:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pair = KeyPair(self._folder / "sa.pub", self._folder / "sa.key")
        pair.cert.write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        _write_private(
            pair.key,
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            ),
        )
        return pair


@dataclass(frozen=True)
class EtcdTLS:
    """The certificates for an etcd and its clients, issued by a separate CA.

    The session's other certificates give no access to etcd, because providers' managers hold some
    of them for their webhooks.
    """

    ca: Path
    server: KeyPair
    """Certificate that etcd presents to clients and peers."""
    client: KeyPair
    """Certificate that API servers present to etcd."""

    @classmethod
    def issue(cls, folder: Path) -> EtcdTLS:
        """Create a new CA, and write all certificates to ``folder``."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        authority = trustme.CA()
        tls = cls.existing(folder)
        authority.cert_pem.write_to_path(tls.ca)
        _write_pair(folder, "server", authority.issue_cert("127.0.0.1", "localhost"))
        _write_pair(folder, "client", authority.issue_cert("client.invalid"))
        return tls

    @classmethod
    def existing(cls, folder: Path) -> EtcdTLS:
        """Return the certificates that :meth:`issue` wrote to ``folder``."""
        return cls(folder / "ca.crt", _name_pair(folder, "server"), _name_pair(folder, "client"))

    def client_context(self) -> ssl.SSLContext:
        """Return the TLS context for an etcd client."""
        context = create_api_server_context(self.ca)
        context.load_cert_chain(self.client.cert, self.client.key)
        return context


def _name_pair(folder: Path, name: str) -> KeyPair:
    return KeyPair(folder / f"{name}.crt", folder / f"{name}.key")


def _write_pair(folder: Path, name: str, issued: trustme.LeafCert) -> KeyPair:
    pair = _name_pair(folder, name)
    issued.cert_chain_pems[0].write_to_path(pair.cert)
    _write_private(pair.key, issued.private_key_pem.bytes())
    return pair


def _write_private(path: Path, content: bytes) -> None:
    """Write a file that no other user can read at any moment."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
