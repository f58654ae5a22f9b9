"""URLs are parsed as Go's `net/url` parses them; the results below are Go's."""

from __future__ import annotations

import pytest

from capsmith.manifests.go_url import GoUrl, parse_url


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://h:443/p?q=1#f", GoUrl("https", "h:443", False, "q=1", "f")),
        ("HTTPS://é.example", GoUrl("https", "é.example", False, "", "")),
        ("http://u:p@h/", GoUrl("http", "h", True, "", "")),
        ("https://@h", GoUrl("https", "h", True, "", "")),
        ("https://[::1]:80/", GoUrl("https", "[::1]:80", False, "", "")),
        ("https://[fe80::1%25e%20x]", GoUrl("https", "[fe80::1%25e%20x]", False, "", "")),
        ("https://h:99999", GoUrl("https", "h:99999", False, "", "")),
        ("https://h:", GoUrl("https", "h:", False, "", "")),
        ("ftp://a:1:2", GoUrl("ftp", "a:1:2", False, "", "")),
        ("mailto:a@b", GoUrl("mailto", "", False, "", "")),
        ("///p", GoUrl("", "", False, "", "")),
        ("https:///p", GoUrl("https", "", False, "", "")),
        ("#a\tb", GoUrl("", "", False, "", "a\tb")),
        ("", GoUrl("", "", False, "", "")),
    ],
)
def test_what_go_parses_is_parsed(text: str, expected: GoUrl) -> None:
    assert parse_url(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        " https://h",
        "https://h\n",
        "https://h /p",
        "https://h\\x",
        "https://h/%zz",
        "https://h%41",
        "https://h:port",
        "https://h:1:2",
        "https://[::1",
        "https://a[::1]",
        "https://[1.2.3.4]",
        "https://[::1%eth0]",
        "https://[fe80::1%25]",
        "https://u<@h",
        "1http://h",
        ":80/p",
        "h_x:80/p",
    ],
)
def test_what_go_refuses_is_refused(text: str) -> None:
    assert parse_url(text) is None
