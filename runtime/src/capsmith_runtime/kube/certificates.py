"""The serving certificate, which is reloaded when its files change."""

from __future__ import annotations

import contextlib
import math
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.tls import DEFAULT_TLS, TLSOptions

_NO_CHECK_TIME: Final = ssl.VerifyFlags(0x200000)
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, for which the ssl module has no name.

With this flag, even expired certificates can be read.
"""
_NO_PASSWORD: Final = ""
"""Password of keys; without one, OpenSSL prompts for that of an encrypted key, and waits."""

_ROUNDS: Final = 10
"""Maximum number of handshake rounds, of which three are needed.

Without a limit, a fault would block the event loop.
"""


# The standard library exposes the fields of a certificate only for a verified peer, so a client and
# a server shake hands in memory. The cryptography library could read them from the file, but most
# managers have no other use for it.
def read_expiration(certificate: Path, key: Path) -> float:
    """Return the Unix time at which the file's first certificate expires.

    The certificate may have expired already.  Raises ssl.SSLError if TLS clients would reject the
    certificate and key for any other reason.
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key, _NO_PASSWORD)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(certificate)
    # Only the fields of the file matter here: the certificate is its own trust anchor, whatever
    # host it was issued for.
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    fields = _shake_hands(client, server).getpeercert()
    assert fields, "a verified peer has a certificate"
    return float(ssl.cert_time_to_seconds(str(fields["notAfter"])))


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> ssl.SSLObject:
    """Return the client's side of a connection once it has verified the server's certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(_ROUNDS):
        with contextlib.suppress(ssl.SSLWantReadError):
            near.do_handshake()
            return near
        with contextlib.suppress(ssl.SSLWantReadError):
            far.do_handshake()
    raise ssl.SSLError("the handshake does not end")


_log = get_logger("certificates")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """Paths to the certificate, its key and the CA certificate, all in PEM."""

    directory: Path
    certificate: str = "tls.crt"
    key: str = "tls.key"
    authority: str = "ca.crt"
    """Path to the CA certificate that clients must trust; the file may be missing.

    The file is not needed if clients already trust the issuer.
    """
    client_authority: str = ""
    """Path to the CA certificate for verifying client certificates.

    If the path is empty, clients need no certificate.
    """

    def read(self) -> tuple[bytes, ...]:
        """Return the contents of the files.

        Raises OSError if a required file is missing.
        """
        required = (self.certificate, self.key, self.client_authority)
        contents = [(self.directory / name).read_bytes() for name in required if name]
        return (self.read_authority(), *contents)

    def read_authority(self) -> bytes:
        """Return the CA certificate in PEM format, or empty bytes if the file does not exist."""
        path = self.directory / self.authority
        return path.read_bytes() if path.is_file() else b""


class Certificates:
    """Provides the last valid contents of the certificate files, and reports when they expire."""

    def __init__(
        self, files: CertificateFiles, metrics: Metrics, server: str, tls: TLSOptions = DEFAULT_TLS
    ) -> None:
        """Initialise without reading the files; ``server`` is the label of the expiry metric."""
        self._tls = tls
        self._files = files
        self._metrics = metrics
        self._server = server
        self._loaded: tuple[bytes, ...] = ()
        self._current: ssl.SSLContext | None = None
        self.ca_bundle = b""
        """CA certificate in PEM that clients must trust to accept the current certificate."""

    def refresh(self) -> bool:
        """Load the files, and return whether they contain a different certificate than before.

        Missing or mismatched files are logged and skipped, because they may be in the process of
        being replaced.
        """
        try:
            contents = self._files.read()
            # Compare contents, because kubelet replaces the files of a Secret by renaming a
            # symbolic link to their folder.
            if contents == self._loaded:
                return False
            self._current = self._context()
        except (OSError, ssl.SSLError) as error:
            _log.warning("cannot use the certificate", error=str(error))
            return False
        self._loaded, self.ca_bundle = contents, contents[0]
        self._report_expiration()
        return True

    def server_context(self) -> ssl.SSLContext:
        """Return a server's TLS context; new connections always use the latest certificate.

        Call this after :meth:`refresh` has found a certificate.
        """
        # Not read again: meanwhile the files may be in the process of being replaced.
        context = self._current
        assert context is not None, "no certificate is loaded"
        # OpenSSL calls this in every handshake, even if the client sends no server name.
        context.sni_callback = self._select
        return context

    def _select(self, connection: ssl.SSLObject, name: str | None, base: ssl.SSLContext) -> None:
        if self._current is not None:
            connection.context = self._current

    def _report_expiration(self) -> None:
        path = self._files.directory
        try:
            time = read_expiration(path / self._files.certificate, path / self._files.key)
        except (OSError, ssl.SSLError) as error:
            _log.warning("cannot read when the certificate expires", error=str(error))
            time = math.nan
        self._metrics.certificate_expiration.labels(self._server).set(time)

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.apply(context)
        context.set_alpn_protocols(["http/1.1"])
        directory = self._files.directory
        certificate, key = directory / self._files.certificate, directory / self._files.key
        context.load_cert_chain(certificate, key, _NO_PASSWORD)
        if self._files.client_authority:
            context.load_verify_locations(directory / self._files.client_authority)
            context.verify_mode = ssl.CERT_REQUIRED
        return context
