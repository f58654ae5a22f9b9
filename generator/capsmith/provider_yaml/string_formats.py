"""Check strings against the formats that schemas name, as the API server does.

Source: k8s.io/kube-openapi/pkg/validation/strfmt.  For e-mail addresses with names or comments, and
for hosts of URIs, Go's parsers are stricter than these checks: an invalid string may pass, but a
valid one is never refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from ipaddress import AddressValueError, IPv6Address

from capsmith.provider_yaml.patterns import has_match

_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_GO_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)T([01]?\d|2[0-3]):[0-5]\d:[0-5]\d([.,]\d+)?"
    r"(Z|[+-](?:[01]\d|2[0-4]):(?:[0-5]\d|60))",
    re.ASCII,
)


def is_duration(text: str) -> bool:
    """Return whether ``text`` has the syntax that Go's ``time.ParseDuration`` accepts.

    Durations that are too large for Go are accepted as well.
    """
    return _DURATION.fullmatch(text) is not None


def is_timestamp(text: str) -> bool:
    """Return whether ``text`` is an RFC 3339 time with a time zone, as Go parses it."""
    match = _GO_TIME.fullmatch(text)
    return match is not None and is_date(match[1])


def is_date(text: str) -> bool:
    """Return whether ``text`` is a valid calendar date such as 2030-01-31. As in Go, year 0 is
    allowed."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return False
    try:
        # Like 2000, the year 0 is a leap year.
        date.fromisoformat(("2000" if text.startswith("0000") else text[:4]) + text[4:])
    except ValueError:
        return False
    return True


_BYTE = "[0-9a-fA-F]{2}"
_PATTERNS: Mapping[str, str] = {
    "bsonobjectid": "^[0-9a-fA-F]{24}$",
    "byte": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$",
    "hexcolor": "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
    "mac": (
        rf"^(?:{_BYTE}(?::{_BYTE}){{5}}(?:(?::{_BYTE}){{2}}|(?::{_BYTE}){{14}})?"
        rf"|{_BYTE}(?:-{_BYTE}){{5}}(?:(?:-{_BYTE}){{2}}|(?:-{_BYTE}){{14}})?"
        r"|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2}(?:\.[0-9a-fA-F]{4}|(?:\.[0-9a-fA-F]{4}){7})?"
        "|[0-9a-fA-F]{12}|[0-9a-fA-F]{16}|[0-9a-fA-F]{40})$"
    ),
    "rgbcolor": (
        r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
        r"\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$"
    ),
    "uuid": "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
    "uuid3": "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
    "uuid4": "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
    "uuid5": "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
}
_HOSTNAME = (
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)"
    r"|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\p{S}\p{L}-]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}"
    r"([a-zA-Z\p{L}]){2,63})$"
)
_CARD = (
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_SHORT_NAME = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_IPV4 = r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})"
_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})"
_AMOUNT = re.compile(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)")
_LARGEST_AMOUNT, _DIGITS = 2**63 - 1, 1000
_UNITS = frozenset(["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"])
_LONG_UNITS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
"""Units that may have an ending, such as that of the plural."""
# Classes by what is not in them: Python compiles those of all higher characters slowly.
_ATOM = r'[^\x00-\x20"(),.:;<>@\[\\\]\x7f]+'
_ADDRESS = re.compile(rf"[ \t]*{_ATOM}(?:\.{_ATOM})*@[ \t]*{_ATOM}(?:\.{_ATOM})*[ \t]*")
_PAIRS = (("(", ")"), ("<", ">"), ("[", "]"), ('"', '"'), ("=?", "?="))
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_BAD_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_HOST = re.compile(r"(?:[^\x00-\x20#/?@\\^`{|}\x7f]*:)?[0-9]*|[^\x00-\x20#/:?@\\^`{|}\x7f]*")
_ADDRESS_HOST = re.compile(r"\[.*\](?::[0-9]*)?")


def is_of_format(name: str, text: str) -> bool:
    """Return whether the API server accepts ``text`` for the string format ``name``.

    Always returns True for formats that the API server does not check.
    """
    normalized = name.replace("-", "")
    pattern = _PATTERNS.get(normalized)
    if pattern is not None:
        return has_match(pattern, text)
    check = _CHECKS.get(normalized)
    return check is None or check(text)


def _cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not re.fullmatch("[0-9]{1,6}", length):
        return False
    if _ipv4(address):
        return int(length) <= 32
    # As in addresses of version 4, zeros may come first.
    plain = re.sub(r"\b0+(?=[0-9a-fA-F])", "", address)
    return _ipv6(plain) and int(length) <= 128


def _credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]", "", text)
    doubled = [int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits))]
    checksum = sum(value - 9 if value > 9 else value for value in doubled)
    return re.fullmatch(_CARD, digits) is not None and checksum % 10 == 0


def _date_time(text: str) -> bool:
    date, separator, time = text.lower().partition("t")
    match = re.fullmatch(_TIME, time.partition("t")[0])
    if not separator or not is_date(date) or match is None:
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _duration(text: str) -> bool:
    if is_duration(text):
        return True
    found = _AMOUNT.findall(text)
    if any(len(amount) > _DIGITS or int(amount) > _LARGEST_AMOUNT for amount, _ in found):
        return False
    units = [unit.lower() for _, unit in found]
    return any(unit in _UNITS or unit.startswith(_LONG_UNITS) for unit in units)


def _email(text: str) -> bool:
    if _ADDRESS.fullmatch(text):
        return True
    # Names, comments, quotes and addresses of hosts are left to Go's parser.
    marks = [pair for pair in _PAIRS if pair[0] in text]
    if not marks or any(text.find(last, text.find(first) + 1) < 0 for first, last in marks):
        return False
    local, separator, domain = text.rpartition("@")
    return bool(separator and local.strip() and domain.strip(" >"))


def _hostname(text: str) -> bool:
    if len(text.encode()) > 255 or any(len(part.encode()) > 63 for part in text.split(".")):
        return False
    return has_match(_HOSTNAME, text)


def _ipv4(text: str) -> bool:
    match = re.fullmatch(_IPV4, text)
    return match is not None and all(int(octet) < 256 for octet in match.groups())


def _ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return "%" not in text


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(place * value for place, value in enumerate(values, start=1)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    return sum(int(digit) * (1, 3)[place % 2] for place, digit in enumerate(digits)) % 10 == 0


def _long_name(text: str) -> bool:
    return len(text) <= 253 and has_match(rf"^{_SHORT_NAME}(?:\.{_SHORT_NAME})*$", text)


def _short_name(text: str) -> bool:
    return len(text) <= 63 and has_match(f"^{_SHORT_NAME}$", text)


def _ssn(text: str) -> bool:
    return len(text) == 11 and re.fullmatch("[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}", text) is not None


def _uri(text: str) -> bool:
    """Follow ``url.ParseRequestURI``."""
    if any(ord(character) < 32 or character == "\x7f" for character in text):
        return False
    if text == "*":
        return True
    scheme = _SCHEME.match(text)
    path = text[scheme.end() if scheme else 0 :].partition("?")[0]
    if not path.startswith("/"):
        return scheme is not None
    if scheme and path.startswith("//"):
        authority, slash, path = path[2:].partition("/")
        if not _is_authority(authority):
            return False
        path = slash + path
    return _BAD_ESCAPE.search(path) is None


def _is_authority(text: str) -> bool:
    user, _, host = text.rpartition("@")
    if not _USER.fullmatch(user) or _BAD_ESCAPE.search(text):
        return False
    return (_ADDRESS_HOST if host.startswith("[") else _HOST).fullmatch(host) is not None


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "cidr": _cidr,
    "creditcard": _credit_card,
    "date": is_date,
    "datetime": _date_time,
    "duration": _duration,
    "email": _email,
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "k8slongname": _long_name,
    "k8sshortname": _short_name,
    "ssn": _ssn,
    "uri": _uri,
}
