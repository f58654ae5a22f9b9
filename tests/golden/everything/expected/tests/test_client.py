"""Unit test of the client of the SDK."""

from __future__ import annotations

from capn.client import SDK, Client


def test_the_sdk_is_installed() -> None:
    assert SDK.__name__ == "requests"


def test_the_client_belongs_to_its_identity(client: Client) -> None:
    assert client.identity == "test"
