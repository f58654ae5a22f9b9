"""When a certificate in a PEM file expires, with the standard library only.

Its public API reads the fields of a certificate from a peer that it has verified, and from nothing
else: so a client and a server shake hands in memory.  The cryptography library reads them from the
file, but most managers have no other use for it.
"""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path
from typing import Final

_NO_CHECK_TIME: Final = ssl.VerifyFlags(0x200000)
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which ssl does not name: expired ones are read as well."""

_ROUNDS: Final = 10
"""A handshake has three at most; without a limit a fault would block the event loop."""


def read_expiration(certificate: Path, key: Path) -> float:
    """Return the Unix time at which the first certificate of the file expires.

    Raises ssl.SSLError if no client would accept it as that of a server.
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(certificate)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    fields = _shake_hands(client, server).getpeercert()
    assert fields, "a verified peer has a certificate"
    return float(ssl.cert_time_to_seconds(str(fields["notAfter"])))


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> ssl.SSLObject:
    """Return the client's side of a connection as soon as it has verified the server's."""
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
