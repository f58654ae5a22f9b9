"""When served certificates expire: real files, which are replaced while a server runs."""

from __future__ import annotations

import asyncio
import math
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capsmith_runtime.kube.certificates import CertificateFiles, Certificates, read_expiration
from capsmith_runtime.kube.http_server import Request, Response, text_response
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.webhook.options import WebhookOptions
from capsmith_runtime.webhook.server import WebhookServer
from tests.runtime.support.following import sample

KEY = ec.generate_private_key(ec.SECP256R1())
START = datetime(1950, 1, 1)
"""The first year of certificates; their last time is the end of the year 9999 (RFC 5280)."""


def write(
    folder: Path,
    expiration: datetime,
    authority: trustme.CA | None = None,
    key_type: trustme.KeyType = trustme.KeyType.ECDSA,
) -> float:
    """Write a certificate with its chain, and its key; return when it expires."""
    issued = (authority or trustme.CA()).issue_cert(
        "127.0.0.1", not_before=START, not_after=expiration, key_type=key_type
    )
    issued.private_key_pem.write_to_path(folder / "tls.key")
    chain = b"".join(each.bytes() for each in issued.cert_chain_pems)
    (folder / "tls.crt").write_bytes(chain)
    return expiration.replace(tzinfo=UTC).timestamp()


def write_self_signed(
    folder: Path,
    expiration: datetime,
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH,
) -> float:
    """Write a certificate as a self-signed issuer of cert-manager does."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(KEY.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(START).not_valid_after(expiration)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), False)
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "tls.crt").write_bytes(builder.sign(KEY, hashes.SHA256()).public_bytes(pem))
    (folder / "tls.key").write_bytes(KEY.private_bytes(pem, *plain))
    return expiration.replace(tzinfo=UTC).timestamp()


def read(folder: Path) -> float:
    return read_expiration(folder / "tls.crt", folder / "tls.key")


def shown(metrics: Metrics, server: str) -> float:
    return sample(metrics, f'certificate_expiration_timestamp_seconds{{server="{server}"}}')


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seconds=st.integers(0, int((datetime(9999, 12, 31, 23, 59, 59) - START).total_seconds())))
def test_each_time_is_read(tmp_path: Path, seconds: int) -> None:
    """Expired ones as well: those are the ones to alert on."""
    expiration = write_self_signed(tmp_path, START + timedelta(seconds=seconds))
    assert read(tmp_path) == expiration


@pytest.mark.parametrize("key_type", list(trustme.KeyType))
def test_the_first_certificate_of_a_chain_counts(tmp_path: Path, key_type: trustme.KeyType) -> None:
    intermediate = trustme.CA().create_child_ca()
    expiration = write(tmp_path, datetime(2040, 1, 2, 3, 4, 5), intermediate, key_type)
    assert (tmp_path / "tls.crt").read_text().count("BEGIN CERTIFICATE") > 1
    assert read(tmp_path) == expiration


def test_a_certificate_of_clients_only_is_refused(tmp_path: Path) -> None:
    write_self_signed(tmp_path, datetime(2040, 1, 1), ExtendedKeyUsageOID.CLIENT_AUTH)
    with pytest.raises(ssl.SSLError, match="purpose"):
        read(tmp_path)


def test_an_encrypted_key_is_refused_without_a_question(tmp_path: Path) -> None:
    """OpenSSL reads a missing password from the terminal, or else from the standard input."""
    write_self_signed(tmp_path, datetime(2040, 1, 1))
    encrypted = serialization.BestAvailableEncryption(b"secret")
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (tmp_path / "tls.key").write_bytes(KEY.private_bytes(pem, pkcs8, encrypted))
    program = f"""
from pathlib import Path
from capsmith_runtime.kube.certificates import CertificateFiles, Certificates
from capsmith_runtime.kube.metrics import Metrics
files = CertificateFiles(directory=Path({str(tmp_path)!r}))
assert not Certificates(files, Metrics(), "x").refresh()
"""
    # The standard input stays open, and without a session of its own it would be the terminal.
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_the_metric_is_that_of_the_certificate_that_is_served(tmp_path: Path) -> None:
    metrics = Metrics()
    certificates = Certificates(CertificateFiles(directory=tmp_path), metrics, "test")

    assert not certificates.refresh()
    assert b"certificate_expiration_timestamp_seconds{" not in metrics.render()
    first = write(tmp_path, datetime(2041, 1, 1))
    assert certificates.refresh()
    assert shown(metrics, "test") == first
    key = (tmp_path / "tls.key").read_bytes()
    second = write(tmp_path, datetime(2042, 1, 1))
    new_key = (tmp_path / "tls.key").read_bytes()
    (tmp_path / "tls.key").write_bytes(key)
    assert not certificates.refresh()
    assert shown(metrics, "test") == first
    (tmp_path / "tls.key").write_bytes(new_key)
    assert certificates.refresh()
    assert shown(metrics, "test") == second
    write_self_signed(tmp_path, datetime(2043, 1, 1), ExtendedKeyUsageOID.CLIENT_AUTH)
    assert certificates.refresh()
    assert math.isnan(shown(metrics, "test"))


async def test_webhooks_report_each_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capsmith_runtime.webhook.server.POLL_SECONDS", 0.01)
    metrics = Metrics()
    clients = trustme.CA()
    clients.cert_pem.write_to_path(tmp_path / "clients.crt")
    options = WebhookOptions(
        host="127.0.0.1", port=0, certificates=tmp_path, client_authority="clients.crt"
    )
    server = WebhookServer(options, metrics)
    expiration = write(tmp_path, datetime(2041, 1, 1))
    async with asyncio.timeout(60), server.listening(_respond):
        assert shown(metrics, "webhook") == expiration
        expiration = write(tmp_path, datetime(2042, 1, 1))
        await server.watch_certificate()
        assert shown(metrics, "webhook") == expiration


async def _respond(request: Request) -> Response:
    return text_response(HTTPStatus.OK)
