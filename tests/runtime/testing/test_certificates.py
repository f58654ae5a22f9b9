"""Certificates of Clusters in the kit: what a provider that reads or issues some can use."""

from __future__ import annotations

import base64
import sys
import textwrap
from collections.abc import Iterator

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from capsmith_runtime.testing.bootstrap.certificates import PURPOSES, certificate_of, has_key


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    certificate_of.cache_clear()
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ec", None)
    yield
    certificate_of.cache_clear()


@pytest.mark.parametrize("purpose", ["ca", "etcd", "proxy"])
def test_authorities_are_valid(purpose: str) -> None:
    (known,) = (each for each in PURPOSES if each == purpose)
    pair = certificate_of(known)
    assert pair.private_key is not None
    found = x509.load_pem_x509_certificate(pair.certificate.encode())
    key = serialization.load_pem_private_key(pair.private_key.encode(), None)
    found.verify_directly_issued_by(found)
    assert found.public_key() == key.public_key()
    assert found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_service_accounts_have_a_pair_of_keys() -> None:
    pair = certificate_of("sa")
    assert pair.private_key is not None
    public = serialization.load_pem_public_key(pair.certificate.encode())
    assert (
        serialization.load_pem_private_key(pair.private_key.encode(), None).public_key() == public
    )


@pytest.mark.usefixtures("without_library")
def test_a_provider_without_the_library_gets_other_texts() -> None:
    assert certificate_of("ca").certificate == "certificate of ca\n"
    assert certificate_of("ca").private_key == "private key of ca\n"


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_key_is_found_in_data(purpose: str) -> None:
    (known,) = (each for each in PURPOSES if each == purpose)
    key = certificate_of(known).private_key
    assert key is not None
    for leak in (key, textwrap.indent(key, "    "), base64.b64encode(key.encode()).decode()):
        assert has_key(f"a: {leak}".encode(), known)
    assert not has_key(certificate_of(known).certificate.encode(), known)
