"""Loads users' private keys, and refuses those that would block the event loop.

Users may put anything into their clusters' Secrets. OpenSSL can work for hours on a key of a few
hundred kilobytes, and no other task or thread of the process runs meanwhile.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa

PrivateKey = (
    rsa.RSAPrivateKey
    | ec.EllipticCurvePrivateKey
    | ed25519.Ed25519PrivateKey
    | ed448.Ed448PrivateKey
)
"""A key that can sign certificates."""

MAX_KEY_BYTES: Final = 16 * 1024
"""Maximum size of a key in PEM; one of RSA with 8192 bits has 6400 bytes."""
MAX_RSA_BITS: Final = 8192
_MAX_EXPONENT_BITS: Final = 32
_BLOCK: Final = re.compile(
    rb"-----BEGIN ((?:RSA |EC )?PRIVATE KEY)-----\s+([A-Za-z0-9+/=\s]+)-----END \1-----"
)
_LENGTH: Final = rb"(?:[\x00-\x7f]|\x81.|\x82..)"
_ALGORITHMS: Final = (
    rb"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01[\x01\x0a]"  # RSA, and RSA for PSS only
    rb"|\x06\x07\x2a\x86\x48\xce\x3d\x02\x01"  # elliptic curves
    rb"|\x06\x03\x2b\x65[\x70\x71]"  # Ed25519 and Ed448
)
_PKCS8: Final = re.compile(
    rb"\x30%b\x02\x01[\x00\x01]\x30%b(?:%b)" % (_LENGTH, _LENGTH, _ALGORITHMS), re.DOTALL
)
"""The beginning of a key in PKCS#8 up to its algorithm."""
_NOT_FOUND: Final = "no unencrypted PEM private key found that can sign certificates"


def load_private_key(pem: bytes) -> PrivateKey:
    """Return the first private key in a PEM file; raise ValueError if it cannot be used.

    The message never contains any part of the key.
    """
    if len(pem) > MAX_KEY_BYTES:
        raise ValueError(f"the private key has more than {MAX_KEY_BYTES} bytes")
    block = _BLOCK.search(pem)
    if block is None:
        raise ValueError(_NOT_FOUND)
    key = _load(block[1], base64.b64decode(block[2]))
    if isinstance(key, rsa.RSAPrivateKey):
        _check_rsa(key)
    return key


def _load(label: bytes, der: bytes) -> PrivateKey:
    # The library checks Diffie-Hellman groups and DSA keys while it loads them.
    if label == b"PRIVATE KEY" and not _PKCS8.match(der):
        raise ValueError(_NOT_FOUND)
    # Encoded again: the library must not read other bytes than those that are checked here.
    pem = b"-----BEGIN %b-----\n%b-----END %b-----\n" % (label, base64.encodebytes(der), label)
    try:
        # The validation tests whether the factors are prime, which takes half a second for RSA with
        # 4096 bits.
        key = serialization.load_pem_private_key(
            pem, password=None, unsafe_skip_rsa_key_validation=True
        )
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(_NOT_FOUND) from None
    if not isinstance(key, PrivateKey):
        raise ValueError(_NOT_FOUND)
    return key


def _check_rsa(key: rsa.RSAPrivateKey) -> None:
    """Raise ValueError unless the key can sign, and does so in a short time."""
    if key.key_size > MAX_RSA_BITS:
        raise ValueError(f"an RSA key may have at most {MAX_RSA_BITS} bits")
    secret = key.private_numbers()
    public = secret.public_numbers
    # Signing takes as long as the largest of the numbers requires.
    is_bounded = (
        secret.p * secret.q == public.n
        and max(secret.p, secret.q).bit_length() <= key.key_size * 2 // 3
        and max(secret.d, secret.dmp1, secret.dmq1, secret.iqmp) < public.n
        and public.e.bit_length() <= _MAX_EXPONENT_BITS
    )
    if not is_bounded or not _can_sign(key):
        raise ValueError("the numbers of the RSA key do not match each other")


def _can_sign(key: rsa.RSAPrivateKey) -> bool:
    how = padding.PKCS1v15(), hashes.SHA256()
    try:
        key.public_key().verify(key.sign(b"", *how), b"", *how)
    except (ValueError, InvalidSignature):
        return False
    return True
