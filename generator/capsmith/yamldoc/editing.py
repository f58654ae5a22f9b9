"""Replace values in YAML source, and keep everything around them byte for byte.

Lists and mappings are changed entry by entry: comments, order, quotes and line endings are kept,
even the comments inside removed entries.  The result is parsed again.  Unless it means exactly what
was requested, the source is returned unchanged.

ruamel.yaml's round trip is not an alternative, because it rewrites the whole document.  In version
0.19.1, with the layouts in tests/properties/layouts.py, it lost a comment in 35 of 100 documents
and changed other keys in 44.  It joins multi-line strings, decodes escapes, drops ``~``, blanks
inside brackets and aligned columns, writes one indentation for the whole file and a JSON file on
one line, and puts a new last item after the comment of the next key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capsmith.findings import Finding
from capsmith.yamldoc.document import Document, parse_document
from capsmith.yamldoc.layout import Node, parse_layout

_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\r\n\x85\u2028\u2029]*)?")
_BREAK = re.compile(r"\r\n|\r|\n")
_TO_COMMA = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*(,)")
_COMMENT = re.compile(r"#[^\r\n]*")


Values = Mapping[str, Any]
"""New values by top-level key. Each is a string, a mapping, or a list of strings and mappings."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The edited source, or the unchanged source and a finding with the reason."""

    text: str
    finding: Finding | None = None


def set_keys(text: str, document: Document, values: Values, after: str) -> Edited:
    """Set top-level keys in YAML source without touching other lines.

    ``document`` is the result of parsing ``text``.  Missing keys are inserted after the key
    ``after``.  If a value cannot be changed in isolation, return the source unchanged with the
    finding ``spec-not-editable`` at that value.

    Example::

        set_keys(text, document, {"contracts": ["v1beta2"]}, after="contracts").text
    """
    changed = {key: value for key, value in values.items() if document.data.get(key) != value}
    # The key at which a failure is reported, until the loop knows a better one.
    key = next(iter(changed), after)
    try:
        splices = Splices(text)
        root = parse_layout(text)
        for key, value in changed.items():
            entry = root.get(key)
            if entry is not None:
                _change(splices, entry[1], document.data[key], value)
            else:
                splices.add_entry(root, key, value, root.get(after))
        result = splices.done()
    except Unsafe:
        return Edited(text, _not_editable(document, changed, key))
    # This module's safeguard: whatever a splice did wrong, the text is not changed.
    reread, _ = parse_document(result, document.file)
    expected = {**document.data, **changed}
    if reread is None or not _same(reread.data, expected):
        return Edited(text, _not_editable(document, changed, next(iter(changed))))
    return Edited(result)


def _change(splices: Splices, node: Node, old: Any, new: Any) -> None:
    """Change ``node``, whose value is ``old``, to the value ``new``.

    Raises Unsafe if the change would affect other parts of the source.
    """
    if old == new:
        return
    # No children: an empty collection, or an alias, through which its anchor must not be edited.
    if isinstance(old, list) and isinstance(new, list) and node.children:
        _change_list(splices, node, old, new)
    elif isinstance(old, dict) and isinstance(new, dict) and node.children:
        _change_mapping(splices, node, old, new)
    elif isinstance(old, str) and isinstance(new, dict) and node.is_word:
        others = {key: value for key, value in new.items() if value != old}
        splices.wrap(node, others, next(key for key in new if key not in others))
    elif not isinstance(new, list | dict) and node.is_word:
        splices.replace(node, new)
    else:
        raise Unsafe


def _change_list(splices: Splices, node: Node, old: Sequence[Any], new: Sequence[Any]) -> None:
    old_names, new_names = [_name(item) for item in old], [_name(item) for item in new]
    removed = [index for index, name in enumerate(old_names) if name not in new_names]
    added = [item for item in new if _name(item) not in old_names]
    for index, name in enumerate(old_names):
        if name in new_names:
            _change(splices, node.children[index], old[index], new[new_names.index(name)])
    # One removed and one added name are a renamed item, which keeps its place and comments.
    for index, item in zip(list(removed), list(added), strict=False):
        if isinstance(old[index], str) and isinstance(item, str):
            _change(splices, node.children[index], old[index], item)
            removed.remove(index)
            added.remove(item)
    splices.remove_items(node, removed)
    splices.add_items(node, added)


def _name(item: Any) -> Any:
    return item.get("name") if isinstance(item, dict) else item


def _change_mapping(
    splices: Splices, node: Node, old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    if old.keys() - new.keys():
        raise Unsafe
    for key, value in node.entries:
        _change(splices, value, old[key.value], new[key.value])
    entries = {key: value for key, value in new.items() if key not in old}
    splices.add_entries(node, entries, in_front=next(iter(new)) in entries)


def _same(one: Any, other: Any) -> bool:
    """Return whether two documents are equal; unlike in Python, True differs from 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _not_editable(document: Document, values: Values, key: str) -> Finding:
    lines = ", ".join(f"`{key}: {format_value(value)}`" for key, value in values.items())
    return Finding(
        "spec-not-editable",
        "this cannot be changed without changing the text around it",
        document.value((key,)),
        hint=f"Write it yourself, then run capsmith update: {lines}.",
    )


class Unsafe(Exception):
    """Raised if a change would affect more of the source than intended."""


class Splices:
    """Changes to a source, which are collected and then applied together.

    All positions refer to the original source.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._changes: list[tuple[tuple[int, int, int], str]] = []

    def done(self) -> str:
        """Return the source with all changes applied.

        Raises Unsafe if two changes overlap.
        """
        text, upper = self._text, len(self._text)
        # From the end, so that indexes stay valid; changes at one place keep their order.
        for (start, end, _), new in sorted(self._changes, reverse=True):
            if end > upper:
                raise Unsafe
            text, upper = text[:start] + new + text[end:], start
        return text

    def replace(self, node: Node, value: Any) -> None:
        """Replace a scalar's value, keeping its quotes.

        Raises Unsafe for a scalar with an anchor or tag, and for a block scalar.
        """
        # Aliases share the value of an anchored scalar, and a tag may change the meaning of the new
        # value.
        if not node.is_word or self._text[node.start : node.start + 1] in ("&", "!"):
            raise Unsafe
        self._put(node.start, node.end, format_value(value, node.style))

    def wrap(self, node: Node, others: Mapping[str, Any], key: str) -> None:
        """Turn a scalar into a flow mapping: the scalar under ``key``, then ``others``."""
        style = '"' if node.style == '"' else ""
        more = "".join(f", {_entry(name, value, style)}" for name, value in others.items())
        self._put(node.start, node.start, f"{{{format_value(key, style)}: ")
        self._put(node.end, node.end, f"{more}}}")

    def add_items(self, node: Node, items: Sequence[Any]) -> None:
        """Append items to a list, which must not be empty."""
        if not items:
            return
        # The new items are formatted like the last existing one, because a file may mix YAML and
        # JSON styles.
        last = node.children[-1]
        style = last.style if last.is_word else _style_of(last)
        texts = [format_value(item, style) for item in items]
        if node.is_flow:
            self._put(last.end, last.end, "".join(f", {text}" for text in texts))
            return
        margin = " " * self._column(self._dash(node, len(node.children) - 1))
        self._add_lines(last.end, [f"{margin}- {text}" for text in texts])

    def remove_items(self, node: Node, indexes: Sequence[int]) -> None:
        """Remove items from a list, but keep their comments.

        Raises Unsafe if no item would remain.
        """
        if len(indexes) == len(node.children):
            raise Unsafe
        for index in indexes:
            if node.is_flow:
                self._remove_from_flow(node, index)
            else:
                self._remove_line(node, index)

    def add_entries(self, node: Node, entries: Mapping[str, Any], *, in_front: bool) -> None:
        """Add entries at the end of a mapping, or at its start if ``in_front`` is true."""
        if not entries:
            return
        first, (_, last) = node.children[0], node.entries[-1]
        style = _style_of(node)
        texts = [_entry(key, value, style) for key, value in entries.items()]
        margin = " " * first.column
        if in_front:
            gap = ", " if node.is_flow else self._break(first.start) + margin
            self._put(first.start, first.start, "".join(text + gap for text in texts))
        elif node.is_flow:
            self._put(last.end, last.end, "".join(f", {text}" for text in texts))
        else:
            self._add_lines(last.end, [margin + text for text in texts])

    def add_entry(self, node: Node, key: str, value: Any, after: tuple[Node, Node] | None) -> None:
        """Add an entry to a mapping, after the entry ``after``.

        Raises Unsafe if ``after`` is None.  ``value`` is a string, or a list of strings that is
        written with one string per line.
        """
        if after is None:
            raise Unsafe
        place = after[1].end
        if node.is_flow:
            self._put(place, place, f", {_entry(key, value, _style_of(node))}")
            return
        margin = " " * after[0].column
        if isinstance(value, str):
            lines = [f"{margin}{_entry(key, value, '')}"]
        else:
            lines = [f"{margin}{key}:", *(f"{margin}  - {format_value(item)}" for item in value)]
        self._add_lines(place, lines)

    def _put(self, start: int, end: int, new: str) -> None:
        self._changes.append(((start, end, len(self._changes)), new))

    def _add_lines(self, place: int, lines: Sequence[str]) -> None:
        end = self._line_end(place)
        line_break = self._break(end)
        self._put(end, end, "".join(line_break + line for line in lines))

    def _line_end(self, place: int) -> int:
        """Return the end of the line of ``place``.

        Raises Unsafe if anything other than a comment follows ``place`` on its line.
        """
        # Anything else on the line, such as the bracket of an outer list, belongs to another node.
        match = _REST_OF_LINE.match(self._text, place)
        end = match.end() if match is not None else place
        if end < len(self._text) and not _BREAK.match(self._text, end):
            raise Unsafe
        return end

    def _break(self, place: int) -> str:
        """Return the type of line break around ``place``."""
        before = _BREAK.findall(self._text, 0, place)
        after = _BREAK.search(self._text, place)
        return after[0] if after is not None else before[-1] if before else "\n"

    def _column(self, place: int) -> int:
        breaks = [match.end() for match in _BREAK.finditer(self._text, 0, place)]
        return place - (breaks[-1] if breaks else 0)

    def _dash(self, node: Node, index: int) -> int:
        # Only blanks and line breaks may be between the dash and its item; the layout is refused
        # after a comment.
        before = self._text[: node.children[index].start].rstrip(" \t\r\n")
        if not before.endswith("-"):
            raise Unsafe
        return len(before) - 1

    def _remove_line(self, node: Node, index: int) -> None:
        item, dash = node.children[index], self._dash(node, index)
        start = dash - self._column(dash)
        if self._text[start:dash].strip():
            raise Unsafe
        # The author's comments stay, even if the item that they describe is removed.
        comments, end = self._comments(item), self._line_end(item.end)
        if comments or self._text[item.end : end].strip():
            gap = self._break(item.end) + self._text[start:dash]
            blanks = 0 if comments else self._blanks(item.end)
            self._put(dash, item.end + blanks, gap.join(comments))
            return
        line_break = _BREAK.match(self._text, end)
        if line_break is None:  # the last line has no line break: remove the one before it
            previous = _BREAK.search(self._text[:start][-2:])
            self._put(start - (len(previous[0]) if previous else 0), end, "")
        else:
            self._put(start, line_break.end(), "")

    def _remove_from_flow(self, node: Node, index: int) -> None:
        item = node.children[index]
        comments = "".join(f"{text}{self._break(item.end)} " for text in self._comments(item))
        # An item is removed with the comma after it, and the last item with the comma before it:
        # YAML allows a trailing comma, but JSON does not.
        comma = _TO_COMMA.match(self._text, item.end)
        if comma is not None:
            self._put(item.start, item.end, comments)
            self._put(comma.start(1), comma.end() + self._blanks(comma.end()), "")
            return
        before = _TO_COMMA.match(self._text, node.children[index - 1].end)
        if before is None:
            raise Unsafe
        between = self._text[before.end() : item.start]
        self._put(before.start(1), before.end(), "")
        start = item.start if between.strip() else before.end()
        self._put(start, item.end, comments)

    def _blanks(self, place: int) -> int:
        """Return the number of blanks at ``place``."""
        rest = self._text[place:]
        return len(rest) - len(rest.lstrip(" \t"))

    def _comments(self, item: Node) -> list[str]:
        """Return the comments inside an item."""
        comments, place = [], item.start
        for leaf in item.leaves():
            comments += _COMMENT.findall(self._text[place : max(leaf.start, place)])
            place = leaf.end
        return comments + _COMMENT.findall(self._text[place : item.end])


def format_value(value: Any, style: str = "") -> str:
    """Format ``value`` in YAML flow style. ``style`` is the quote character for strings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"{style}{value}{style}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(_entry(key, each, style) for key, each in value.items())}}}"
    return f"[{', '.join(format_value(each, style) for each in value)}]"


def _entry(key: str, value: Any, style: str) -> str:
    return f"{format_value(key, style)}: {format_value(value, style)}"


def _style_of(node: Node) -> str:
    """Return the quote character of a mapping in JSON style; empty for other nodes."""
    return '"' if node.style == "{" and node.children and node.children[0].style == '"' else ""
