"""Parse YAML into a :class:`Document`, plain data with positions, and report findings at its paths.

Limits are checked on parser events before anything is built, and an alias counts as everything that
it expands to, so hostile input is processed cheaply.  This module opens no files and does not
depend on a document's keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import yaml

from capsmith.findings import Finding, Location, Severity
from capsmith.yamldoc.compose import Composer, Mark, Path, Rejected
from capsmith.yamldoc.quote import quote

Position = tuple[int, int]
"""Line and column (1-based)."""

_OF_PLAIN_TEXT = re.compile(
    r"parsing a flow (mapping|sequence)|mapping values are not allowed|cannot start any token"
)
"""Pattern for those of PyYAML's messages to which a text without quotes may lead."""
_QUOTE = 'Write a text with such characters in quotes, as in `description: "Size: S, M or L"`.'

_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
"""Everything that begins a new line in YAML 1.1, and in the positions that its parsers report."""
_NEWLINE = re.compile("\n")
_OTHER_BREAKS = ("\r", "\x85", "\u2028", "\u2029")

_BLOCK = re.compile(r"\|([+-]?[1-9]?[+-]?)[ \t]*(#.*)?")


def find_line_starts(text: str) -> list[int]:
    """Return the index at which each line of a YAML text starts."""
    return [0, *(match.end() for match in _choose_break(text).finditer(text))]


def split_lines(text: str) -> list[str]:
    """Return the lines of a YAML text, without what ends them."""
    return _choose_break(text).split(text)


def _choose_break(text: str) -> re.Pattern[str]:
    # A search for one character takes a fraction of the time, and files have thousands of lines.
    return _BREAK if any(other in text for other in _OTHER_BREAKS) else _NEWLINE


def find_inside(source: str, start: Position, text: str, place: Position) -> Position | None:
    """Convert a position in a scalar's value to a position in the YAML source.

    ``start`` is the scalar's position in ``source``, ``text`` is its value, and ``place`` is the
    position in that value.  Returns None if the value is not literally in the source, for example
    because of escapes.
    """
    lines = source.split("\n")
    if start[0] > len(lines):
        return None
    # A block scalar is marked at its indicator.  Only the lines of a literal block (`|`) are
    # literally in the source; the lines of a folded block are joined.
    first = lines[start[0] - 1][start[1] - 1 :]
    if _BLOCK.fullmatch(first.rstrip("\r")):
        return _find_in_block(lines[start[0] :], start[0], text, place)
    # Only text on one line and without escapes has the same characters in the source.
    opening = 1 if first[:1] in ("'", '"') else 0
    if place[0] > 1 or not first.startswith(text, opening):
        return None
    return start[0], start[1] + opening + place[1] - 1


def _find_in_block(lines: list[str], line: int, text: str, place: Position) -> Position | None:
    """Return the position in a literal block, whose lines all have the same indentation."""
    # The chomping indicator, not the source, determines how many newlines end the value.
    content = text.rstrip("\n").split("\n")
    first = next((number for number, written in enumerate(content) if written), None)
    if first is None or len(lines) < len(content):
        return None
    # The first line with text determines the block's indentation; empty lines may have less.
    indent = lines[first].find(content[first])
    written = [row.rstrip("\r")[indent:] for row in lines[: len(content)]]
    if indent < 0 or written != content or place[0] > len(content):
        return None
    return line + place[0], indent + place[1]


MAX_CHARACTERS = 4 * 1024 * 1024
"""Maximum length of a YAML document, in characters."""


class Document(NamedTuple):
    """A YAML mapping as plain data (dict, list, str, int, float, bool, None), with positions."""

    file: str
    data: Mapping[str, Any]
    marks: Mapping[Path, Mark]
    text: str = ""
    """The document's source, which is searched for positions inside strings."""

    def key(self, path: Path) -> Location:
        """Return the position of the key at ``path``, or of its nearest existing parent."""
        mark = self._mark(path)
        return Location(self.file, *mark.key)

    def value(self, path: Path) -> Location:
        """Return the position of the value at ``path``, or of its nearest existing parent."""
        mark = self._mark(path)
        return Location(self.file, *mark.value)

    def inside(self, path: Path, line: int, column: int) -> Location:
        """Return the file position of a line and column (both 1-based) in the string at ``path``.

        Returns the value's position if escapes or folded lines make that impossible.
        """
        value: Any = self.data
        for step in path:
            value = value[step]
        mark = self._mark(path)
        found = find_inside(self.text, mark.value, str(value), (line, column))
        return Location(self.file, *(found or mark.value))

    def raw(self, path: Path) -> str | None:
        """Return the source of a plain (unquoted) scalar, or None for other values."""
        mark = self.marks.get(path)
        return mark.raw if mark else None

    def is_flow_mapping(self, path: Path) -> bool:
        """Return whether the mapping at ``path`` is written in braces."""
        mark = self.marks.get(path)
        return mark is not None and self._line(mark.value)[:1] == "{"

    def is_bare_key(self, path: Path) -> bool:
        """Return whether the key at ``path`` has neither a value nor a colon, as in ``{a: b, c}``.

        Only flow mappings can contain such keys.
        """
        mark = self.marks.get(path)
        if mark is None or mark.raw != "":
            return False
        written = self._line(mark.key)
        if mark.key[0] == mark.value[0]:
            written = written[: mark.value[1] - mark.key[1]]
        return not written.rstrip().endswith(":")

    def suggest_quotes(self, path: Path) -> str:
        """Return a hint if the key at ``path`` looks like a part of the text before it, else "".

        In braces, a comma ends a text without quotes; what follows becomes a key without a colon,
        or one with spaces.
        """
        parent = path[:-1]
        if not self.is_flow_mapping(parent):
            return ""
        if " " not in str(path[-1]) and not self.is_bare_key(path):
            return ""
        siblings: Any = self.data
        for step in parent:
            siblings = siblings[step]
        keys = list(siblings)
        for key in reversed(keys[: keys.index(path[-1])]):
            before = (*parent, key)
            if self.is_bare_key(before):
                continue
            if self.raw(before) and isinstance(siblings[key], str):
                return (
                    f"Quote the text of {quote(key)}: in braces, a comma outside of quotes ends it."
                )
            break
        return ""

    def _line(self, position: Position) -> str:
        """Return the source from ``position`` to the end of its line."""
        lines = self.text.split("\n", position[0])
        return lines[position[0] - 1][position[1] - 1 :] if len(lines) >= position[0] else ""

    def _mark(self, path: Path) -> Mark:
        for parent in _upwards(path):
            mark = self.marks.get(parent)
            if mark is not None:
                return mark
        return Mark(key=(1, 1), value=(1, 1))


def parse_document(text: str, file: str) -> tuple[Document | None, tuple[Finding, ...]]:
    """Parse YAML into a document, or return None and findings with the reasons for refusing it.

    ``file`` is the name to use in findings.  Invalid input does not raise an exception.  Finding
    ids: ``yaml-too-large``, ``yaml-syntax``, ``yaml-empty``, ``yaml-not-a-mapping``,
    ``yaml-several-documents`` and the ids in :mod:`capsmith.yamldoc.compose`.
    """
    # Checked before parsing, because the parser's reader scans all of the text first.
    if len(text) > MAX_CHARACTERS:
        too_large = Finding(
            "yaml-too-large",
            f"the file has more than {MAX_CHARACTERS} characters",
            _location(text, MAX_CHARACTERS, file),
            hint="Check that this is the right file; a provider.yaml has a few hundred lines.",
        )
        return None, (too_large,)
    loader: Any = None
    try:
        # Not CSafeLoader, which is faster but does not know the reader's position, at which errors
        # without a mark are reported.
        loader = yaml.SafeLoader(text)
        composer = Composer(_events(loader), file)
        data = composer.compose()
    except Rejected as rejected:
        return None, (rejected.finding,)
    except yaml.YAMLError as error:
        return None, (_syntax(error, text, file),)
    except (ValueError, OverflowError):  # PyYAML lets those of chr() and int() through
        hint = "Look for an escape such as \\UFFFFFFFF and for a %YAML line."
        message = "invalid YAML: an escape or a version number is out of range"
        where = Location(file, loader.line + 1, loader.column + 1)
        return None, (Finding("yaml-syntax", message, where, hint=hint),)
    if composer.findings:
        return None, tuple(composer.findings)
    return Document(file, data, composer.marks, text), ()


def _events(loader: Any) -> Iterator[Any]:
    # Like yaml.parse, but the loader's position stays known if it fails.
    while loader.check_event():
        yield loader.get_event()


def _location(text: str, index: int, file: str) -> Location:
    before = text[:index]
    return Location(file, before.count("\n") + 1, len(before) - before.rfind("\n"))


def _syntax(error: yaml.YAMLError, text: str, file: str) -> Finding:
    hint = "Check the indentation, quotes and brackets here and just before."
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
        message = ", ".join(part for part in (error.context, error.problem) if part)
        if mark and text[mark.index : mark.index + 1] == "\t":
            hint = "Indent with spaces: YAML allows no tabs here."
        elif _OF_PLAIN_TEXT.search(message):
            hint = f"{_QUOTE} {hint}"
        return Finding("yaml-syntax", f"invalid YAML: {message}", where, hint=hint)
    if isinstance(error, yaml.reader.ReaderError):
        where = _location(text, error.position, file)
        message = f"the character U+{int(error.character):04X} is not allowed in YAML"
        return Finding("yaml-control-character", message, where, hint="Remove the character.")
    return Finding("yaml-syntax", "invalid YAML", Location(file), hint=hint)


def _upwards(path: Path) -> Iterator[Path]:
    for length in range(len(path), -1, -1):
        yield path[:length]


@dataclass(frozen=True, slots=True)
class PathReporter:
    """Reports findings at a path in a document, or at paths below it.

    Reporters for the same document append to the same list ``findings``, so checks return nothing.
    The list is unsorted and may contain duplicates; :class:`capsmith.report.Report` removes them.

    Example::

        findings: list[Finding] = []
        top = PathReporter(document, (), findings)
        top.at("releases").add_error("release-order", message, hint, "v0.1")
    """

    document: Document
    path: Path
    findings: list[Finding]
    correlated: bool = True
    """Whether the API server can match old and new values at the path.

    Inside atomic lists, it cannot.
    """
    bounded: bool = True
    """Whether all lists and maps that contain the path have a maximum size."""

    def at(self, *below: str | int) -> PathReporter:
        """Return a reporter for the path ``below`` this one, with the same list of findings."""
        return replace(self, path=self.path + below)

    def add_error(self, id: str, message: str, hint: str, *below: str | int) -> None:
        """Report an error at the value at this path or, if given, at the path ``below`` it.

        If the document lacks the path, the error is reported at its nearest existing parent.
        """
        self._add(Severity.ERROR, id, message, hint, self.document.value(self.path + below))

    def add_error_inside(
        self, id: str, message: str, hint: str, position: tuple[int, int] | None
    ) -> None:
        """Report an error at a line and column (both 1-based) inside the string at this path.

        If ``position`` is None, the error applies to the whole value.
        """
        where = self.document.value(self.path)
        if position is not None:
            where = self.document.inside(self.path, *position)
        self._add(Severity.ERROR, id, message, hint, where)

    def add_warning(self, id: str, message: str, hint: str, *below: str | int) -> None:
        """Report a warning at the value at this path or, if given, at the path ``below`` it."""
        self._add(Severity.WARNING, id, message, hint, self.document.value(self.path + below))

    def add_error_at_key(self, id: str, message: str, hint: str, *below: str | int) -> None:
        """Report an error at the key at this path or, if given, at the path ``below`` it."""
        self._add(Severity.ERROR, id, message, hint, self.document.key(self.path + below))

    def add_warning_at_key(self, id: str, message: str, hint: str, *below: str | int) -> None:
        """Report a warning at the key at this path or, if given, at the path ``below`` it."""
        self._add(Severity.WARNING, id, message, hint, self.document.key(self.path + below))

    def _add(self, severity: Severity, id: str, message: str, hint: str, where: Location) -> None:
        self.findings.append(Finding(id, message, where, severity, hint))
