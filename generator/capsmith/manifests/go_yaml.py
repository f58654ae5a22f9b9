"""Give YAML nodes the values that clusterctl and kubectl give them, and write YAML for these.

Source: sigs.k8s.io/yaml, which converts what go-yaml v2 decodes to JSON.  Unlike PyYAML, go-yaml
reads ``1e3`` and ``08`` as numbers, ``y`` as a boolean, and dates and ``12:30`` as strings.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import yaml

from capsmith.yamldoc.quote import quote

_PREFIX = "tag:yaml.org,2002:"
STRING, _MERGE, _BINARY = (f"{_PREFIX}{name}" for name in ("str", "merge", "binary"))
_NULL, _BOOL, _INT, _FLOAT, _TIME = (
    f"{_PREFIX}{name}" for name in ("null", "bool", "int", "float", "timestamp")
)
_PLAIN = "!plain"
"""Tag of scalars without quotes and tag that are no strings."""
_RESOLVED = frozenset({_NULL, _BOOL, _INT, _FLOAT, _TIME})
_TAGS: dict[type, str] = {bool: _BOOL, int: _INT, float: _FLOAT, type(None): _NULL, str: STRING}
_MERGE_KEY = "<<"
_HINTS = frozenset("+-.0123456789~yYnNtTfFoO")
"""First characters of plain scalars that may be no strings."""
_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII
)
_BASES = (16, 2, 8, 10)
_MOST_DIGITS = 64
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_FRACTION = re.compile(r"\.[0-9]+(?:[eE][-+]?[0-9]+)?", re.ASCII)
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?", re.ASCII)
_LARGEST, _LARGEST_UNSIGNED = 2**63, 2**64
_DIGITS_OF_KEYS, _FIXED_DIGITS = 9, 6
_KEPT = 8192


@lru_cache(_KEPT)
def resolve_plain(text: str) -> str | bool | float | None:
    """Return the value of a scalar without quotes and tag."""
    if text[:1] not in _HINTS and text:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == ".":
        return _read_decimal(text) if _FRACTION.fullmatch(text) else text
    return _read_number(text) if text[0] in "+-0123456789" else text


@lru_cache(_KEPT)
def choose_tag(text: str) -> str:
    """Return the tag for a scalar without quotes and tag, as :func:`convert_node` expects it."""
    if text == _MERGE_KEY:
        return _MERGE
    return STRING if isinstance(resolve_plain(text), str) else _PLAIN


class GoDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes strings that Go would read as other values without quotes, such as ``y``."""


def _represent_string(dumper: Any, value: str) -> Any:
    style = None if isinstance(resolve_plain(value), str) else '"'
    return dumper.represent_scalar(STRING, value, style=style)


GoDumper.add_representer(str, _represent_string)


def convert_node(node: yaml.Node) -> Any:
    """Return the data of a node, as in JSON.

    Raises ValueError for what JSON cannot express, and for values that do not fit their tags.
    """
    kind = type(node)
    if kind is yaml.ScalarNode:
        return node.value if node.tag == STRING else _convert_number(_read_scalar(node))
    if kind is yaml.SequenceNode:
        return [convert_node(each) for each in node.value]
    found: dict[str, Any] = {}
    # Other than in PyYAML, a merge replaces the keys before it.
    for key, value in node.value:
        if key.tag == STRING and type(key) is yaml.ScalarNode:
            found[key.value] = convert_node(value)
        elif key.tag == _MERGE and key.value == _MERGE_KEY:
            for each in _list_merged(value):
                found.update(convert_node(each))
        else:
            found[_read_key(key)] = convert_node(value)
    return found


def _list_merged(node: yaml.Node) -> Iterator[yaml.Node]:
    """Yield the mappings that a merge adds; earlier ones of a list come last and win."""
    nodes = reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]
    for each in nodes:
        if not isinstance(each, yaml.MappingNode):
            raise ValueError("a merge requires mappings")
        yield each


def _read_scalar(node: yaml.Node) -> Any:
    text, tag = node.value, node.tag
    if tag == _PLAIN:
        return resolve_plain(text)
    if tag == _BINARY:
        try:
            return base64.b64decode(text, validate=True).decode(errors="replace")
        except binascii.Error as error:
            raise ValueError("a value is not base64") from error
    if tag not in _RESOLVED:
        return text
    value = resolve_plain(text)
    found = _TAGS[type(value)]
    if tag == _TIME and _TIMESTAMP.fullmatch(text):
        return text
    if found != tag and (found, tag) != (_INT, _FLOAT):
        short = tag.removeprefix(_PREFIX)
        raise ValueError(f"{quote(text)} does not have the form of its tag !!{short}")
    return value


def _read_number(text: str) -> str | float:
    plain = text.replace("_", "")
    match = _INTEGER.fullmatch(plain)
    if match is not None:
        sign = match[1]
        digits, base = next((d, b) for d, b in zip(match.groups()[1:], _BASES, strict=True) if d)
        # Python refuses to read thousands of digits.
        if len(digits.lstrip("0")) <= _MOST_DIGITS:
            value = int(f"{sign}{digits}", base)
            # Go reads other decimal numbers as floats, but writes their digits.
            if base == 10 or -_LARGEST <= value < (_LARGEST if sign else _LARGEST_UNSIGNED):
                return value
    number = _read_decimal(plain) if _DECIMAL.fullmatch(plain) else plain
    return text if isinstance(number, str) else number


def _read_decimal(text: str) -> str | float:
    """Return a number; the text itself if it is too large for a float."""
    value = float(text)
    return text if math.isinf(value) else value


def _convert_number(value: Any) -> Any:
    """Return a value as JSON has it, in which ``1.0`` is written as 1."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise ValueError(f"the number {value} cannot be written as JSON")
    return int(value) if value.is_integer() and abs(value) < _LARGEST else value


def _read_key(node: yaml.Node) -> str:
    """Return a key as JSON has it.  Raises ValueError for those that it cannot have."""
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError("a key is a list or a mapping, and not a string")
    value = node.value if node.tag == STRING else _read_scalar(node)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _format_float(value)
    if isinstance(value, str) or (isinstance(value, int) and value < _LARGEST):
        return str(value)
    raise ValueError(f"a key is {quote(str(value))}, and not a string")


def _format_float(value: float) -> str:
    """Return a float with as few digits as distinguish it from others of 32 bits."""
    single = struct.unpack("@f", struct.pack("@f", value))[0]
    if not math.isfinite(single):
        return ".nan" if math.isnan(single) else f"{'-' if single < 0 else ''}.inf"
    for digits in range(_DIGITS_OF_KEYS):
        text = f"{single:.{digits}e}"
        if struct.pack("@f", float(text)) == struct.pack("@f", single):
            break
    mantissa, _, exponent = text.partition("e")
    if -5 < int(exponent) < _FIXED_DIGITS:
        return f"{float(text):.{max(digits - int(exponent), 0)}f}"
    return f"{mantissa}e{int(exponent):+03d}"
