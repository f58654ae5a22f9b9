"""Parse URLs as Go's ``net/url`` does.

Python's parser drops line breaks and leading spaces, accepts hosts and escapes that Go refuses, and
raises for some of what it cannot parse.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple

_CONTROL = re.compile("[\x00-\x1f\x7f]")
_SCHEME = re.compile("([A-Za-z][A-Za-z0-9+.-]*):")
_NO_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*(?![A-Za-z0-9+.:-])|(?![A-Za-z:])")
_BAD_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")
# Only bytes of characters outside ASCII, and the percent sign, may be escaped in a host.
_BAD_HOST_ESCAPE = re.compile("%(?!25|[89a-fA-F][0-9a-fA-F])")
_BAD_HOST = re.compile(r"[ #/?@\\^`{|}]")
_ZONE_ESCAPE = re.compile("%[2-7][0-9a-fA-F]")
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_PORT = re.compile("(?::[0-9]*)?")


class GoUrl(NamedTuple):
    """The parts of a URL that checks need."""

    scheme: str
    host: str
    """Host and port as written, without the user."""
    has_user: bool
    """Whether a user precedes the host, even an empty one."""
    query: str
    fragment: str


def parse_url(text: str) -> GoUrl | None:
    """Return the parts of a URL, or None if Go cannot parse it."""
    address, _, fragment = text.partition("#")
    if _CONTROL.search(address) or _BAD_ESCAPE.search(fragment):
        return None
    match = _SCHEME.match(address)
    if match is None and not _NO_SCHEME.match(address):
        return None
    scheme = match[1].lower() if match else ""
    rest, _, query = address[match.end() if match else 0 :].partition("?")
    if not rest.startswith("/"):
        # Without a slash, all that follows a scheme is one value; a colon would look like a scheme.
        if not scheme and (":" in rest.partition("/")[0] or _BAD_ESCAPE.search(rest)):
            return None
        return GoUrl(scheme, "", False, query, fragment)
    user, at, host = "", "", ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        user, at, host = authority.rpartition("@")
        rest = slash + path
    if not _USER.fullmatch(user) or _BAD_ESCAPE.search(user) or _BAD_ESCAPE.search(rest):
        return None
    return GoUrl(scheme, host, bool(at), query, fragment) if _is_host(scheme, host) else None


def _is_host(scheme: str, host: str) -> bool:
    if "[" in host:
        return _is_literal(host)
    first, last = host.find(":"), host.rfind(":")
    # For other schemes, Go allows colons in hosts.
    port = host[first if scheme in ("http", "https") else last :] if first >= 0 else ""
    return _PORT.fullmatch(port) is not None and _is_name(host)


def _is_name(host: str) -> bool:
    return not _BAD_HOST.search(host) and not _BAD_HOST_ESCAPE.search(host)


def _is_literal(host: str) -> bool:
    """Return whether a host with an opening bracket is an IPv6 address, with a port or without."""
    literal, bracket, port = host.rpartition("]")
    if not bracket or host.rfind("[") > 0 or not _PORT.fullmatch(port):
        return False
    address, percent, zone = literal[1:].partition("%25")
    # Python would take what follows another escape for a zone.
    if "%" in address or not _is_name(address) or (percent and not _is_zone(zone)):
        return False
    try:
        IPv6Address(address)
    except AddressValueError:
        return False
    return True


def _is_zone(zone: str) -> bool:
    return bool(zone) and not _BAD_HOST.search(zone) and not _ZONE_ESCAPE.sub("", zone).count("%")
