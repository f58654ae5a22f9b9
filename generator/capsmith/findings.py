"""Problems in the input, as data and never as exceptions.

All problems in an input are collected as :class:`Finding` values and shown together.  This module
neither prints nor reads files.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """A finding's severity. Only errors make a run fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """Return the severity as a number for sorting; 0 is the most severe."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A position in a file.

    ``line`` and ``column`` are 1-based. Line 0 means the whole file.
    """

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


class Finding(NamedTuple):
    """A problem or notice.

    ``id`` is stable: a contract rule id (``IC-05``) or an id in kebab case (``spec-unknown-key``).
    ``message`` describes the problem, ``hint`` explains what to do, and ``link`` is the URL of the
    rule's source.
    """

    id: str
    message: str
    location: Location
    severity: Severity = Severity.ERROR
    hint: str = ""
    link: str = ""

    @property
    def sort_key(self) -> tuple[str, int, int, int, str, str]:
        """Return a sort key: by file, line and column, then by severity (most severe first)."""
        where = self.location
        return (where.file, where.line, where.column, self.severity.rank, self.id, self.message)


def sort_findings(findings: list[Finding] | tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings without duplicates, sorted as in all output."""
    return tuple(sorted(set(findings), key=lambda finding: finding.sort_key))


def has_errors(findings: tuple[Finding, ...] | list[Finding]) -> bool:
    """Return whether any finding is an error."""
    return any(finding.severity is Severity.ERROR for finding in findings)
