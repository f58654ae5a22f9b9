"""Certificates of Clusters for tests; they are real if the library ``cryptography`` is installed.

A provider that reads certificates, or issues some, depends on it; others need no valid PEM.
"""

from __future__ import annotations

import base64
import datetime
import importlib
from functools import cache
from typing import Any, Final

from capsmith_runtime.bootstrap.api import CertificatePair, CertificatePurpose

PURPOSES: Final[tuple[CertificatePurpose, ...]] = ("ca", "etcd", "proxy", "sa")
_LIFETIME: Final = datetime.timedelta(days=365)


@cache
def certificate_of(purpose: CertificatePurpose) -> CertificatePair:
    """Return the certificate and key for a purpose, always the same in one process."""
    try:
        # By name: mypy checks this file in repositories without the library, too.
        asymmetric: Any = importlib.import_module("cryptography.hazmat.primitives.asymmetric.ec")
    except ImportError:
        public = "public key" if purpose == "sa" else "certificate"
        return CertificatePair(f"{public} of {purpose}\n", f"private key of {purpose}\n")
    serialization: Any = importlib.import_module("cryptography.hazmat.primitives.serialization")
    key = asymmetric.generate_private_key(asymmetric.SECP256R1())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    if purpose == "sa":
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        public_key = key.public_key().public_bytes(pem, form)
        return CertificatePair(public_key.decode(), private.decode())
    return CertificatePair(_authority(purpose, key).public_bytes(pem).decode(), private.decode())


def has_key(data: bytes, purpose: CertificatePurpose) -> bool:
    """Return whether bootstrap data have the private key, indented or in base64."""
    private = certificate_of(purpose).private_key
    assert private is not None
    line = max(private.splitlines(), key=len).encode()
    return line in data or base64.b64encode(private.strip().encode())[:-4] in data


def _authority(purpose: str, key: Any) -> Any:
    x509: Any = importlib.import_module("cryptography.x509")
    hashes: Any = importlib.import_module("cryptography.hazmat.primitives.hashes")
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, purpose)])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - _LIFETIME).not_valid_after(now + _LIFETIME)
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    return builder.add_extension(constraints, critical=True).sign(key, hashes.SHA256())
