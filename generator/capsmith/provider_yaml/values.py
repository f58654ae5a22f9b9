"""Check defaults, enum values and string formats against a schema, as the API server does.

Source of the formats: k8s.io/kube-openapi/pkg/validation/strfmt.  For e-mail addresses and URIs,
Go's parsers are stricter than these checks: an invalid string may pass, but a valid one is never
refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from datetime import date
from ipaddress import AddressValueError, IPv6Address
from typing import Any

from capsmith.provider_yaml.patterns import has_match
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import join_names, quote

_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_GO_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)T([01]?\d|2[0-3]):[0-5]\d:[0-5]\d([.,]\d+)?"
    r"(Z|[+-](?:[01]\d|2[0-4]):[0-5]\d)",
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


_PATTERNS: Mapping[str, str] = {
    "bsonobjectid": "^[0-9a-fA-F]{24}$",
    "byte": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$",
    "hexcolor": "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
    "mac": (
        "^(?:(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}[:-]){4}[0-9a-fA-F]{2}"
        "(?:(?:[:-][0-9a-fA-F]{2}){2}|(?:[:-][0-9a-fA-F]{2}){14})?"
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
_UNITS = r"[0-9]+\s*(?:ns|us|µs|ms|[smhdw]|hr|wk|nano|micro|milli|sec|min|hour|day|week)"


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
    return (_ipv4(address) and int(length) <= 32) or (_ipv6(address) and int(length) <= 128)


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
    return is_duration(text) or re.search(_UNITS, text, re.IGNORECASE) is not None


def _email(text: str) -> bool:
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
    if any(ord(character) < 32 or character == "\x7f" for character in text):
        return False
    return re.match(r"/|\*$|[A-Za-z][A-Za-z0-9+.-]*:", text) is not None


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


Schema = Mapping[str, Any]
Mismatch = tuple[Path, str]

_TEXT: Schema = {"type": "string", "nullable": True}
_TEXTS: Schema = {"type": "object", "nullable": True, "additionalProperties": _TEXT}
_LABEL = {**_TEXT, "maxLength": 63, "pattern": r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"}
_EMBEDDED: Schema = {
    "apiVersion": {"type": "string", "minLength": 1},
    "kind": {"type": "string", "pattern": "^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$"},
    "metadata": {
        "type": "object",
        "nullable": True,
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            **dict.fromkeys(("name", "generateName", "namespace"), _TEXT),
            "labels": {**_TEXTS, "additionalProperties": _LABEL},
            "annotations": _TEXTS,
            "finalizers": {"type": "array", "nullable": True, "items": _TEXT},
            "ownerReferences": {"type": "array", "nullable": True},
            "generation": {"type": "integer", "nullable": True},
        },
    },
}
"""Fields that the API server declares in each embedded object."""
NUMERIC_LIMITS = ("minimum", "maximum", "multipleOf")
_LARGEST_FLOAT = 3.4028234663852886e38
_CLOSE = 1e-9
_MANY = 1_000_000


def find_value_errors(value: Any, schema: Schema, path: Path = ()) -> Iterator[Mismatch]:
    """Yield (path, reason) for each place where ``value`` violates ``schema``.

    All yielded paths start with ``path``, which is the path to ``value`` itself.
    """
    if value is None:
        if not schema.get("nullable"):
            yield path, "null is not allowed: nullable is not set"
        return
    # With a type, the API server compares the type only.
    either = schema.get("x-kubernetes-int-or-string") and schema.get("type") is None
    if either and not (is_of_type(value, "integer") or isinstance(value, str)):
        yield path, "it must be an integer or a string"
        return
    if (expected := schema.get("type")) and not is_of_type(value, expected):
        yield path, f"it must be {_article(expected)}"
        return
    if schema.get("enum") and make_json_key(value) not in map(make_json_key, schema["enum"]):
        yield path, "it is not a value of the enum"
    if isinstance(value, str):
        yield from _text(value, schema, path)
    elif isinstance(value, list):
        yield from _list(value, schema, path)
    elif isinstance(value, Mapping):
        yield from _object(value, schema, path)
    elif not isinstance(value, bool):
        yield from _number(value, schema, path)
    yield from _junctors(value, schema, path)


def is_of_type(value: Any, name: str) -> bool:
    """Return whether a YAML value has the JSON type ``name``. Booleans are not numbers."""
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    kinds = {"string": str, "boolean": bool, "object": dict, "array": list}
    return isinstance(value, kinds.get(name, ()))


def make_json_key(value: Any) -> Hashable:
    """Return a key that is the same for values that are equal in JSON, where ``true`` is not 1."""
    if isinstance(value, Mapping):
        return frozenset((key, make_json_key(below)) for key, below in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(make_json_key, value))
    return isinstance(value, bool), value


def _junctors(value: Any, schema: Schema, path: Path) -> Iterator[Mismatch]:
    for limits in schema.get("allOf", ()):
        yield from _find_nested_errors(value, limits, schema, path)
    for key, allowed, words in (
        ("anyOf", range(1, _MANY), "at least one"),
        ("oneOf", range(1, 2), "exactly one"),
    ):
        if key in schema:
            fitting = sum(_fits(value, limits, schema) for limits in schema[key])
            if fitting not in allowed:
                yield path, f"it matches {fitting} of {key}, which requires {words}"
    if "not" in schema and _fits(value, schema["not"], schema):
        yield path, "it matches the schema in `not`"


def _fits(value: Any, limits: Schema, schema: Schema) -> bool:
    return not any(_find_nested_errors(value, limits, schema, ()))


def _find_nested_errors(
    value: Any, limits: Schema, schema: Schema, path: Path
) -> Iterator[Mismatch]:
    """Yield the errors of a value in limits of allOf, anyOf, oneOf or not."""
    form = limits.get("format")
    # Without a type beside it, a format is for texts and lists.
    if form and not limits.get("type") and not isinstance(value, str | list):
        yield path, f"it does not match the format {quote(form)}"
    yield from find_value_errors(value, _complete(limits, schema), path)


def _complete(limits: Schema, schema: Schema) -> Schema:
    """Return ``limits`` with the type in ``schema``, the schema of the field that has them.

    The limits themselves do not declare fields.
    """
    # Limits in allOf, anyOf, oneOf and not restrict a field that is declared elsewhere: they do not
    # declare nulls or further properties, so both are left to the field.
    complete = {**limits, "nullable": True, "x-kubernetes-preserve-unknown-fields": True}
    complete.pop("additionalProperties", None)
    for key in ("type", "x-kubernetes-int-or-string"):
        if key in schema:
            complete.setdefault(key, schema[key])
    if "items" in limits:
        complete["items"] = _complete(limits["items"], schema.get("items", {}))
    declared = schema.get("properties", {})
    if "properties" in limits:
        complete["properties"] = {
            name: _complete(below, declared.get(name, {}))
            for name, below in limits["properties"].items()
        }
    return complete


def _text(value: str, schema: Schema, path: Path) -> Iterator[Mismatch]:
    if len(value) < schema.get("minLength", 0):
        yield path, f"it is shorter than minLength {schema['minLength']}"
    if len(value) > schema.get("maxLength", len(value)):
        yield path, f"it is longer than maxLength {schema['maxLength']}"
    if "pattern" in schema and not has_match(schema["pattern"], value):
        yield path, "it does not match the pattern"
    format = schema.get("format", "")
    if schema.get("type") == "string" and format and not is_of_format(format, value):
        yield path, f"it does not match the format {quote(format)}"


def _number(value: int | float, schema: Schema, path: Path) -> Iterator[Mismatch]:
    """Follow ``numberValidator`` of kube-openapi, which validates limits with each value."""
    if misfit := explain_misfit(value, schema):
        yield path, f"it is {misfit}"
    for key in NUMERIC_LIMITS:
        if key in schema and (misfit := explain_misfit(schema[key], schema)):
            yield path, f"{key} {schema[key]} is {misfit}"
    native = _to_native(value, schema)
    low, high, step = (native[key] for key in NUMERIC_LIMITS)
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        yield path, f"it is below the minimum {schema['minimum']}"
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        yield path, f"it is above the maximum {schema['maximum']}"
    if step is not None and not _is_multiple(value, step):
        yield path, f"it is not a multiple of {schema['multipleOf']}"


def explain_misfit(number: int | float, schema: Schema) -> str:
    """Return what a value or a limit is not, by the type and format of ``schema``; "" if it fits.

    The API server refuses each value of a schema whose limits do not fit.
    """
    kind, form = schema.get("type"), schema.get("format")
    if kind == "integer":
        bits = 32 if form == "int32" else 64
        # An infinite float is not an integer either.
        is_whole = isinstance(number, int) or number.is_integer()
        fits = is_whole and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
        return "" if fits else f"not a {bits}-bit integer"
    fits = kind != "number" or form != "float" or abs(number) <= _LARGEST_FLOAT
    return "" if fits else "not a 32-bit float"


def _to_native(value: int | float, schema: Schema) -> dict[str, int | float | None]:
    """Return the limits as the API server compares them with ``value``.

    For a whole number it cuts off their fractions, whatever the type of the schema, and limits that
    do not fit into 64 bits become the smallest number.
    """
    limits = {key: schema.get(key) for key in NUMERIC_LIMITS}
    if isinstance(value, int):
        return {key: None if each is None else _to_int64(each) for key, each in limits.items()}
    return limits


def _to_int64(number: int | float) -> int:
    # Comparisons work for infinite floats, and for integers that are larger than any float.
    fits = -(2**63) <= number < 2**63
    return int(number) if fits else -(2**63)


def _is_multiple(value: int | float, step: int | float) -> bool:
    """Return whether the API server considers ``value`` a multiple of ``step``, with rounding."""
    if step <= 0:
        return False
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    # The same operations in the same order as in go-openapi/validate: another order would round
    # differently, and accept a default that the API server refuses.
    try:
        quotient = 1 / step * value if step < 1 else value / step
    except OverflowError:  # for the API server, an integer that is no float is infinite
        return False
    if not math.isfinite(quotient):
        return False
    difference = abs(quotient - math.trunc(quotient))
    return difference == 0 or (
        abs(quotient) >= 1 and difference / abs(quotient + math.trunc(quotient)) < _CLOSE
    )


def _list(value: list[Any], schema: Schema, path: Path) -> Iterator[Mismatch]:
    yield from _size(len(value), schema, "Items", path)
    if "items" in schema:
        for index, item in enumerate(value):
            yield from find_value_errors(item, schema["items"], (*path, index))
    if schema.get("x-kubernetes-list-type") == "set" and _repeats(value):
        yield path, "a set cannot contain duplicate items"
    if schema.get("x-kubernetes-list-type") == "map":
        keys = schema.get("x-kubernetes-list-map-keys", ())
        items = [item for item in value if isinstance(item, dict)]
        if _repeats([[item.get(key) for key in keys] for item in items]):
            yield path, f"two items have the same {join_names(keys)}"


def _object(value: Mapping[str, Any], schema: Schema, path: Path) -> Iterator[Mismatch]:
    yield from _size(len(value), schema, "Properties", path)
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required = schema.get("required") or ()
    if schema.get("x-kubernetes-embedded-resource"):
        properties, required = {**properties, **_EMBEDDED}, (*required, "apiVersion", "kind")
    for name in required:
        # A default of its own does not help, because the API server fills in no defaults inside a
        # default.
        if name not in value:
            yield path, f"the required {quote(name)} is missing"
    rest = schema.get("additionalProperties")
    for name, below in value.items():
        if name in properties:
            yield from find_value_errors(below, properties[name] or {}, (*path, name))
        elif isinstance(rest, Mapping):
            yield from find_value_errors(below, rest, (*path, name))
        elif rest is True and not _has_fields(below):
            continue
        elif rest is False or not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield (*path, name), f"{quote(name)} is not declared in properties"


def _has_fields(value: Any) -> bool:
    """Return whether a value contains fields, which ``additionalProperties: true`` prunes."""
    if isinstance(value, list):
        return any(map(_has_fields, value))
    return isinstance(value, Mapping) and bool(value)


def _size(size: int, schema: Schema, what: str, path: Path) -> Iterator[Mismatch]:
    if size < schema.get(f"min{what}", 0):
        yield path, f"it has fewer than min{what} {schema[f'min{what}']}"
    if size > schema.get(f"max{what}", size):
        yield path, f"it has more than max{what} {schema[f'max{what}']}"


def _repeats(items: list[Any]) -> bool:
    return len({make_json_key(item) for item in items}) < len(items)


def _article(name: str) -> str:
    words = {"string": "a string", "integer": "an integer", "number": "a number"}
    return words.get(name) or {"boolean": "a boolean", "array": "a list"}.get(name, "an object")
