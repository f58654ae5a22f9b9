"""Certificates of API servers that people run, and a server that presents one.

`FORMS` names them.  Certificates of kubeadm and of cert-manager have key identifiers and a key
usage; these lack them, and Go's clients accept them nevertheless.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

GROUP: Final = "example.com"
_VERSION = {"groupVersion": f"{GROUP}/v1", "version": "v1"}
_GROUP_INFO = {"preferredVersion": _VERSION, "versions": [_VERSION]}
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
_NOW = datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class Form:
    """The properties of an authority's certificates; none of them has a key identifier."""

    key_usage: bool = True
    critical: bool = True
    """Whether the basic constraints of the authority are critical."""
    end: datetime = _NOW + timedelta(days=10)
    """Until when the server's certificate is valid."""


FORMS: Final = {
    "without key identifiers": Form(),
    "with basic constraints alone": Form(key_usage=False),
    "with basic constraints that are not critical": Form(key_usage=False, critical=False),
}
EXPIRED: Final = Form(end=_NOW - timedelta(days=1))


class Issuer:
    """An authority of one form."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("kubernetes")
        builder = _builder(self._name, self._name, self._key, _NOW + timedelta(days=100))
        builder = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=form.critical
        )
        builder = self._with_usage(builder, "digital_signature", "key_cert_sign")
        self.certificate = _pem(builder.sign(self._key, hashes.SHA256()))

    def issue(self, host: str) -> tuple[bytes, bytes]:
        """Return the certificate and the key of a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name("kube-apiserver"), self._name, key, self._form.end)
        builder = builder.add_extension(x509.SubjectAlternativeName([_san(host)]), critical=False)
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        builder = self._with_usage(builder, "digital_signature", "key_encipherment")
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return _pem(builder.sign(self._key, hashes.SHA256())), private

    def _with_usage(
        self, builder: x509.CertificateBuilder, *usages: str
    ) -> x509.CertificateBuilder:
        if not self._form.key_usage:
            return builder
        usage = x509.KeyUsage(**{name: name in usages for name in _USAGES})
        return builder.add_extension(usage, critical=True)


@contextmanager
def strict_default() -> Iterator[None]:
    """Make Python's default context as strict as in Python 3.13, on every Python."""
    real = ssl.create_default_context

    def strict(*arguments: Any, **options: Any) -> ssl.SSLContext:
        context = real(*arguments, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", strict)
        yield


@dataclass(frozen=True)
class ApiServer:
    """An API server that serves one group, and its kubeconfig."""

    url: str
    authority: bytes
    folder: Path
    paths: list[str] = field(default_factory=list)
    """The paths of the requests that it has received."""

    @property
    def ca(self) -> Path:
        """Return the path to the certificate of the server's authority."""
        return self.folder / "ca.crt"

    def kubeconfig(self, authority: bytes = b"") -> bytes:
        """Return a kubeconfig that trusts the given authority, by default the server's own."""
        data = base64.b64encode(authority or self.authority).decode()
        cluster = {"server": self.url, "certificate-authority-data": data}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        return json.dumps(config).encode()


@contextmanager
def api_server(folder: Path, form: Form, host: str = "127.0.0.1") -> Iterator[ApiServer]:
    """Run an API server on 127.0.0.1 whose certificate is for ``host``."""
    issuer = Issuer(form)
    certificate, key = issuer.issue(host)
    for name, content in (
        ("ca.crt", issuer.certificate),
        ("tls.crt", certificate),
        ("tls.key", key),
    ):
        (folder / name).write_bytes(content)
    paths: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(paths))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    # The handshake is the business of the thread of a connection, since clients refuse some.
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        url = f"https://127.0.0.1:{server.server_port}"
        yield ApiServer(url, issuer.certificate, folder, paths)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(paths: list[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            try:
                super().handle()
            except (ssl.SSLError, ConnectionError):
                self.close_connection = True  # the client has refused the certificate

        def finish(self) -> None:
            try:
                super().finish()
            except OSError:
                return

        def do_GET(self) -> None:
            paths.append(self.path)
            body = json.dumps(_GROUP_INFO).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW - timedelta(days=10))
        .not_valid_after(end)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _san(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
