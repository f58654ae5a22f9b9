"""What capsmith has to say about somebody's input: data, never exceptions.

A wrong input is collected as :class:`Finding` values and shown all at once.  Nothing in this
module prints, reads files or knows where a finding came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding weighs: only an error makes the answer *no*."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the gravest, rising."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """Where in a file.  ``line`` and ``column`` count from 1; 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or worth saying.

    ``id`` is stable: a contract rule id (``IC-05``) or a kebab-case id of capsmith's own
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
        """Order of reading: file, line, column, then the gravest first."""
        where = self.location
        return (where.file, where.line, where.column, self.severity.rank, self.id, self.message)


def ordered(findings: list[Finding] | tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings without repetition, in the one order every output uses."""
    return tuple(sorted(set(findings), key=lambda finding: finding.sort_key))


def has_errors(findings: tuple[Finding, ...] | list[Finding]) -> bool:
    """Whether the answer is *no*."""
    return any(finding.severity is Severity.ERROR for finding in findings)
