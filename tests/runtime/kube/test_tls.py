"""The lowest TLS version and the cipher suites that servers accept."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from capsmith_runtime.kube.certificates import CertificateFiles, Certificates
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.tls import CIPHER_SUITES, DEFAULT_TLS, TLSOptions, parse_cipher_suites
from tests.runtime.webhook.hook_serving import trusting, write_certificate


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def connect(folder: Path, tls: TLSOptions, client: ssl.SSLContext) -> tuple[str, str]:
    """Shake hands in memory; return the protocol and the cipher suite."""
    return shake_hands(load(folder, tls), client)


def load(folder: Path, tls: TLSOptions = DEFAULT_TLS) -> Certificates:
    certificates = Certificates(CertificateFiles(directory=folder), Metrics(), "webhook", tls)
    assert certificates.refresh()
    return certificates


def shake_hands(certificates: Certificates, client: ssl.SSLContext) -> tuple[str, str]:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    far = certificates.server_context().wrap_bio(to_server, to_client, server_side=True)
    for side in (near, far) * 3:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    cipher, protocol = near.cipher(), near.version()
    assert cipher
    assert protocol
    return protocol, cipher[0]


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
def test_a_server_starts_while_its_files_are_replaced(
    tmp_path: Path, authority: trustme.CA, name: str
) -> None:
    """Its certificate is the one that was found usable, not what the files contain meanwhile."""
    write_certificate(tmp_path, authority)
    certificates = load(tmp_path)
    (tmp_path / name).write_text("-----BEGIN")

    assert shake_hands(certificates, trusting(authority))[0] == "TLSv1.3"


def test_older_versions_are_refused(tmp_path: Path, authority: trustme.CA) -> None:
    write_certificate(tmp_path, authority)
    client = trusting(authority)
    client.maximum_version = ssl.TLSVersion.TLSv1_2

    assert connect(tmp_path, TLSOptions(), client)[0] == "TLSv1.2"
    with pytest.raises(ssl.SSLError):
        connect(tmp_path, TLSOptions(ssl.TLSVersion.TLSv1_3), client)


def test_only_the_given_suites_are_offered(tmp_path: Path, authority: trustme.CA) -> None:
    write_certificate(tmp_path, authority)
    client = trusting(authority)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    names = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    ciphers = parse_cipher_suites(",".join(names))

    assert connect(tmp_path, TLSOptions(ciphers=ciphers), client)[1] in ciphers
    client.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384")
    with pytest.raises(ssl.SSLError):
        connect(tmp_path, TLSOptions(ciphers=ciphers), client)


@pytest.mark.parametrize("name", CIPHER_SUITES)
def test_openssl_knows_each_suite(name: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    TLSOptions(ciphers=parse_cipher_suites(name)).apply(context)

    assert parse_cipher_suites(name) in [each["name"] for each in context.get_ciphers()]
