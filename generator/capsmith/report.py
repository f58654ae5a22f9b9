"""The result of a run: findings and file outcomes, from which the exit code follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from capsmith.findings import Finding, has_errors, sort_findings


class Outcome(StrEnum):
    """What a run did, or would do, with a file."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    MERGED = "merged"
    CONFLICTED = "conflicted"
    REMOVED = "removed"
    REFUSED = "refused"


class FileOutcome(NamedTuple):
    """A file (path relative to the provider repository) and its outcome."""

    path: str
    outcome: Outcome
    diff: str = ""
    """A unified diff of the change, if requested."""


class RuntimeOutcome(NamedTuple):
    """What a run did with the runtime library of a repository, which is replaced as a whole."""

    outcome: Outcome
    mode: str
    """``vendored`` or ``package``."""
    version: str
    former_version: str = ""
    """Empty when there was none."""


@dataclass(frozen=True, slots=True)
class Report:
    """Findings in reading order, outcomes by path, and the outcome for the runtime library.

    Only this class sorts findings and drops duplicates: stages collect them in any order, and the
    output does not depend on that order.
    """

    findings: tuple[Finding, ...] = ()
    outcomes: tuple[FileOutcome, ...] = ()
    """Without the files of the vendored runtime, unless they are refused."""
    runtime: RuntimeOutcome | None = None
    is_first: bool = False
    """Whether the run made a repository where there was none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "findings", sort_findings(self.findings))

    def with_findings(self, findings: tuple[Finding, ...]) -> Report:
        """Return a copy of the report with additional findings."""
        return replace(self, findings=(*self.findings, *findings))

    @property
    def exit_code(self) -> int:
        """Return 0 for success and 1 for findings; unreadable input (2) is an exception."""
        refused = {Outcome.REFUSED, Outcome.CONFLICTED}
        if has_errors(self.findings) or any(o.outcome in refused for o in self.outcomes):
            return 1
        return 0

    def count(self, outcome: Outcome) -> int:
        """Return the number of files with an outcome."""
        return sum(1 for file in self.outcomes if file.outcome is outcome)
