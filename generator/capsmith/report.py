"""The result of a run: findings and what happened to each file; the exit code follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from capsmith.findings import Finding, has_errors, sort_findings


class Outcome(StrEnum):
    """The action of a run on one file, done or planned."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    MERGED = "merged"
    CONFLICTED = "conflicted"
    REMOVED = "removed"
    REFUSED = "refused"


class FileOutcome(NamedTuple):
    """One file (path relative to the provider repository) and its outcome."""

    path: str
    outcome: Outcome
    diff: str = ""
    """A unified diff of the change, if requested."""


class RuntimeOutcome(NamedTuple):
    """The action on the runtime library of a repository, which is replaced as a whole."""

    outcome: Outcome
    mode: str
    """``vendored`` or ``package``."""
    version: str
    former_version: str = ""
    """Empty when there was none."""


@dataclass(frozen=True, slots=True)
class Report:
    """Findings in order, outcomes by path, and what happened to the runtime library.

    The only place that sorts findings and drops repetitions: stages collect them as they come, and
    what a user sees does not depend on the order in which stages and checks run.
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
        """Return the report with further findings."""
        return replace(self, findings=(*self.findings, *findings))

    @property
    def exit_code(self) -> int:
        """Return 0 for success, 1 for findings; unreadable input (2) is an exception."""
        refused = {Outcome.REFUSED, Outcome.CONFLICTED}
        if has_errors(self.findings) or any(o.outcome in refused for o in self.outcomes):
            return 1
        return 0

    def count(self, outcome: Outcome) -> int:
        """Return the number of files with this outcome."""
        return sum(1 for file in self.outcomes if file.outcome is outcome)
