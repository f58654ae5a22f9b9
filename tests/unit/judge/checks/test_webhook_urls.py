"""Addresses of webhooks are judged as the API server judges them, and none ends `verify`."""

from __future__ import annotations

import pytest

from capsmith.judge.checks.apiextensions.definition import find_client_faults


@pytest.mark.parametrize("url", ["https://h", "https://h:99999/a", "https://[::1]:443/"])
def test_addresses_that_are_accepted(url: str) -> None:
    assert not list(find_client_faults({"url": url}))


@pytest.mark.parametrize(
    "url",
    [
        *("https://[::1", "https://h:port", " https://h", "https://h\n", "https://h /"),
        *("http://h", "https:///p", "https://@h", "https://h?a", "https://h#a", "h", "", 5),
    ],
)
def test_addresses_that_are_refused(url: object) -> None:
    (fault,) = find_client_faults({"url": url})
    assert "is not of the form https://host[/path]" in fault.message
