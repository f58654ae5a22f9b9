"""The lowest TLS version and the cipher suites of the manager's servers, by the names of Go."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
"""Accepted minimum versions; older ones are deprecated by RFC 8996."""
CIPHER_SUITES: Final[Mapping[str, str]] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""OpenSSL's names of the cipher suites for TLS 1.2 that Go's servers offer."""
CIPHER_SUITES_OF_TLS_1_3: Final = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
"""Suites of TLS 1.3, which always offers all of them, in Go as in Python."""


@dataclass(frozen=True, slots=True)
class TLSOptions:
    """What the manager's servers accept from clients."""

    minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    """The default is that of Go's servers, such as core's webhooks."""
    ciphers: str = ""
    """Cipher suites for TLS 1.2 in OpenSSL's format; empty for Python's default."""

    def apply(self, context: ssl.SSLContext) -> None:
        """Limit a server's context to these options."""
        context.minimum_version = self.minimum_version
        if self.ciphers:
            context.set_ciphers(self.ciphers)


DEFAULT_TLS: Final = TLSOptions()


def parse_tls_version(text: str) -> ssl.TLSVersion:
    """Return the version that Go calls ``text``.

    Raises ValueError for any other string.
    """
    if text not in VERSIONS:
        raise ValueError(f"{text!r} is none of {', '.join(VERSIONS)}")
    return VERSIONS[text]


def parse_cipher_suites(text: str) -> str:
    """Return comma-separated cipher suites of Go in OpenSSL's format; empty for the default.

    Raises ValueError if a name is unknown, or if no suite is left for TLS 1.2.
    """
    names = [name.strip() for name in text.split(",")] if text else []
    known = (*CIPHER_SUITES, *CIPHER_SUITES_OF_TLS_1_3)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    ciphers = [CIPHER_SUITES[name] for name in names if name in CIPHER_SUITES]
    if names and not ciphers:
        raise ValueError("no suite for TLS 1.2; for TLS 1.3 only, use --tls-min-version")
    return ":".join(dict.fromkeys(ciphers))
