"""Write plain data as YAML that looks hand-written, with short mappings on one line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from typing import Any

import yaml

from capsmith.yamldoc.quote import UNPRINTABLE

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_SECTIONS = ("infrastructure", "bootstrap", "controlPlane", "ipam", "addon")
_WIDTH = 100
_INDENT = 2
_FLOWING = 3
"""Maximum nesting depth of a mapping, counted from its field, that is written on one line."""
_INT64 = range(-(2**63), 2**63)
_HEADER = "# yaml-language-server: $schema=.capsmith/provider.schema.json\n"


def dump_provider_yaml(data: Mapping[str, Any]) -> str:
    """Format a provider.yaml with each kind and each field on its own line.

    ``data`` must be plain (:func:`convert_to_plain_data`). Its order is kept.
    """
    node = _mapping(data, 0, blocks=4)
    text = yaml.serialize(node, Dumper=_DUMPER, width=_WIDTH, allow_unicode=True)
    return _HEADER + str(text)


def _node(value: Any, column: int, blocks: int) -> yaml.Node:
    if isinstance(value, Mapping):
        return _mapping(value, column, blocks)
    if isinstance(value, list | tuple):
        items = [_node(item, column + _INDENT, 0) for item in value]
        flow = _fits(items, column)
        return yaml.SequenceNode("tag:yaml.org,2002:seq", items, flow_style=flow)
    return _scalar(value)


def _mapping(value: Mapping[str, Any], column: int, blocks: int) -> yaml.MappingNode:
    pairs = []
    for key, below in value.items():
        inner = blocks - 1 if _is_block(str(key), blocks) else 0
        pairs.append((_scalar(str(key)), _node(below, column + _INDENT, inner)))
    parts = [part for pair in pairs for part in pair]
    flow = not blocks and _fits(parts, column + _longest_key(value))
    return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=flow)


def _is_block(key: str, blocks: int) -> bool:
    """Return whether the entries below a key are on separate lines: sections, kinds, fields."""
    if blocks == 4:
        return key in _SECTIONS
    return blocks == 3 or (blocks == 2 and key in ("spec", "status"))


def _longest_key(value: Mapping[str, Any]) -> int:
    return max((len(str(key)) for key in value), default=0)


def _fits(nodes: list[yaml.Node], column: int) -> bool:
    """Return whether the nodes are short and shallow enough for one line starting at ``column``."""
    return all(_depth(node) < _FLOWING for node in nodes) and (
        column + sum(_width(node) + 2 for node in nodes) <= _WIDTH
    )


def _width(node: yaml.Node) -> int:
    if isinstance(node, yaml.ScalarNode):
        return _WIDTH if "\n" in node.value else len(node.value)
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        return _WIDTH
    return 2 + sum(_width(part) + 2 for part in _parts(node))


def _depth(node: yaml.Node) -> int:
    if isinstance(node, yaml.ScalarNode):
        return 0
    return 1 + max((_depth(part) for part in _parts(node)), default=0)


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value)


def _scalar(value: Any) -> yaml.ScalarNode:
    node = _REPRESENTER.represent_data(value)
    assert isinstance(node, yaml.ScalarNode)
    # Multi-line descriptions stay readable as block scalars.
    if isinstance(value, str) and "\n" in value:
        node.style = "|"
    return node


_REPRESENTER = yaml.representer.SafeRepresenter()


def convert_to_plain_data(value: Any) -> Any:
    """Return a copy with string keys, and with only values that YAML can express.

    Dates become strings: YAML reads an unquoted 2030-01-31 as a date, but the API server does not.
    Numbers that no field can hold become strings as well, which the checks refuse.
    """
    if isinstance(value, Mapping):
        return {
            UNPRINTABLE.sub("", str(key)): convert_to_plain_data(each)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [convert_to_plain_data(each) for each in value]
    if isinstance(value, str):
        return UNPRINTABLE.sub("", value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value in _INT64 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if isinstance(value, date) else UNPRINTABLE.sub("", str(value))
