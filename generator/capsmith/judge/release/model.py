"""The results of verify, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from capsmith.contract.model import EffectClass, Rule
from capsmith.findings import Finding, Location, Severity
from capsmith.judge.release.targets import Core
from capsmith.manifests.parse import Manifest
from capsmith.yamldoc.compose import Path, format_path

_SEVERITIES = {
    EffectClass.BREAKS: Severity.ERROR,
    EffectClass.BREAKS_WHEN: Severity.WARNING,
    EffectClass.ADVICE: Severity.INFO,
}
_ORDER = list(EffectClass)


class Breach(NamedTuple):
    """A place where a release violates a rule, before the rule's effect is known."""

    rule: str
    manifest: Manifest
    message: str
    path: Path = ()
    """Where it is in the object."""
    cores: tuple[Core, ...] = ()
    """The releases of core in which it matters; empty: all."""


class ReleaseViolation(NamedTuple):
    """A rule that a release violates, with the consequences."""

    id: str
    """A rule id, or an id in kebab case for a file that cannot be read."""
    effect: EffectClass
    message: str
    location: Location
    subject: str
    """The object: its kind and name."""
    path: Path = ()
    """Where it is in the object."""
    consequence: str = ""
    when: str = ""
    """The condition of ``breaks-when``."""
    cores: tuple[Core, ...] = ()
    """The releases of core in which it holds, of those in the target."""
    hint: str = ""
    link: str = ""
    begins: int = 0
    """The line at which the object begins; 0: it is not known."""

    @classmethod
    def of(
        cls, rule: Rule, breach: Breach, location: Location, cores: tuple[Core, ...]
    ) -> ReleaseViolation:
        """Create a violation from a breach and its rule.

        ``cores`` are the affected releases of core if the breach names none.
        """
        effect, manifest = rule.effect, breach.manifest
        return cls(
            id=rule.id,
            effect=effect.kind,
            message=breach.message,
            location=location,
            subject=f"{manifest.kind} {manifest.name}".strip(),
            path=breach.path,
            consequence=rule.consequence,
            when=effect.when if effect.kind is EffectClass.BREAKS_WHEN else "",
            cores=breach.cores or cores,
            hint=rule.hint,
            link=rule.source,
        )

    @property
    def sort_key(self) -> tuple[str, int, int, int, str, str]:
        """Return the key of reading order: file, position, then the most severe first."""
        where = self.location
        rank = _ORDER.index(self.effect)
        return (where.file, where.line, where.column, rank, self.id, self.message)

    @property
    def dotted(self) -> str:
        """Return the path for display: ``spec.versions[0].name``."""
        return format_path(self.path)

    def finding(self) -> Finding:
        """Return the violation as a finding: an error, a warning or a notice."""
        condition = f" when {self.when}" if self.when else ""
        message = f"{self.message} ({self.effect.value.replace('-when', '')}{condition})"
        severity = _SEVERITIES[self.effect]
        return Finding(self.id, message, self.location, severity, self.hint, self.link)


class Ignored(NamedTuple):
    """A configuration entry that accepts violations, with the reason."""

    rule: str
    reason: str
    file: str = "*"
    """A pattern for the file's name or path."""
    object: str = "*"
    """A pattern for the object's name."""


@dataclass(frozen=True)
class VerifyOptions:
    """What to judge, and what to report."""

    cores: tuple[Core, ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role by kind, or by the name of a CRD; 'none' for a kind that core never uses."""
    release: str = ""
    """The version of the release; empty: the names of the folders tell it."""
    select: frozenset[str] = frozenset()
    """Ids or their letters (``CC``); empty: all."""
    ignore: frozenset[str] = frozenset()
    ignored: tuple[Ignored, ...] = ()
    advice: bool = False


@dataclass(frozen=True)
class Verdict:
    """The violations in reading order, and what was left out."""

    violations: tuple[ReleaseViolation, ...]
    files: int
    cores: tuple[Core, ...]
    hidden_advice: int = 0
    suppressed: int = 0
    """By a comment, by the configuration or by the baseline."""
    from_source: tuple[Core, ...] = ()
    """The releases of core with which no test of capsmith runs."""
    unanswered: tuple[str, ...] = ()
    """What a running API server did not tell."""
    not_judged: tuple[str, ...] = ()
    """Releases that no release of core in the target can install, and why."""

    def count(self, effect: EffectClass) -> int:
        """Return the number of violations with an effect."""
        return sum(1 for violation in self.violations if violation.effect is effect)

    @property
    def exit_code(self) -> int:
        """Return 1 if something breaks, else 0; conditions and advice do not fail a run."""
        return 1 if self.count(EffectClass.BREAKS) else 0
