"""Find parts of composed YAML."""

from __future__ import annotations

import yaml

from capsmith.yamldoc.compose import Path


def nearest(node: yaml.Node | None, path: Path) -> yaml.Mark | None:
    """Return the mark of the key or item at ``path``, or of its nearest parent below ``node``.

    None if not even the first step is there.
    """
    mark = None
    for step in path:
        found = _child(node, step)
        if found is None:
            break
        mark, node = found
    return mark


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Mark, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == step:
                return key.start_mark, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    return None
