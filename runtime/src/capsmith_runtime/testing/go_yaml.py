"""Reads YAML as kubectl does, which decodes it with go-yaml and converts it to JSON.

Unlike PyYAML, go-yaml reads ``y`` as a boolean, ``1e3`` and ``08`` as numbers, and dates and
``12:30`` as strings.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

# libyaml's loader is about ten times as fast; both compose the same nodes.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PREFIX: Final = "tag:yaml.org,2002:"
_STRING, _MERGE, _BINARY = (f"{_PREFIX}{name}" for name in ("str", "merge", "binary"))
_TAGS: Final = {
    f"{_PREFIX}null": (type(None),),
    f"{_PREFIX}bool": (bool,),
    f"{_PREFIX}int": (int,),
    f"{_PREFIX}float": (float, int),
}
"""Types of the values that a scalar with an explicit tag can have."""
_PLAIN: Final = "!plain"
"""Tag of scalars without quotes and without a tag."""
_WORDS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER: Final = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII
)
_BASES: Final = (16, 2, 8, 10)
_DECIMAL: Final = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?", re.ASCII)
_FRACTION: Final = re.compile(r"[-+]?\.[0-9]+(?:[eE][-+]?[0-9]+)?", re.ASCII)
_MOST_DIGITS: Final = 64
_LARGEST: Final = 2**63


class _Loader(_LOADER):  # type: ignore[misc]
    """Composes nodes, and marks plain scalars, whose values depend on their text."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """Return the tag of a node without an explicit one."""
        if kind is not yaml.ScalarNode:
            return str(super().resolve(kind, value, implicit))
        if not implicit[0]:
            return _STRING
        return _MERGE if value == "<<" else _PLAIN


def read_documents(text: str) -> Iterator[tuple[int, Any]]:
    """Yield each document that is not null, with the number of its first line.

    Raises yaml.YAMLError for invalid YAML, and for values that JSON cannot express.
    """
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            document = _convert(node)
            if document is not None:
                yield node.start_mark.line + 1, document
    finally:
        loader.dispose()


def _convert(node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return _to_json(_read_scalar(node), node)
    if isinstance(node, yaml.SequenceNode):
        return [_convert(each) for each in node.value]
    found: dict[str, Any] = {}
    # Unlike in PyYAML, a merge replaces the keys before it.
    for key, value in node.value:
        if key.tag == _MERGE and key.value == "<<":
            for each in _list_merged(value):
                found.update(_convert(each))
        else:
            found[_read_key(key)] = _convert(value)
    return found


def _list_merged(node: yaml.Node) -> Iterator[yaml.Node]:
    """Yield the mappings that a merge adds; earlier ones of a list come last and win."""
    nodes = reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]
    for each in nodes:
        if not isinstance(each, yaml.MappingNode):
            raise _error("a merge requires mappings", each)
        yield each


def _read_key(node: yaml.Node) -> str:
    value = _read_scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        raise _error("a key is not a string", node)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _read_scalar(node: yaml.Node) -> Any:
    text, tag = node.value, node.tag
    if tag == _PLAIN:
        return _read_plain(text)
    if tag == _BINARY:
        try:
            return base64.b64decode(text, validate=True).decode(errors="replace")
        except ValueError:
            raise _error("a value is not base64", node) from None
    if tag not in _TAGS:
        return text
    value = _read_plain(text)
    if type(value) not in _TAGS[tag]:
        raise _error(f"{text!r} does not have the form of its tag", node)
    return value


def _read_plain(text: str) -> Any:
    """Return the value of a scalar without quotes and tag."""
    if text in _WORDS:
        return _WORDS[text]
    if _FRACTION.fullmatch(text):
        return _read_float(text)
    if text[0] not in "+-0123456789":
        return text
    digits = text.replace("_", "")
    match = _INTEGER.fullmatch(digits)
    if match is not None:
        number, base = next((d, b) for d, b in zip(match.groups()[1:], _BASES, strict=True) if d)
        value = int(f"{match[1]}{number}", base) if len(number) <= _MOST_DIGITS else None
        # Go reads other decimal numbers as floats, but writes their digits.
        limit = _LARGEST if match[1] else 2 * _LARGEST
        if value is not None and (base == 10 or -_LARGEST <= value < limit):
            return value
    return _read_float(digits, text) if _DECIMAL.fullmatch(digits) else text


def _read_float(digits: str, text: str = "") -> str | float:
    """Return a number, or the text itself if it is too large for a float."""
    value = float(digits)
    return (text or digits) if math.isinf(value) else value


def _to_json(value: Any, node: yaml.Node) -> Any:
    """Return a value as JSON has it, in which ``1.0`` is written as 1."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise _error(f"the number {value} cannot be written as JSON", node)
    return int(value) if value.is_integer() and abs(value) < _LARGEST else value


def _error(message: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, message, node.start_mark)
