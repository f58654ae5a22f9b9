"""The result of a run: findings and what happened to each file; the exit code follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from capsmith.findings import Finding, has_errors


class Outcome(StrEnum):
    """What a run did, or would do, to one file."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    MERGED = "merged"
    CONFLICTED = "conflicted"
    REMOVED = "removed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """One file (path relative to the provider repository) and its outcome."""

    path: str
    outcome: Outcome
    diff: str = ""
    """A unified diff of what changes, if one was asked for."""


@dataclass(frozen=True, slots=True)
class Report:
    """Findings in order, outcomes by path."""

    findings: tuple[Finding, ...] = ()
    outcomes: tuple[FileOutcome, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 done, 1 the answer is no.  (2, unreadable input, travels as an exception.)"""
        refused = {Outcome.REFUSED, Outcome.CONFLICTED}
        if has_errors(self.findings) or any(o.outcome in refused for o in self.outcomes):
            return 1
        return 0

    def count(self, outcome: Outcome) -> int:
        """How many files ended so."""
        return sum(1 for file in self.outcomes if file.outcome is outcome)
