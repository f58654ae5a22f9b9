"""A report as plain data. Independent of commands, the disk and the clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from capsmith.findings import Location

LINES_AROUND = 3
"""Number of lines that an excerpt shows before and after the marked line."""


class Excerpt(NamedTuple):
    """Consecutive lines from a file, one of which is marked."""

    first: int
    """Number of the first line in the file (1-based)."""
    lines: tuple[str, ...]
    marked: int
    """Number of the marked line in the file (1-based)."""


class Moment(NamedTuple):
    """A change to an object during a conformance check."""

    seconds: float
    """Time of the change in seconds since the check began; negative if it was earlier."""
    what: str
    writer: str = ""
    """Who wrote the change; empty if unknown."""


class Life(NamedTuple):
    """The changes to one object during a conformance check, in order."""

    subject: str
    """The object's kind and name."""
    moments: tuple[Moment, ...]


class Log(NamedTuple):
    """The last lines of a manager's log, as a report shows them."""

    name: str
    lines: tuple[str, ...]


class Entry(NamedTuple):
    """One finding, with everything that a reader needs to understand and fix it."""

    id: str
    message: str
    location: Location = Location("")
    subject: str = ""
    """The object's kind and name."""
    path: str = ""
    """Field path in the object, such as ``spec.versions[0].name``."""
    rule: str = ""
    """The violated rule in words."""
    when: str = ""
    """Condition under which the consequence occurs; empty if it always occurs."""
    releases: tuple[str, ...] = ()
    """Affected core releases; empty if unknown."""
    hint: str = ""
    link: str = ""
    """URL of the rule's source."""
    excerpt: Excerpt | None = None
    details: tuple[str, ...] = ()
    """Lines about what was found, such as an object's conditions."""
    folder: str = ""
    """Folder of the release that contains the finding, if several releases were checked."""
    lives: tuple[Life, ...] = ()
    """The changes to the objects that the check is about."""
    logs: tuple[Log, ...] = ()


class Group(NamedTuple):
    """Findings in a report that have the same consequence."""

    consequence: str
    """The consequence, and whom it affects; empty if unknown."""
    entries: tuple[Entry, ...]


class Section(NamedTuple):
    """A report's findings in one class, such as all breaking violations."""

    title: str
    groups: tuple[Group, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return all groups' findings, in order."""
        return tuple(entry for group in self.groups for entry in group.entries)


class Fact(NamedTuple):
    """A line at the top of a report, such as a version."""

    name: str
    value: str
    lives: tuple[Life, ...] = ()
    """The changes to the objects that a passed check was about."""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report: the verdict, what was checked, the findings, and the checks that passed."""

    title: str
    verdict: str
    """The verdict in one sentence."""
    has_failed: bool
    facts: tuple[Fact, ...] = ()
    command: str = ""
    """Command line that produces the report again."""
    sections: tuple[Section, ...] = ()
    releases: tuple[str, ...] = ()
    """Core releases that were checked, as matrix columns; empty for no matrix."""
    folders: tuple[tuple[str, str], ...] = ()
    """Folder and one-sentence verdict for each checked release, if there are several."""
    notes: tuple[str, ...] = ()
    """Parts that were not checked, with the reasons."""
    held: tuple[Fact, ...] = ()
    """Checks that found no violation: the id, and a description of the rule or check."""
    held_title: str = "Checks that passed"
    held_note: str = "Show all"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return all findings, ordered by their number in the report."""
        return tuple(entry for section in self.sections for entry in section.entries)


class Point(NamedTuple):
    """A :class:`Moment` and its position on a report's time axis."""

    moment: Moment
    x: float
    """Position between 0 and 1,000."""


class Axis(NamedTuple):
    """Changes to several objects on a report's common time axis."""

    zero: float
    """Position at which the check began, between 0 and 1,000."""
    lives: tuple[tuple[str, tuple[Point, ...]], ...]
    """Each object's name and its points."""


def make_axis(lives: tuple[Life, ...]) -> Axis:
    """Arrange changes on a time axis that ends with the last change.

    The axis begins with the first change or with the start of the check, whichever is earlier.
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
    """One rule's findings: for each column, the numbers of the findings."""

    id: str
    cells: tuple[tuple[int, ...], ...]

    def list_columns(self, columns: Sequence[str], cell: tuple[int, ...]) -> tuple[str, ...]:
        """Return the columns whose finding numbers are exactly those in ``cell``."""
        return tuple(
            column for column, each in zip(columns, self.cells, strict=True) if each == cell
        )


def make_matrix(page: ReportPage) -> tuple[MatrixRow, ...]:
    """Return one row for each violated rule, sorted by id, with one cell for each core release.

    A finding whose releases are unknown counts for all releases.
    """
    columns = page.releases
    return _make_rows(page, columns, lambda each, of: not each.releases or of in each.releases)


def make_folder_matrix(page: ReportPage) -> tuple[MatrixRow, ...]:
    """Return one row for each violated rule, sorted by id, with one cell for each checked release.

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
    """Return the lines in ``text`` around a line number, or None if there is no such line."""
    lines = text.split("\n", line + LINES_AROUND)[: line + LINES_AROUND]
    if not 1 <= line <= len(lines):
        return None
    first = max(line - LINES_AROUND, 1)
    return Excerpt(first, tuple(each.removesuffix("\r") for each in lines[first - 1 :]), line)
