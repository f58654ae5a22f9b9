"""Write plain data as the YAML that a person would write: short mappings on one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from capsmith.importing.fields import field_of
from capsmith.importing.normal import normal
from capsmith.importing.refusals import Refusal
from capsmith.importing.source import SourceCrd
from capsmith.manifests.parse import mapping_of
from capsmith.provider.pools import MACHINES

_FIELD = "infrastructureMachineKind"


def add_machine_kinds(
    data: dict[str, Any], sources: Iterable[SourceCrd], refusals: Iterable[Refusal]
) -> bool:
    """Declare the field of pools without the refused feature; return whether there are any."""
    refused = {each.path[:2] for each in refusals if each.path[2:] == ("features", MACHINES)}
    found = False
    for source in sources:
        path = (source.section, source.crd.kind)
        entry = mapping_of(data, *path)
        if path not in refused or not entry:
            continue
        written = data[path[0]][path[1]]
        for version in source.crd.versions:
            schema = mapping_of(version.schema, "properties", "status", "properties", _FIELD)
            of_version = mapping_of(written, "versions", version.name)
            if not schema or not (version.storage or "contractFields" in of_version):
                continue
            part = written if version.storage else written["versions"][version.name]
            fields = part.setdefault("contractFields", {}).setdefault("status", {})
            fields[_FIELD] = field_of(normal(schema))
            found = True
    return found


_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_SECTIONS = ("infrastructure", "bootstrap", "controlPlane", "ipam", "addon")
_WIDTH = 100
_INDENT = 2
_FLOWING = 3
"""Deepest mapping, in levels from a field, that is written on one line."""
_HEADER = "# yaml-language-server: $schema=.capsmith/provider.schema.json\n"


def provider_yaml(data: Mapping[str, Any]) -> str:
    """Return the text of a provider.yaml; kinds and their fields have lines of their own."""
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
    """Return whether what is below a key has a line for each entry: sections, kinds, fields."""
    if blocks == 4:
        return key in _SECTIONS
    return blocks == 3 or (blocks == 2 and key in ("spec", "status"))


def _longest_key(value: Mapping[str, Any]) -> int:
    return max((len(str(key)) for key in value), default=0)


def _fits(nodes: list[yaml.Node], column: int) -> bool:
    """Return whether nodes are short enough for one line, and not deep."""
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
    if isinstance(value, str) and "\n" in value:
        node.style = "|"
    return node


_REPRESENTER = yaml.representer.SafeRepresenter()
