"""Compose plain data with positions from YAML parser events, within limits.

PyYAML's own composer would check the limits too late.  For a list of 100,000 small mappings
``yaml.compose`` takes seconds and 160 MB to build a tree that this module refuses in a few
milliseconds.  It also raises RecursionError for deep nesting, reports a later syntax error instead
of the limit that was exceeded before it, does not allow an anchor to be redefined, and reports the
position of an anchor for each of its aliases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import yaml

from capsmith.findings import Finding, Location
from capsmith.yamldoc.quote import UNPRINTABLE, clip, quote

Path = tuple[str | int, ...]
"""Keys and list indexes from the root, such as ``("infrastructure", "AcmeMachine", "spec")``."""

MAX_NODES = 100_000
"""Maximum number of keys and values in a document, with aliases expanded."""
MAX_DEPTH = 40
"""Maximum nesting depth of mappings and lists."""
MAX_ANCHORS = 100
MAX_PROBLEMS = 50
_LONGEST_NUMBER = 40
_INT64 = range(-(2**63), 2**63)
# `!` alone is YAML's non-specific tag: the scalar is a string, whatever it looks like.
_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "!")
_MERGE = "tag:yaml.org,2002:merge"


def format_path(path: Path) -> str:
    """Return a path as a string such as ``spec.versions[0].name``; empty for the root."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return "".join(parts).removeprefix(".")


class Mark(NamedTuple):
    """The positions of a key and its value, as 1-based lines and columns.

    ``raw`` is a plain scalar's source; None for other values.
    """

    key: tuple[int, int]
    value: tuple[int, int]
    raw: str | None = None


class Rejected(Exception):
    """Raised if the rest of the document cannot be read; ``finding`` gives the reason."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass(slots=True)
class _Anchored:
    data: Any
    marks: dict[Path, Mark]
    nodes: int
    depth: int


@dataclass(slots=True)
class Composer:
    """Composes a single YAML document. Create a new instance for each document.

    ``file`` is used only in findings.  ``findings`` collects errors that do not stop the reading.
    """

    events: Iterator[Any]
    file: str
    marks: dict[Path, Mark] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _anchors: dict[str, _Anchored | None] = field(default_factory=dict)
    _nodes: int = 0
    _resolver: yaml.resolver.Resolver = field(default_factory=yaml.resolver.Resolver)

    def compose(self) -> dict[str, Any]:
        """Return the document's top-level mapping.

        Raises Rejected if a limit is exceeded or the document cannot be read, and yaml.YAMLError,
        ValueError or OverflowError from the parser.
        """
        # PyYAML yields the events in exactly this order: stream start, document start, the node,
        # document end, then the next document or the end of the stream.
        next(self.events)  # start of the stream
        first = next(self.events)
        if isinstance(first, yaml.StreamEndEvent):
            self._reject(
                "yaml-empty",
                "the file is empty",
                (1, 1),
                "Run `capsmith new` to write a first one.",
            )
        data = self._node(next(self.events), (), None)
        next(self.events)  # end of the document
        following = next(self.events)
        if not isinstance(following, yaml.StreamEndEvent):
            self._reject(
                "yaml-several-documents",
                "the file holds several YAML documents",
                _position(following),
                "Split it at `---`: one file describes one repository.",
            )
        if not isinstance(data, dict):
            id, what = "yaml-not-a-mapping", (
                "a list" if isinstance(data, list) else "a single value"
            )
            if data is None:
                id, what = "yaml-empty", "empty"
            hint = "Start it with `capsmith: 1`; run `capsmith schema` to see the keys."
            self._reject(id, f"the file is {what}, not a mapping", self.marks[()].value, hint)
        return data

    def _node(self, event: Any, path: Path, key: tuple[int, int] | None) -> Any:
        position = _position(event)
        self._count(1, position)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path, key or position)
        if event.tag is not None and event.tag not in _TAGS:
            tag = quote(event.tag.replace("tag:yaml.org,2002:", "!!"))
            self._report("yaml-tag", f"the tag {tag} is not supported", position, "Remove it.")
        # None until the value is complete, because an alias inside its own anchor would never end.
        if event.anchor is not None:
            # A second anchor of the same name replaces the first one, as the YAML specification
            # allows.
            self._anchors[event.anchor] = None
        # The node itself was counted above, hence the `+ 1` where the size of an anchor is
        # recorded.
        count_before = self._nodes
        if isinstance(event, yaml.ScalarEvent):
            plain = event.style is None and event.tag is None
            self.marks[path] = Mark(key or position, position, event.value if plain else None)
            data = self._scalar(event, position)
        else:
            self.marks[path] = Mark(key or position, position)
            if len(path) >= MAX_DEPTH:
                message = f"more than {MAX_DEPTH} levels of nesting"
                self._reject("yaml-too-deep", message, position, "Flatten it.")
            data = self._mapping(path) if _is_mapping(event) else self._sequence(path)
        if event.anchor is not None:
            self._record_anchor(event.anchor, data, path, self._nodes - count_before + 1)
        return data

    def _mapping(self, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            position = _position(event)
            key = self._key(event, position)
            if key in data:
                first = self.marks[(*path, key)].key[0]
                self._report(
                    "yaml-duplicate-key",
                    f"duplicate key {quote(key)}: first defined in line {first}",
                    position,
                    "Keep one of the two.",
                )
                # Stored under a name that nothing else has, so that its value is checked as well.
                key = f"{key} (again in line {position[0]}:{position[1]})"
            data[key] = self._node(next(self.events), (*path, key), position)
        return data

    def _sequence(self, path: Path) -> list[Any]:
        data: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            data.append(self._node(event, (*path, len(data)), None))
        return data

    def _key(self, event: Any, position: tuple[int, int]) -> str:
        self._count(1, position)
        if not isinstance(event, yaml.ScalarEvent):
            self._reject("yaml-key-not-text", "a key must be a string", position, "Write a name.")
        tag = self._tag(event)
        if tag == _MERGE:
            hint = "Write the keys out, or use an alias for the whole value."
            self._report("yaml-merge-key", "merge keys (`<<`) are not supported", position, hint)
        elif not tag.endswith((":str", ":timestamp")):
            self._report(
                "yaml-key-not-text",
                f"YAML reads the key {quote(event.value)} as {_kind(tag)}, not as a string",
                position,
                f'Write it in quotes: "{clip(event.value)}".',
            )
        self._characters(event.value, position)
        return str(event.value)

    def _scalar(self, event: Any, position: tuple[int, int]) -> Any:
        text: str = event.value
        self._characters(text, position)
        kind = self._tag(event).rpartition(":")[2]
        if kind == "null":
            return None
        # YAML 1.1, like kubectl's parser: `yes` and `on` are booleans too.
        if kind == "bool":
            return text.lower() in ("yes", "true", "on")
        # A date stays a string: JSON has no dates, and the API server receives JSON.
        if kind not in ("int", "float"):
            return text
        number = _number(text, kind)
        if isinstance(number, int) and number in _INT64:
            return number
        if isinstance(number, float) and math.isfinite(number):
            return number
        hint = f'Use a finite 64-bit number, or write "{clip(text)}" for a string.'
        # Any number will do, because a document with findings is not returned.
        self._report("yaml-number", f"{quote(text)} is not a usable number", position, hint)
        return 0

    def _tag(self, event: Any) -> str:
        # YAML 1.1's implicit types apply only to plain scalars.  Converting a long number would
        # take quadratic time, and it is out of range in any case.
        if event.tag is not None or event.style is not None or len(event.value) > _LONGEST_NUMBER:
            return "tag:yaml.org,2002:str"
        resolve: Callable[..., Any] = self._resolver.resolve
        return str(resolve(yaml.ScalarNode, event.value, (True, False)))

    def _alias(self, event: Any, path: Path, key: tuple[int, int]) -> Any:
        position = _position(event)
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            reason = "contains itself" if event.anchor in self._anchors else "is not defined above"
            alias = quote("*" + event.anchor)
            self._reject("yaml-alias", f"the alias {alias} {reason}", position, "Write it out.")
        # An alias counts as everything that it expands to: ten levels of ten aliases are refused
        # here, before anything visits ten billion values.
        self._count(anchored.nodes, position)
        # Findings below an alias refer to the anchored text, where the author has to edit; the
        # alias itself keeps its own position.
        for below, mark in anchored.marks.items():
            self.marks[path + below] = mark
        self.marks[path] = Mark(key, position, anchored.marks[()].raw)
        if len(path) + anchored.depth > MAX_DEPTH:
            message = f"more than {MAX_DEPTH} levels of nesting"
            self._reject("yaml-too-deep", message, position, "Flatten it.")
        return anchored.data

    def _record_anchor(self, anchor: str, data: Any, path: Path, nodes: int) -> None:
        if len(self._anchors) > MAX_ANCHORS:
            message = f"more than {MAX_ANCHORS} anchors"
            self._reject("yaml-too-many-nodes", message, self.marks[path].value, "Write it out.")
        length = len(path)
        below = {p[length:]: mark for p, mark in self.marks.items() if p[:length] == path}
        self._anchors[anchor] = _Anchored(data, below, nodes, _depth(data))

    def _count(self, nodes: int, position: tuple[int, int]) -> None:
        # Keys count as nodes, so a mapping costs twice its length; the limit leaves enough room for
        # that.
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            self._reject(
                "yaml-too-many-nodes",
                f"more than {MAX_NODES} keys and values (aliases count as their content)",
                position,
                "Check that this is the right file; a provider.yaml has a few hundred lines.",
            )

    def _characters(self, text: str, position: tuple[int, int]) -> None:
        if match := UNPRINTABLE.search(text):
            message = f"the text contains the character U+{ord(match[0]):04X}"
            hint = "Remove it: control and direction characters are not allowed."
            self._report("yaml-control-character", message, position, hint)

    def _report(self, id: str, message: str, position: tuple[int, int], hint: str) -> None:
        self.findings.append(self._finding(id, message, position, hint))
        # Text in another format has a problem on every line; the first ones are enough.
        if len(self.findings) >= MAX_PROBLEMS:
            hint = "Correct those above first."
            self._reject(
                "yaml-too-many-problems", "too many errors: the rest is not shown", position, hint
            )

    def _reject(self, id: str, message: str, position: tuple[int, int], hint: str) -> NoReturn:
        raise Rejected(self._finding(id, message, position, hint))

    def _finding(self, id: str, message: str, position: tuple[int, int], hint: str) -> Finding:
        return Finding(id, message, Location(self.file, *position), hint=hint)


def _depth(data: Any) -> int:
    # Safe to recurse: `_node` has refused anything deeper than MAX_DEPTH.
    """Return the nesting depth of mappings and lists, which was limited before."""
    if not isinstance(data, dict | list):
        return 0
    children = data.values() if isinstance(data, dict) else data
    return 1 + max(map(_depth, children), default=0)


def _number(text: str, kind: str) -> int | float | None:
    try:
        constructor = yaml.constructor.SafeConstructor()
        node = yaml.ScalarNode(f"tag:yaml.org,2002:{kind}", text)
        if kind == "int":
            return constructor.construct_yaml_int(node)
        return constructor.construct_yaml_float(node)
    except (ValueError, OverflowError):
        return None


def _kind(tag: str) -> str:
    kind = tag.rpartition(":")[2]
    return {"bool": "a boolean", "null": "nothing (null)"}.get(kind, "a number")


def _is_mapping(event: Any) -> bool:
    return isinstance(event, yaml.MappingStartEvent)


def _position(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1
