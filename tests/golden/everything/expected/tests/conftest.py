"""Fixtures of all tests."""

from __future__ import annotations

import pytest
from capsmith_runtime.infrastructure import Credentials

from capn.client import Client, ClientFactory

CREDENTIALS = Credentials(
    {"username": "secret", "password": "secret"},
    "test",
    kind="NimbusIdentity",
)


@pytest.fixture
def client() -> Client:
    """The client that a reconciler gets in a unit test: pass it to a builder as ``session``."""
    return ClientFactory().open(CREDENTIALS)
