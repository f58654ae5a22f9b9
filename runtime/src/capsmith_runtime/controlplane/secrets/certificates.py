"""Creates and checks a cluster's certificates and keys: pure functions on PEM and times.

New keys use the curve P-256. kubeadm and all components accept such keys, and they are as strong as
RSA with 3072 bits. Generating them takes a thousandth of the time, so it never blocks a manager
with many clusters. Users' own keys may be of any type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from capsmith_runtime.controlplane.secrets.private_keys import (
    MAX_KEY_BYTES,
    PrivateKey,
    load_private_key,
)

SKEW: Final = timedelta(minutes=5)
"""Tolerated difference between the clocks of this host and other hosts."""
AUTHORITY_LIFE: Final = timedelta(days=3650)
CLIENT_LIFE: Final = timedelta(days=365)

_MAX_CERTIFICATE_BYTES: Final = 64 * 1024
"""Maximum size of a certificate: names and extensions are read on the event loop."""


class CertificateError(ValueError):
    """Raised for an unusable certificate or key; the message never contains any part of it."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Key pair in a cluster Secret, as ``tls.crt`` and ``tls.key`` in PEM (SEC-03)."""

    certificate: bytes
    """The certificate; for ServiceAccount keys, the public key."""
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(...)"


@dataclass(frozen=True, slots=True)
class Validity:
    """The period in which a certificate is valid."""

    begin: datetime
    end: datetime

    @property
    def half_life(self) -> datetime:
        """Return the time halfway through the validity period."""
        return self.begin + (self.end - self.begin) / 2


def create_authority(common_name: str, now: datetime) -> KeyPair:
    """Create a self-signed CA that cannot sign certificates for other CAs."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    usage = _usage(digital_signature=True, key_encipherment=True, key_cert_sign=True)
    validity = Validity(now - SKEW, now + AUTHORITY_LIFE)
    builder = (
        _builder(name, name, key.public_key(), validity)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return KeyPair(_pem(builder.sign(key, hashes.SHA256())), _private_pem(key))


def create_signing_keys() -> KeyPair:
    """Create a key pair that signs and verifies ServiceAccount tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return KeyPair(public, _private_pem(key))


def sign_client(
    authority: KeyPair,
    common_name: str,
    organizations: Sequence[str],
    now: datetime,
    life: timedelta = CLIENT_LIFE,
) -> KeyPair:
    """Create a client certificate that expires no later than the CA that signs it.

    Raises CertificateError if ``authority`` cannot sign.
    """
    issuer, signer = _usable_authority(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    subject = x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    validity = Validity(now - SKEW, min(now + life, issuer.not_valid_after_utc))
    if validity.end <= now:
        raise CertificateError("the certificate authority has expired")
    usage = _usage(digital_signature=True, key_encipherment=True, key_cert_sign=False)
    builder = (
        _builder(subject, issuer.subject, key.public_key(), validity)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(_authority_identifier(issuer), critical=False)
    )
    # EdDSA includes its hash; the library rejects any other with these keys.
    edwards = isinstance(signer, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey)
    signed = builder.sign(signer, None if edwards else hashes.SHA256())
    return KeyPair(_pem(signed), _private_pem(key))


def read_validity(certificate: bytes) -> Validity:
    """Return the validity period of the first certificate in a PEM bundle.

    Raises CertificateError if the bundle has no certificate.
    """
    first = _certificate(certificate)
    return Validity(first.not_valid_before_utc, first.not_valid_after_utc)


def check_authority(pair: KeyPair) -> None:
    """Raise CertificateError unless ``pair`` can sign certificates."""
    _usable_authority(pair)


def check_trust(certificate: bytes) -> None:
    """Raise CertificateError unless ``certificate`` is a CA certificate."""
    _authority(certificate)


def check_signing_keys(pair: KeyPair) -> None:
    """Raise CertificateError unless ``pair`` is a public key with its private key."""
    expected = _spki(_private_key(pair.key))
    if len(pair.certificate) > MAX_KEY_BYTES:
        raise CertificateError(f"the public key has more than {MAX_KEY_BYTES} bytes")
    try:
        public = serialization.load_pem_public_key(pair.certificate).public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    except (ValueError, UnsupportedAlgorithm):
        # Components also accept a certificate of the public key.
        public = _certificate_spki(_certificate(pair.certificate))
    if public != expected:
        raise CertificateError("the public key does not match the private key")


def is_signed_by(certificate: bytes, authority: bytes) -> bool:
    """Return whether ``authority`` signed ``certificate``, even if either has expired.

    Raises CertificateError if one of them is not a certificate.
    """
    try:
        _certificate(certificate).verify_directly_issued_by(_certificate(authority))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, validity: Validity
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity.begin)
        .not_valid_after(validity.end)
    )


def _usage(
    *, digital_signature: bool, key_encipherment: bool, key_cert_sign: bool
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=key_encipherment,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_identifier(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        # A user's CA may lack the identifier, which RFC 5280 derives from its key.
        own = x509.SubjectKeyIdentifier(
            x509.SubjectKeyIdentifier.from_public_key(issuer.public_key()).digest
        )
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _usable_authority(pair: KeyPair) -> tuple[x509.Certificate, PrivateKey]:
    certificate, key = _authority(pair.certificate), _private_key(pair.key)
    if _spki(key) != _certificate_spki(certificate):
        raise CertificateError("the key does not match the certificate")
    return certificate, key


def _authority(pem: bytes) -> x509.Certificate:
    certificate = _certificate(pem)
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except (x509.ExtensionNotFound, ValueError):
        raise CertificateError("the certificate is not a CA certificate") from None
    if not constraints.ca:
        raise CertificateError("the certificate is not a CA certificate")
    return certificate


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        first = x509.load_pem_x509_certificates(pem)[0]
    except (ValueError, IndexError):
        raise CertificateError("no PEM certificate found") from None
    if len(_der(first)) > _MAX_CERTIFICATE_BYTES:
        raise CertificateError(f"the certificate has more than {_MAX_CERTIFICATE_BYTES} bytes")
    return first


def _private_key(pem: bytes) -> PrivateKey:
    try:
        return load_private_key(pem)
    except ValueError as error:
        raise CertificateError(str(error)) from None


def _spki(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _certificate_spki(certificate: x509.Certificate) -> bytes:
    try:
        return certificate.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    except (ValueError, UnsupportedAlgorithm):
        raise CertificateError("the public key of the certificate cannot be used") from None


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # The format that kubeadm writes; old parsers can read it.
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
