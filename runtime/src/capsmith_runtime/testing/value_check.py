"""Checks single values as an API server does: patterns, formats, ranges, sets.

This is separate from :mod:`capsmith_runtime.testing.schema_check`, because only samples and
templates must be checked this strictly: unit tests may use values that are easier to read.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Any

from capsmith_runtime.testing.patterns import compile_pattern

_UUID = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
_PATTERNS = {
    "byte": "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})",
    "email": ".*[^ ]@[^ ].*",
    "hexcolor": "#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})",
    "mac": "[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5,}|[0-9a-fA-F]{4}(?:[.][0-9a-fA-F]{4}){2,}",
    "rgbcolor": r"rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)",
    "ssn": r"\d{3}[- ]?\d{2}[- ]?\d{4}",
    "uri": "(?:/|[A-Za-z][A-Za-z0-9+.-]*:).*",
    "uuid": _UUID % ("[0-9a-f]", "[0-9a-f]"),
    "uuid3": _UUID % ("3", "[0-9a-f]"),
    "uuid4": _UUID % ("4", "[89ab]"),
    "uuid5": _UUID % ("5", "[89ab]"),
}
_PARSERS: dict[str, Callable[[str], object]] = {
    "cidr": ipaddress.ip_interface,
    "date": date.fromisoformat,
    "date-time": datetime.fromisoformat,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
}
_CLOSE = 1e-9
_VARIABLE = re.compile(r"\$[{$]")  # or an escaped dollar
_GO_ONLY = re.compile(r"\\[pPQC]")


def value_complaints(schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    """Yield a message for each value below ``path`` that an API server would reject.

    Only the content of values is checked. A string that contains a clusterctl variable
    (``${NAME}``) is accepted as any value.
    """
    if isinstance(value, str):
        if not _VARIABLE.search(value):
            yield from _text_complaints(schema, value, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number_complaints(schema, value, path)
    elif isinstance(value, list):
        # Compared one by one, because JSON objects cannot be hashed.
        repeats = any(item in value[:index] for index, item in enumerate(value))
        if repeats and schema.get("x-kubernetes-list-type") == "set":
            yield f"{path}: a set cannot contain duplicate items"
        for index, item in enumerate(value):
            yield from value_complaints(schema.get("items") or {}, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        others = schema.get("additionalProperties")
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, others)
            if isinstance(inner, dict):
                yield from value_complaints(inner, item, f"{path}.{name}")


def _text_complaints(schema: dict[str, Any], text: str, path: str) -> Iterator[str]:
    pattern = schema.get("pattern", "")
    try:
        if not _GO_ONLY.search(pattern) and not compile_pattern(pattern).search(text):
            yield f"{path}: {text!r} does not match {pattern}"
    except re.error:
        pass  # another syntax that only Go has
    name = schema.get("format", "")
    if schema.get("type") == "string" and not _fits(name, text):
        yield f"{path}: {text!r} is not of the format {name}"


def _fits(name: str, text: str) -> bool:
    if name == "cidr" and "/" not in text:
        return False
    if name in _PATTERNS:
        return re.fullmatch(_PATTERNS[name], text, re.ASCII) is not None
    try:
        _PARSERS.get(name, str)(text)
    except ValueError:
        return False
    return True


def _number_complaints(schema: dict[str, Any], value: float, path: str) -> Iterator[str]:
    low, high, step = (schema.get(key) for key in ("minimum", "maximum", "multipleOf"))
    if low is not None and (value < low or (value == low and schema.get("exclusiveMinimum"))):
        yield f"{path}: {value} is below the minimum {low}"
    if high is not None and (value > high or (value == high and schema.get("exclusiveMaximum"))):
        yield f"{path}: {value} is above the maximum {high}"
    if step and not math.isclose(value / step, round(value / step), rel_tol=_CLOSE):
        yield f"{path}: {value} is not a multiple of {step}"
