"""The layout of YAML source: a tree of nodes with character offsets, without comments.

Use it only for source that :mod:`capsmith.yamldoc.document` has accepted, because that limits the
nesting depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import yaml

from capsmith.yamldoc.compose import Path


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar, collection or alias.

    ``start`` is the offset of its first character, including an anchor or tag.  ``end`` is the
    offset after its last character, which is never a blank, a comment or a line break.
    """

    start: int
    end: int
    column: int
    """Column of the node's first character (0-based, like an indentation)."""
    style: str
    """Style of the node: ``'`` or ``"`` for a quoted scalar, ``|`` or ``>`` for a block scalar,
    ``[`` or ``{`` for a flow collection, ``-`` or ``:`` for a block collection, ``*`` for an alias;
    empty for a plain scalar."""
    value: str = ""
    """Value of a scalar; empty for other nodes."""
    children: tuple[Node, ...] = ()
    """A list's items, or a mapping's alternating keys and values."""

    @property
    def is_flow(self) -> bool:
        """Return whether this is a flow collection, written in brackets or braces."""
        return self.style in ("[", "{")

    @property
    def is_word(self) -> bool:
        """Return whether this is a plain or quoted scalar."""
        return self.style in ("", "'", '"')

    @property
    def entries(self) -> tuple[tuple[Node, Node], ...]:
        """Return a mapping's entries as (key node, value node), in source order."""
        return tuple(zip(self.children[::2], self.children[1::2], strict=True))

    def get(self, key: str) -> tuple[Node, Node] | None:
        """Return the entry ``key`` as (key node, value node), or None if there is none."""
        return next((entry for entry in self.entries if entry[0].value == key), None)

    def leaves(self) -> Iterator[Node]:
        """Yield the scalars and aliases below this node, in source order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


def parse_layout(text: str) -> Node:
    """Return the root node of ``text``, which must be a single document.

    Raises yaml.YAMLError for invalid YAML.
    """
    events = yaml.parse(text, Loader=yaml.SafeLoader)
    next(events), next(events)  # the stream and the document begin
    return _node(events, next(events))


def _node(events: Iterator[Any], event: Any) -> Node:
    if isinstance(event, yaml.AliasEvent):
        return _placed(event, event, "*")
    if isinstance(event, yaml.ScalarEvent):
        return _placed(event, event, event.style or "", event.value)
    is_list = isinstance(event, yaml.SequenceStartEvent)
    last = yaml.SequenceEndEvent if is_list else yaml.MappingEndEvent
    children = []
    while not isinstance(inner := next(events), last):
        children.append(_node(events, inner))
    if event.flow_style:
        return _placed(event, inner, "[" if is_list else "{", children=children)
    # For the parser, a block ends after the comments that follow it.
    block = _placed(event, event, "-" if is_list else ":", children=children)
    return replace(block, end=max((child.end for child in children), default=block.end))


def _placed(
    first: Any, last: Any, style: str, value: str = "", children: Iterable[Node] = ()
) -> Node:
    mark, end = first.start_mark, last.end_mark.index
    return Node(mark.index, end, mark.column, style, value, tuple(children))


def find_nearest_mark(node: yaml.Node | None, path: Path) -> yaml.Mark | None:
    """Return the position of the key or item at ``path``, or of its nearest existing parent.

    Returns None if even the first step of ``path`` does not exist below ``node``.
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
