"""A report as plain data.  Knows no command, no disk and no clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from capsmith.findings import Location

LINES_AROUND = 3
"""Lines that an excerpt shows before and after the marked line."""


class Excerpt(NamedTuple):
    """Consecutive lines of a file, one of which is marked."""

    first: int
    """Number of the first line."""
    lines: tuple[str, ...]
    marked: int
    """Number of the marked line."""


class Entry(NamedTuple):
    """One finding, with everything that a reader needs to understand and mend it."""

    id: str
    message: str
    location: Location = Location("")
    subject: str = ""
    """Kind and name of the object."""
    path: str = ""
    """Place in the object, such as ``spec.versions[0].name``."""
    rule: str = ""
    """The violated rule in words."""
    when: str = ""
    """Condition under which the consequence follows; empty if it always does."""
    releases: tuple[str, ...] = ()
    """Releases of core that are affected; empty if that is not known."""
    hint: str = ""
    link: str = ""
    """URL of the rule's source."""
    excerpt: Excerpt | None = None


class Group(NamedTuple):
    """Findings that have the same consequence."""

    consequence: str
    """What happens, and to whom; empty if that is not known."""
    entries: tuple[Entry, ...]


class Section(NamedTuple):
    """Findings of one class, such as everything that breaks."""

    title: str
    groups: tuple[Group, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return the findings of all groups, in order."""
        return tuple(entry for group in self.groups for entry in group.entries)


class Fact(NamedTuple):
    """A line of the head of a report, such as a version."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report: the sentence of verdict, what was judged, findings, and what held."""

    title: str
    verdict: str
    """One sentence."""
    has_failed: bool
    facts: tuple[Fact, ...] = ()
    command: str = ""
    """Command line that repeats the report."""
    sections: tuple[Section, ...] = ()
    releases: tuple[str, ...] = ()
    """Releases of core that were judged: the columns of the matrix; empty for no matrix."""
    notes: tuple[str, ...] = ()
    """What was not judged, with reasons."""
    held: tuple[Fact, ...] = ()
    """What was checked and found no violation: id, and rule or check in words."""
    held_title: str = "Checks that passed"
    held_note: str = "Show all"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return all findings, in the order of their numbers, which start at 1."""
        return tuple(entry for section in self.sections for entry in section.entries)


class MatrixRow(NamedTuple):
    """The findings of one rule: for each release, the numbers of those that affect it."""

    id: str
    cells: tuple[tuple[int, ...], ...]


def make_matrix(page: ReportPage) -> tuple[MatrixRow, ...]:
    """Return one row for each violated rule, sorted by id, with one cell for each release.

    A finding without known releases affects all of them.
    """
    numbers: dict[str, list[tuple[int, Entry]]] = {}
    for number, entry in enumerate(page.entries, 1):
        numbers.setdefault(entry.id, []).append((number, entry))
    return tuple(
        MatrixRow(
            id,
            tuple(
                tuple(n for n, entry in found if not entry.releases or release in entry.releases)
                for release in page.releases
            ),
        )
        for id, found in sorted(numbers.items())
    )


def make_excerpt(text: str, line: int) -> Excerpt | None:
    """Return the lines of ``text`` around a line number, or None if there is no such line."""
    lines = text.split("\n", line + LINES_AROUND)[: line + LINES_AROUND]
    if not 1 <= line <= len(lines):
        return None
    first = max(line - LINES_AROUND, 1)
    return Excerpt(first, tuple(each.removesuffix("\r") for each in lines[first - 1 :]), line)
