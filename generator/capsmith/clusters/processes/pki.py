"""A certificate authority and a ServiceAccount key, shared by all processes of a session.

Needs trustme, which only the extra `conformance` installs, so this module must be imported late.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

ADMIN_GROUP = "system:masters"


@dataclass(frozen=True)
class KeyPair:
    """Paths to a certificate or public key and to its private key, in PEM."""

    cert: Path
    key: Path


class Pki:
    """Issues certificates into a folder."""

    def __init__(self, folder: Path, authority: trustme.CA | None = None) -> None:
        """Use an existing authority, or create one, and write the files immediately."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._authority = authority or trustme.CA()
        self.ca = folder / "ca.crt"
        self._authority.cert_pem.write_to_path(self.ca)
        self.service_account = self._service_account_keys()
        self.serving = self._write("serving", self._authority.issue_cert("127.0.0.1", "localhost"))
        # Go refuses a certificate whose list of names is empty, hence an unused name.
        admin = self._authority.issue_cert(
            "admin.invalid", common_name="admin", organization_name=ADMIN_GROUP
        )
        self.admin = self._write("admin", admin)

    @classmethod
    def existing(cls, folder: Path) -> Pki:
        """Return the certificates that another process issued into ``folder``."""
        pki = cls.__new__(cls)
        pki._folder = folder
        pki.ca = folder / "ca.crt"
        pki.service_account = KeyPair(folder / "sa.pub", folder / "sa.key")
        pki.serving = KeyPair(folder / "serving.crt", folder / "serving.key")
        pki.admin = KeyPair(folder / "admin.crt", folder / "admin.key")
        return pki

    @property
    def ca_bundle(self) -> str:
        """Return the CA in base64, in the form used by webhook configurations and kubeconfigs."""
        return base64.b64encode(self.ca.read_bytes()).decode()

    def _write(self, name: str, issued: trustme.LeafCert) -> KeyPair:
        pair = KeyPair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        issued.cert_chain_pems[0].write_to_path(pair.cert)
        issued.private_key_pem.write_to_path(pair.key)
        return pair

    def _service_account_keys(self) -> KeyPair:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pair = KeyPair(self._folder / "sa.pub", self._folder / "sa.key")
        pair.cert.write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        return pair
