"""Problems in the input: data, never exceptions.

A wrong input is collected as :class:`Finding` values and shown all at once.  Nothing in this
module prints, reads files or knows where a finding came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """The severity of a finding: only an error fails a run."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """Return 0 for the most severe, rising."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A position in a file.  ``line`` and ``column`` count from 1; 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


class Finding(NamedTuple):
    """One problem or notice.

    ``id`` is stable: a contract rule id (``IC-05``) or an id in kebab case
    (``spec-unknown-key``).  ``message`` says what is wrong, ``hint`` what to do about it,
    ``link`` where the rule is written down.
    """

    id: str
    message: str
    location: Location
    severity: Severity = Severity.ERROR
    hint: str = ""
    link: str = ""

    @property
    def sort_key(self) -> tuple[str, int, int, int, str, str]:
        """Return the key of the reading order: file, line, column, then the most severe first."""
        where = self.location
        return (where.file, where.line, where.column, self.severity.rank, self.id, self.message)


def sort_findings(findings: list[Finding] | tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings without repetition, in the one order every output uses."""
    return tuple(sorted(set(findings), key=lambda finding: finding.sort_key))


def has_errors(findings: tuple[Finding, ...] | list[Finding]) -> bool:
    """Return whether a finding is an error."""
    return any(finding.severity is Severity.ERROR for finding in findings)
