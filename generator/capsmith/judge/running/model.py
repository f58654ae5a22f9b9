"""Checks and their results, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from capsmith.shorten import shorten, shorten_lines

S = TypeVar("S")
"""The type of session passed to a role's checks."""


class Violated(Exception):
    """Raised by a failed check, with the violation, the object and a hint for fixing it."""

    def __init__(self, message: str, subject: str = "", path: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.subject = subject
        self.path = path
        self.hint = hint


class Skipped(Exception):
    """Raised by a check that cannot run. The message is the reason."""


class CheckOutcome(StrEnum):
    """The outcome of a conformance check."""

    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"
    """The manager ignores a recommendation (a rule with level SHOULD or MAY)."""
    SKIPPED = "skipped"


@dataclass(frozen=True)
class ConformanceCheck(Generic[S]):
    """A check on a running manager's behaviour, as part of `capsmith conformance`."""

    name: str
    """Unique name in kebab case."""
    title: str
    """The expected behaviour of the manager, as a sentence."""
    rules: tuple[str, ...]
    """Ids, in all contract versions, of the rules that are violated if the check fails."""
    run: Callable[[S], None]
    """Function that runs the check; it may raise Violated or Skipped."""


class ObjectChange(NamedTuple):
    """A change to an object, made by its manager, by core or by the run."""

    seconds: float
    """When the change was seen, in seconds since the check began; negative if earlier."""
    what: str
    """Description of the change, without secret values."""
    path: str = ""
    """Path to the changed field; empty if the change concerns the whole object."""
    writer: str = ""
    """Field manager that wrote the change, according to managed fields; empty if unknown."""


class ObjectLife(NamedTuple):
    """The changes to an object from its creation to the end of a check."""

    subject: str
    """The object, in the form `Kind namespace/name`."""
    changes: tuple[ObjectChange, ...]


class LogPart(NamedTuple):
    """The lines that a manager logged during a check, without secret values."""

    manager: str
    lines: tuple[str, ...]


class CheckResult(NamedTuple):
    """The outcome of one conformance check, and the reason."""

    name: str
    title: str
    rules: tuple[str, ...]
    """Ids of the violated rules in the provider's contract version."""
    outcome: CheckOutcome
    message: str = ""
    """What happened, or why the check was skipped."""
    subject: str = ""
    """Object that was checked, in the form `Kind namespace/name`."""
    path: str = ""
    """Path to the field in the object."""
    hint: str = ""
    links: tuple[str, ...] = ()
    """URLs of the violated rules' sources."""
    seconds: float = 0.0
    lives: tuple[ObjectLife, ...] = ()
    """The changes to each object that the check created or read."""
    lives_left_out: int = 0
    """Number of other objects whose changes are not included."""
    logs: tuple[LogPart, ...] = ()
    """Lines that the managers logged during the check; empty if it passed or was skipped."""

    def shorten(self) -> CheckResult:
        """Return the result with what comes from objects shortened, for a report."""
        return self._replace(
            message=shorten_lines(self.message),
            subject=shorten(self.subject),
            path=shorten(self.path),
        )


@dataclass(frozen=True)
class Timing:
    """Waiting times for checks, in seconds.

    A successful run rarely needs much of ``patience`` but always waits for all of ``quiet``.
    """

    patience: float = 180.0
    """Maximum time to wait for a state that must be reached."""
    quiet: float = 3.0
    """Time to wait for a change that must not happen."""
    cleanup: float = 180.0
    """Maximum time to wait for deletions after the run, before finalizers are removed."""


@dataclass(frozen=True)
class ConformanceReport:
    """The results of all checks in one run of `capsmith conformance`."""

    provider: str
    contract: str
    results: tuple[CheckResult, ...]
    strict: bool = False
    """Whether warnings count as failures."""

    def count(self, outcome: CheckOutcome) -> int:
        """Return the number of results with the given outcome."""
        return sum(result.outcome is outcome for result in self.results)

    @property
    def exit_code(self) -> int:
        """Return 1 if a check failed or, in a strict run, ended with a warning; else 0."""
        warnings = self.count(CheckOutcome.WARNING) if self.strict else 0
        return int(self.count(CheckOutcome.FAILED) + warnings > 0)


class Selection(NamedTuple):
    """The checks to run, by name, rule or page of rules. If nothing is selected, all run."""

    select: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()

    def includes(self, check: ConformanceCheck[Any], rules: Mapping[str, object]) -> bool:
        """Return whether a check is selected, not ignored, and covers any of ``rules`` (by id)."""
        ids = {rule for rule in check.rules if rule in rules}
        names = {check.name, *ids, *(rule.partition("-")[0] for rule in ids)}
        if not ids or names & self.ignore:
            return False
        return not self.select or bool(names & self.select)
