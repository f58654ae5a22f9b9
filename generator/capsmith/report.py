"""The result of a run: findings and file outcomes, which determine the exit code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from capsmith.findings import Finding, has_errors, sort_findings


class Outcome(StrEnum):
    """What a run did, or would do, to a file."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    MERGED = "merged"
    CONFLICTED = "conflicted"
    REMOVED = "removed"
    REFUSED = "refused"


class FileOutcome(NamedTuple):
    """A file's path, relative to the provider's repository, and its outcome."""

    path: str
    outcome: Outcome
    diff: str = ""
    """Unified diff of the change, if requested; otherwise empty."""


class RuntimeOutcome(NamedTuple):
    """What a run did to a repository's runtime library, which is replaced as a whole."""

    outcome: Outcome
    mode: str
    """``vendored`` or ``package``."""
    version: str
    former_version: str = ""
    """The library's version before the run; empty if there was none."""


@dataclass(frozen=True, slots=True)
class Report:
    """Sorted findings, file outcomes by path, and the outcome for the runtime library.

    Only this class sorts findings and removes duplicates. Stages may collect findings in any order
    without affecting the output.
    """

    findings: tuple[Finding, ...] = ()
    outcomes: tuple[FileOutcome, ...] = ()
    """Outcomes by file. The vendored runtime's files are included only if they were refused."""
    runtime: RuntimeOutcome | None = None
    is_first: bool = False
    """Whether the run created a new repository."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "findings", sort_findings(self.findings))

    def with_findings(self, findings: tuple[Finding, ...]) -> Report:
        """Return a copy of the report with the given findings added."""
        return replace(self, findings=(*self.findings, *findings))

    @property
    def exit_code(self) -> int:
        """Return 1 if any finding is an error or any file was refused or has conflicts, else 0.

        Exit code 2, for unreadable input, comes from an exception instead.
        """
        refused = {Outcome.REFUSED, Outcome.CONFLICTED}
        if has_errors(self.findings) or any(o.outcome in refused for o in self.outcomes):
            return 1
        return 0

    def count(self, outcome: Outcome) -> int:
        """Return the number of files with the given outcome."""
        return sum(1 for file in self.outcomes if file.outcome is outcome)
