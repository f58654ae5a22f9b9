"""Certificates in an OpenSSL handshake, and keys in the formats of users."""

from __future__ import annotations

import base64
import math
import random
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from capsmith_runtime.controlplane.secrets.certificates import (
    CertificateError,
    KeyPair,
    check_authority,
    check_signing_keys,
    check_trust,
    create_authority,
    create_signing_keys,
    is_signed_by,
    read_validity,
    sign_client,
)

NOW = datetime.now(UTC).replace(microsecond=0)
AUTHORITY = create_authority("kubernetes", NOW)
SERVER = trustme.CA()


def new_client(authority: KeyPair = AUTHORITY, now: datetime = NOW) -> KeyPair:
    return sign_client(authority, "kubernetes-admin", ["system:masters"], now)


def subject_that_a_server_sees(folder: Path, trusted: bytes, pair: KeyPair) -> dict[str, str]:
    """Return the client subject of a handshake in memory; raises the server's ssl.SSLError."""
    # As an API server verifies: Python's default is stricter than Go since 3.13.
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    connecting = ssl.create_default_context()
    SERVER.configure_trust(connecting)
    SERVER.issue_cert("server.test").configure_cert(serving)
    serving.verify_mode = ssl.CERT_REQUIRED
    serving.load_verify_locations(cadata=trusted.decode())
    cert, key = folder / "tls.crt", folder / "tls.key"
    cert.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    connecting.load_cert_chain(cert, key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    a = connecting.wrap_bio(to_client, to_server, server_hostname="server.test")
    b = serving.wrap_bio(to_server, to_client, server_side=True)
    for side in (a, b, a, b):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = b.getpeercert()
    assert found is not None
    subject: Any = found["subject"]
    return {name: value for part in subject for name, value in part}


def test_a_server_identifies_the_client_by_its_certificate(tmp_path: Path) -> None:
    subject = subject_that_a_server_sees(tmp_path, AUTHORITY.certificate, new_client())

    assert subject == {"organizationName": "system:masters", "commonName": "kubernetes-admin"}


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (
            new_client(create_authority("kubernetes", NOW)),
            "unable to get local issuer|signature failure",
        ),
        (new_client(now=NOW - timedelta(days=366)), "certificate has expired"),
        (new_client(now=NOW + timedelta(days=1)), "not yet valid"),
    ],
    ids=["of another authority", "expired", "of the future"],
)
def test_untrusted_and_expired_clients_are_refused(
    tmp_path: Path, pair: KeyPair, message: str
) -> None:
    with pytest.raises(ssl.SSLError, match=message):
        subject_that_a_server_sees(tmp_path, AUTHORITY.certificate, pair)


def test_clocks_may_be_five_minutes_behind(tmp_path: Path) -> None:
    ahead = NOW + timedelta(minutes=4)
    authority = create_authority("kubernetes", ahead)

    assert subject_that_a_server_sees(tmp_path, authority.certificate, new_client(authority, ahead))


def test_validity_periods() -> None:
    authority, signed = read_validity(AUTHORITY.certificate), read_validity(
        new_client().certificate
    )

    assert authority.end == NOW + timedelta(days=3650)
    assert signed.end == NOW + timedelta(days=365)
    assert signed.begin == NOW - timedelta(minutes=5)
    assert NOW + timedelta(days=182) < signed.half_life < NOW + timedelta(days=183)


def test_no_certificate_outlives_its_authority() -> None:
    late = read_validity(AUTHORITY.certificate).end - timedelta(days=30)

    assert read_validity(new_client(now=late).certificate).end == late + timedelta(days=30)
    with pytest.raises(CertificateError, match="expired"):
        new_client(now=late + timedelta(days=31))


def user_authority(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey,
    *extensions: x509.ExtensionType,
) -> KeyPair:
    """Return an authority of a user: another key type and format, no key identifier."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "own")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=100))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    edwards = isinstance(key, ed25519.Ed25519PrivateKey)
    certificate = builder.sign(key, None if edwards else hashes.SHA256())
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), pem(key))


def pem(
    key: PrivateKeyTypes,
    password: bytes = b"",
) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        (
            serialization.BestAvailableEncryption(password)
            if password
            else serialization.NoEncryption()
        ),
    )


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 2048),
        ec.generate_private_key(ec.SECP384R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ],
    ids=["RSA", "P-384", "Ed25519"],
)
def test_authorities_of_users_can_sign(
    tmp_path: Path, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
) -> None:
    """Proves: SEC-03."""
    authority = user_authority(key)

    check_authority(authority)

    assert subject_that_a_server_sees(tmp_path, authority.certificate, new_client(authority))


def test_invalid_authorities_are_refused() -> None:
    """Proves: SEC-03."""
    key = rsa.generate_private_key(65537, 2048)
    good = user_authority(key)
    broken = {
        "no PEM certificate": KeyPair(b"", good.key),
        "no unencrypted PEM private key": KeyPair(good.certificate, pem(key, b"secret")),
        "no unencrypted PEM private": KeyPair(good.certificate, b"nonsense"),
        "does not match the certificate": KeyPair(good.certificate, AUTHORITY.key),
        "not a CA certificate": new_client(),
    }

    for message, pair in broken.items():
        with pytest.raises(CertificateError, match=message):
            check_authority(pair)
        with pytest.raises(CertificateError, match=message):
            new_client(pair)


def rsa_key(p: int, q: int) -> bytes:
    """Return an RSA key in PEM whose factors need not be prime."""
    e, phi = 65537, (p - 1) * (q - 1)
    d = pow(e, -1, phi)
    public = rsa.RSAPublicNumbers(e, p * q)
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public)
    return pem(numbers.private_key(unsafe_skip_rsa_key_validation=True))


def same_factors() -> bytes:
    """Return an RSA key that has one of its factors twice."""
    key = rsa.generate_private_key(65537, 2048)
    p, q = (each.to_bytes(128) for each in (key.private_numbers().p, key.private_numbers().q))
    encoded = key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).replace(p, q)
    body = base64.encodebytes(encoded).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n".encode()


def long_exponent() -> bytes:
    """Return an RSA key that signs correctly, but whose exponent is four times as long.

    The library refuses to create such a key, but loads it.
    """
    key = rsa.generate_private_key(65537, 2048).private_numbers()
    modulus, exponent = key.public_numbers.n, key.public_numbers.e
    d = key.d + ((key.p - 1) * (key.q - 1) << 6000)
    numbers = (0, modulus, exponent, d, key.p, key.q, key.dmp1, key.dmq1, key.iqmp)
    encoded = _der(b"\x30", b"".join(_der(b"\x02", _bytes_of(each)) for each in numbers))
    body = base64.encodebytes(encoded).decode()
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\n".encode()


def _bytes_of(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1)


def _der(tag: bytes, content: bytes) -> bytes:
    """Return a DER value."""
    size = len(content)
    if size < 128:
        return tag + bytes([size]) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8)
    return tag + bytes([128 | len(octets)]) + octets + content


def composites(bits: int) -> tuple[int, int]:
    """Return two numbers that an RSA key can have as factors although they are not prime."""
    numbers, small = random.Random(bits), math.prod(range(1, 1000, 2))
    while True:
        p, q = (numbers.getrandbits(bits) | 1 | 3 << bits - 2 for _ in range(2))
        if math.gcd(p * q, small) == math.gcd((p - 1) * (q - 1), 65537) == math.gcd(p, q) == 1:
            return p, q


@pytest.mark.parametrize(
    ("key", "message"),
    [
        # OpenSSL would test for minutes or hours whether the factors are prime.
        (rsa_key(*composites(4100)), "at most 8192 bits"),
        (rsa_key(*composites(1024)), "do not match each other"),
        (same_factors(), "do not match each other"),
        (rsa_key(3, composites(2048)[0]), "do not match each other"),
        (long_exponent(), "do not match each other"),
        (pem(dsa.generate_private_key(2048)), "found that can sign"),
        (pem(x25519.X25519PrivateKey.generate()), "found that can sign"),
        (AUTHORITY.key + 16 * 1024 * b"\n", "more than 16384 bytes"),
    ],
    ids=[
        "size",
        "not prime",
        "same factors",
        "small factor",
        "long exponent",
        "DSA",
        "X25519",
        "bytes",
    ],
)
def test_keys_that_would_block_the_event_loop_are_refused(key: bytes, message: str) -> None:
    for check in (check_authority, check_signing_keys):
        with pytest.raises(CertificateError, match=message):
            check(KeyPair(AUTHORITY.certificate, key))


def test_certificates_that_would_block_the_event_loop_are_refused() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName(f"{number}.test") for number in range(10_000)]
    large = user_authority(key, x509.SubjectAlternativeName(names))
    with pytest.raises(CertificateError, match="the certificate has more than 65536 bytes"):
        check_authority(large)
    with pytest.raises(CertificateError, match="the public key has more than 16384 bytes"):
        check_signing_keys(KeyPair(100 * AUTHORITY.certificate, AUTHORITY.key))


def test_an_authority_whose_public_key_is_unknown_is_refused() -> None:
    certificate = x509.load_pem_x509_certificate(AUTHORITY.certificate)
    curve = bytes.fromhex("2a8648ce3d030107")
    encoded = certificate.public_bytes(serialization.Encoding.DER)
    changed = x509.load_der_x509_certificate(encoded.replace(curve, curve[:-1] + b"\x7f"))
    unknown = changed.public_bytes(serialization.Encoding.PEM)
    with pytest.raises(CertificateError, match="public key of the certificate cannot be used"):
        check_authority(KeyPair(unknown, AUTHORITY.key))


def test_an_authority_without_key_can_be_trusted() -> None:
    check_trust(AUTHORITY.certificate)
    with pytest.raises(CertificateError, match="not a CA certificate"):
        check_trust(new_client().certificate)


def test_the_signer_of_a_certificate_is_recognised() -> None:
    signed, other = new_client().certificate, create_authority("kubernetes", NOW).certificate

    assert is_signed_by(signed, AUTHORITY.certificate)
    assert not is_signed_by(signed, other)


def test_signing_keys_have_to_match() -> None:
    """Proves: SEC-03."""
    keys = create_signing_keys()
    check_signing_keys(keys)
    check_signing_keys(AUTHORITY)  # a certificate instead of the bare public key

    with pytest.raises(CertificateError, match="does not match the private key"):
        check_signing_keys(KeyPair(keys.certificate, create_signing_keys().key))
    with pytest.raises(CertificateError, match="no PEM certificate"):
        check_signing_keys(KeyPair(b"nonsense", keys.key))


def test_keys_are_not_in_the_representation() -> None:
    assert "PRIVATE" not in repr(AUTHORITY)
