"""The minimum TLS version and the cipher suites for the manager's servers, by their Go names."""

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
"""Maps Go's names of its TLS 1.2 server cipher suites to the names that OpenSSL uses."""
CIPHER_SUITES_OF_TLS_1_3: Final = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
"""TLS 1.3 cipher suites, which cannot be selected: Go and Python always offer all of them."""


@dataclass(frozen=True, slots=True)
class TLSOptions:
    """The TLS versions and cipher suites that the manager's servers accept."""

    minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    """Minimum TLS version; the default is the same as for core's webhooks."""
    ciphers: str = ""
    """TLS 1.2 cipher suites as an OpenSSL cipher string, or empty for Python's default."""

    def apply(self, context: ssl.SSLContext) -> None:
        """Set the minimum version and the cipher suites on a server's TLS context."""
        context.minimum_version = self.minimum_version
        if self.ciphers:
            context.set_ciphers(self.ciphers)


DEFAULT_TLS: Final = TLSOptions()


def parse_tls_version(text: str) -> ssl.TLSVersion:
    """Return the TLS version for a name that Go uses, such as ``VersionTLS12``.

    Raises ValueError for any other string.
    """
    if text not in VERSIONS:
        raise ValueError(f"{text!r} is not one of {', '.join(VERSIONS)}")
    return VERSIONS[text]


def parse_cipher_suites(text: str) -> str:
    """Convert comma-separated Go cipher suite names to an OpenSSL cipher string.

    The result is empty, which means the default, if no suites are named. Raises ValueError if a
    name is unknown, or if no suite is left for TLS 1.2.
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
