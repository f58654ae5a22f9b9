"""Read release files as objects with variables replaced, and map positions to the original text.

``${VARIABLES}`` are replaced with sample values in the same way as clusterctl replaces them. Each
position in the resulting text can be traced back to the original.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml

from capsmith.findings import Finding, Location
from capsmith.manifests.bundle import Artefact, classify_manifest
from capsmith.manifests.parse import SAMPLE, Manifest, compose_document, read_substituted
from capsmith.manifests.variables import (
    RefusedForm,
    Substitution,
    expand,
    parse_pieces,
    remove_blanks,
)
from capsmith.progress import track
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.document import find_line_starts, split_lines
from capsmith.yamldoc.layout import find_nearest_mark

_KNOWN = {
    "CLUSTER_NAME": "sample",
    "NAMESPACE": "default",
    "KUBERNETES_VERSION": "v1.34.0",  # any version does: what is judged is the form
    "CONTROL_PLANE_MACHINE_COUNT": "1",
    "WORKER_MACHINE_COUNT": "1",
}


@dataclass(slots=True)
class Substituted:
    """Text with variables replaced by sample values, and a map to original positions."""

    text: str
    original: str
    refused: int = 0
    """Offset in ``original``, plus 1, of the first substitution that clusterctl rejects, or 0."""
    _starts: list[int] = field(default_factory=list)
    """Offsets in ``text`` at which the values of variables start, in ascending order."""
    _values: list[tuple[int, int, int]] = field(default_factory=list)
    """For each value: its end offset in ``text``, and the variable's start and end in
    ``original``."""
    _lines: list[int] = field(default_factory=list)
    _original_lines: list[int] = field(default_factory=list)

    def position(self, line: int, column: int) -> tuple[int, int]:
        """Return the original line and column for a line and column in ``text`` (all 1-based)."""
        if not self._starts:
            return line, column
        if not self._lines:
            self._lines = find_line_starts(self.text)
        original_lines = self._find_original_lines()
        offset = self._lines[min(line, len(self._lines)) - 1] + column - 1
        number = bisect.bisect_right(self._starts, offset) - 1
        # Positions before the first value are the same in both texts.
        if number >= 0:
            end, start_before, end_before = self._values[number]
            # Inside a value, return the variable itself; after a value, keep the distance from the
            # variable.
            offset = start_before if offset < end else offset - end + end_before
        found = bisect.bisect_right(original_lines, offset)
        return found, offset - original_lines[found - 1] + 1

    def read_original(self, first: int, last: int) -> tuple[str, ...]:
        """Return the original lines from ``first`` to ``last`` (1-based), as far as they exist."""
        starts = self._find_original_lines()
        begin, end = (
            starts[number] if number < len(starts) else len(self.original)
            for number in (first - 1, last)
        )
        return tuple(split_lines(self.original[begin:end]))

    def _find_original_lines(self) -> list[int]:
        if not self._original_lines:
            self._original_lines = find_line_starts(self.original)
        return self._original_lines


def substitute(text: str, alone: str = SAMPLE) -> Substituted:
    """Replace the variables in ``text`` with sample values.

    A variable without a default becomes :data:`SAMPLE`, or ``alone`` if nothing else is on its
    line, because such a variable often represents a whole block.  Substitutions that clusterctl
    rejects are kept.
    """
    if "$" not in text:
        return Substituted(text, text)
    plain = remove_blanks(text)
    result = Substituted("", plain)
    parts: list[str] = []
    length = position = 0
    for piece in parse_pieces(plain):
        if isinstance(piece, str):
            start, value = position, piece
            # A dollar may be written as two; other text keeps its length.
            position += 2 if piece == "$" and plain.startswith("$$", position) else len(piece)
        elif isinstance(piece, RefusedForm):
            start, value, position = piece.start, SAMPLE, piece.end
            result.refused = result.refused or start + 1
        else:
            start, value, position = piece.start, _value(piece), piece.end
            if value == SAMPLE and _is_alone(plain, start, position):
                value = alone
        if len(value) != position - start or not isinstance(piece, str):
            result._starts.append(length)
            result._values.append((length + len(value), start, position))
        parts.append(value)
        length += len(value)
    result.text = "".join(parts)
    return result


def _value(piece: Substitution) -> str:
    names = [each.name for each in (piece, *piece.inner) if not each.has_default]
    values = {name: _KNOWN.get(name, SAMPLE) for name in names}
    # An unknown value must stay recognizable: a substring or replacement of the sample would hide
    # that it is unknown.  A length is always a number.
    if values.get(piece.name) == SAMPLE:
        return "1" if piece.operator == "#" and not piece.arguments else SAMPLE
    try:
        return expand(piece, values)
    except ValueError:
        return SAMPLE


def _is_alone(text: str, start: int, end: int) -> bool:
    before = text[text.rfind("\n", 0, start) + 1 : start]
    line_end = text.find("\n", end)
    return not before.strip() and not text[end : line_end if line_end >= 0 else None].strip()


_NEXT_DOCUMENT = re.compile(r"\n---(?=[ \t\r\n]|\Z)")
_NEAR = 2
"""Number of lines around a syntax error in which an unknown block may be the cause."""


class SourceFile(NamedTuple):
    """A file that `capsmith verify` checks, with its name and text."""

    name: str
    text: str
    alone: bool = False
    """Whether the user passed this file, not its folder, so that neighbours were not read."""


@dataclass
class ReleaseFiles:
    """The files in one or more releases, both as objects and as source text."""

    manifests: tuple[Manifest, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Findings about files that cannot be read."""
    texts: dict[str, Substituted] = field(default_factory=dict)
    alone: set[str] = field(default_factory=set)
    """Names of the files whose neighbouring files were not read."""
    left_out: tuple[str, ...] = ()
    """Notes on the parts of a source tree that are not checked: folders and kustomizations."""
    _nodes: dict[tuple[str, int], yaml.Node | None] = field(default_factory=dict)
    _starts: dict[str, list[int]] = field(default_factory=dict)
    """Where the lines of each file begin, as there may be violations in thousands of documents."""

    def locate(self, manifest: Manifest, path: Path) -> Location:
        """Return the original position of ``path``, or of its nearest existing parent."""
        text = self.texts.get(manifest.file)
        if text is None:
            return manifest.location
        line, column = manifest.line, 1
        if path:
            mark = find_nearest_mark(self._node(manifest, text), path)
            if mark is not None:
                line, column = mark.line + manifest.line, mark.column + 1
        return Location(manifest.file, *text.position(line, column))

    def add(self, file: SourceFile) -> tuple[Manifest, ...]:
        """Return the objects in a further file, and keep its text to locate them."""
        found, _, self.texts[file.name] = read_file(file)
        return found

    def _node(self, manifest: Manifest, text: Substituted) -> yaml.Node | None:
        """Return a document's YAML nodes, composed when the file's first violation is located."""
        key = (manifest.file, manifest.line)
        if key not in self._nodes:
            # Only this document is composed, because a components file has megabytes of CRDs.
            if manifest.file not in self._starts:
                self._starts[manifest.file] = find_line_starts(text.text)
            starts = self._starts[manifest.file]
            start = starts[manifest.line - 1] if manifest.line <= len(starts) else len(text.text)
            end = _NEXT_DOCUMENT.search(text.text, start)
            part = text.text[start : end.start() + 1 if end is not None else None]
            self._nodes[key] = compose_document(part)
        return self._nodes[key]


def read_release(files: Iterable[SourceFile]) -> ReleaseFiles:
    """Parse the files of a release, replacing variables with sample values."""
    release = ReleaseFiles()
    manifests: list[Manifest] = []
    findings: list[Finding] = []
    for file in track("reading file", tuple(files)):
        found, wrong, text = read_file(file)
        release.texts[file.name] = text
        if file.alone:
            release.alone.add(file.name)
        manifests.extend(found)
        if not found and not wrong and is_release_asset(file.name):
            findings.append(_empty(file.name))
        # Other files of a source tree may be patches or values, which no tool reads as manifests.
        if file.alone or is_release_asset(file.name):
            findings.extend(wrong)
    release.manifests, release.findings = tuple(manifests), tuple(findings)
    return release


def read_file(
    file: SourceFile, resume: bool | None = None
) -> tuple[tuple[Manifest, ...], tuple[Finding, ...], Substituted]:
    """Return the objects in a file, findings about what cannot be read, and its substituted text.

    ``resume`` is whether to go on after a document that cannot be parsed; by default, as in files
    that clusterctl reads.  Other files of a source tree may be no YAML.
    """
    if resume is None:
        resume = file.alone or is_release_asset(file.name)
    # clusterctl does not replace variables in metadata.yaml.
    plain = file.name.replace("\\", "/").rpartition("/")[2] == "metadata.yaml"
    text = Substituted(file.text, file.text) if plain else substitute(file.text)
    found, wrong = read_substituted(text.text, file.name, file.text, resume=resume)
    if wrong and SAMPLE in text.text:
        # A variable that is alone on its line may represent a block, or nothing.
        text = substitute(file.text, alone="")
        found, wrong = read_substituted(text.text, file.name, file.text, resume=resume)
        # An error near such a variable may come from its value, and then it is not the provider's
        # error.
        wrong = tuple(each for each in wrong if not _near_sample(text, each))
    if text.refused and not found:
        wrong = (_refused(file.name, text), *wrong)
    moved = (each._replace(location=_original(text, each.location)) for each in wrong)
    return found, tuple(moved), text


def _empty(file: str) -> Finding:
    """Return the finding on an asset without objects, such as the output of a failed build."""
    return Finding(
        "manifest-empty",
        "the file contains no objects",
        Location(file, 1, 1),
        hint="Build it again.",
    )


def _refused(file: str, text: Substituted) -> Finding:
    """Return the finding on a form that clusterctl refuses, in a file without objects."""
    before = text.original[: text.refused - 1]
    shown = text.original[text.refused - 1 :][:40].partition("\n")[0]
    return Finding(
        "manifest-variable",
        f"variable {shown} is malformed",
        Location(file, before.count("\n") + 1, 1),
        hint="Close the brace, or write $$ for a dollar.",
    )


def _near_sample(text: Substituted, finding: Finding) -> bool:
    """Return whether the unknown value of a variable may have caused ``finding``.

    True if such a value is on the line of the error, on the previous line if the error continues
    that line, or nearby and possibly a whole block.
    """
    lines, original = split_lines(text.text), split_lines(text.original)
    line = finding.location.line
    before, here = ("", *lines, "")[max(line, 1) - 1 : max(line, 1) + 1]
    if SAMPLE in here or (SAMPLE in before and _indent(here) > _indent(before)):
        return True
    near = range(max(line - _NEAR, 1), min(line + _NEAR, len(lines)) + 1)
    return any(
        not lines[number - 1].strip() and original[text.position(number, 1)[0] - 1].strip()
        for number in near
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _original(text: Substituted, location: Location) -> Location:
    if not location.line:
        return location
    return Location(location.file, *text.position(location.line, max(location.column, 1)))


def is_release_asset(name: str) -> bool:
    """Return whether clusterctl reads release files with this name."""
    return _classify(name) not in (Artefact.SOURCE, Artefact.ASIDE)


def is_components_file(name: str) -> bool:
    """Return whether clusterctl installs the content of files with this name."""
    return _classify(name) is Artefact.COMPONENTS


def _classify(name: str) -> Artefact:
    return classify_manifest(Manifest(name, 1, {"apiVersion": "v1", "kind": "Any"}))


def read_lines(texts: Mapping[str, Substituted], location: Location) -> tuple[str, ...]:
    """Return the original line at a location, preceded by the previous line if there is one.

    Empty if the file or the line is unknown.
    """
    text = texts.get(location.file)
    if text is None or not location.line:
        return ()
    return text.read_original(max(location.line - 1, 1), location.line)
