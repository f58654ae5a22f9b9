"""A report as plain data. Independent of commands, the disk and the clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from capsmith.findings import Location

LINES_AROUND = 3
"""Number of lines that an excerpt shows before and after the marked line."""


class Excerpt(NamedTuple):
    """Consecutive lines of a file, one of which is marked."""

    first: int
    """Number of the first line in the file, starting at 1."""
    lines: tuple[str, ...]
    marked: int
    """Number of the marked line in the file, starting at 1."""


class Moment(NamedTuple):
    """A change of an object."""

    seconds: float
    """Time since the check began, in seconds; negative if the change was earlier."""
    what: str
    writer: str = ""
    """Who wrote the change; empty if unknown."""


class Life(NamedTuple):
    """The changes of an object in order."""

    subject: str
    """Kind and name of the object."""
    moments: tuple[Moment, ...]


class Log(NamedTuple):
    """The last lines of a log."""

    name: str
    lines: tuple[str, ...]


class Entry(NamedTuple):
    """One finding, with everything that a reader needs to understand and fix it."""

    id: str
    message: str
    location: Location = Location("")
    subject: str = ""
    """Kind and name of the object."""
    path: str = ""
    """Path in the object, such as ``spec.versions[0].name``."""
    rule: str = ""
    """The violated rule in words."""
    when: str = ""
    """Condition for the consequence; empty if there is always a consequence."""
    releases: tuple[str, ...] = ()
    """Affected releases of core; empty if they are not known."""
    hint: str = ""
    link: str = ""
    """URL of the rule's source."""
    excerpt: Excerpt | None = None
    folder: str = ""
    """Folder of the release with the finding, if several releases were judged."""
    lives: tuple[Life, ...] = ()
    """What happened to the objects of a check."""
    logs: tuple[Log, ...] = ()


class Group(NamedTuple):
    """Findings with the same consequence."""

    consequence: str
    """The consequence, and whom it affects; empty if it is not known."""
    entries: tuple[Entry, ...]


class Section(NamedTuple):
    """Findings of one class, such as all breaking violations."""

    title: str
    groups: tuple[Group, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return the findings of all groups, in order."""
        return tuple(entry for group in self.groups for entry in group.entries)


class Fact(NamedTuple):
    """A line in the head of a report, such as a version."""

    name: str
    value: str
    lives: tuple[Life, ...] = ()
    """What happened to the objects of a check that passed."""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report: the verdict, what was judged, the findings, and the checks that passed."""

    title: str
    verdict: str
    """The verdict in one sentence."""
    has_failed: bool
    facts: tuple[Fact, ...] = ()
    command: str = ""
    """Command line that repeats the report."""
    sections: tuple[Section, ...] = ()
    releases: tuple[str, ...] = ()
    """Releases of core that were judged, which are the matrix columns; empty for no matrix."""
    folders: tuple[tuple[str, str], ...] = ()
    """Folder of each judged release, if there are several, and its verdict in one sentence."""
    notes: tuple[str, ...] = ()
    """Parts that were not judged, with reasons."""
    held: tuple[Fact, ...] = ()
    """Checks that found no violation: the id, and the rule or check in words."""
    held_title: str = "Checks that passed"
    held_note: str = "Show all"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return all findings in the order of their numbers, which start at 1."""
        return tuple(entry for section in self.sections for entry in section.entries)


class Point(NamedTuple):
    """A moment and its place on the time axis."""

    moment: Moment
    x: float
    """Place between 0 and 1,000."""


class Axis(NamedTuple):
    """The changes of several objects on a common time axis."""

    zero: float
    """Place of the beginning of the check, between 0 and 1,000."""
    lives: tuple[tuple[str, tuple[Point, ...]], ...]
    """Each object with its points."""


def make_axis(lives: tuple[Life, ...]) -> Axis:
    """Arrange changes on an axis that ends with the last change.

    It begins with the first change or with the check, whichever is earlier.
    """
    times = [0.0, *(moment.seconds for life in lives for moment in life.moments)]
    begin, length = min(times), max(max(times) - min(times), 0.001)

    def place(seconds: float) -> float:
        return round((seconds - begin) / length * 1000, 1)

    return Axis(
        place(0.0),
        tuple(
            (life.subject, tuple(Point(each, place(each.seconds)) for each in life.moments))
            for life in lives
        ),
    )


class MatrixRow(NamedTuple):
    """The findings of one rule: for each column, the numbers of its findings."""

    id: str
    cells: tuple[tuple[int, ...], ...]

    def list_columns(self, columns: Sequence[str], cell: tuple[int, ...]) -> tuple[str, ...]:
        """Return the columns whose findings are exactly those of ``cell``."""
        return tuple(
            column for column, each in zip(columns, self.cells, strict=True) if each == cell
        )


def make_matrix(page: ReportPage) -> tuple[MatrixRow, ...]:
    """Return one row for each violated rule, sorted by id, with one cell for each release.

    A finding without known releases affects all releases.
    """
    columns = page.releases
    return _make_rows(page, columns, lambda each, of: not each.releases or of in each.releases)


def make_folder_matrix(page: ReportPage) -> tuple[MatrixRow, ...]:
    """Return one row for each violated rule, sorted by id, with one cell for each judged release.

    Findings in other files are left out.
    """
    columns = tuple(folder for folder, _ in page.folders)
    return _make_rows(page, columns, lambda each, of: each.folder == of)


def _make_rows(
    page: ReportPage, columns: tuple[str, ...], is_in: Callable[[Entry, str], bool]
) -> tuple[MatrixRow, ...]:
    numbers: dict[str, list[tuple[int, Entry]]] = {}
    for number, entry in enumerate(page.entries, 1):
        numbers.setdefault(entry.id, []).append((number, entry))
    return tuple(
        MatrixRow(
            id,
            tuple(tuple(n for n, entry in found if is_in(entry, column)) for column in columns),
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
