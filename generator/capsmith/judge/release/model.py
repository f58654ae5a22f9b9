"""The results of ``capsmith verify``, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import PurePosixPath
from typing import NamedTuple

from capsmith.contract.model import EffectClass, Rule, SupportEnd
from capsmith.findings import Finding, Location, Severity
from capsmith.judge.release.targets import Core
from capsmith.manifests.parse import Manifest
from capsmith.shorten import shorten
from capsmith.yamldoc.compose import Path, format_path

_SEVERITIES = {
    EffectClass.BREAKS: Severity.ERROR,
    EffectClass.BREAKS_WHEN: Severity.WARNING,
    EffectClass.ADVICE: Severity.INFO,
}
_ORDER = list(EffectClass)


def _shorten(path: Path) -> Path:
    return tuple(shorten(step) if isinstance(step, str) else step for step in path)


def describe_subject(manifest: Manifest) -> str:
    """Return an object's kind and name."""
    return f"{manifest.kind} {manifest.name}".strip()


class Breach(NamedTuple):
    """A place where a release violates a rule; the effect is not yet determined."""

    rule: str
    manifest: Manifest
    message: str
    path: Path = ()
    """Keys and list indexes that lead to the place inside the object."""
    cores: tuple[Core, ...] = ()
    """Releases of core that the violation affects; empty if it affects all of them."""


class ReleaseViolation(NamedTuple):
    """A place where a release violates a rule, and the violation's effect."""

    id: str
    """Rule id, or an id in kebab case for a file that cannot be read."""
    effect: EffectClass
    message: str
    location: Location
    subject: str
    """Kind and name of the object."""
    path: Path = ()
    """Keys and list indexes that lead to the place inside the object."""
    consequence: str = ""
    when: str = ""
    """Condition under which the violation breaks something; set only for ``breaks-when``."""
    cores: tuple[Core, ...] = ()
    """Targeted releases of core that the violation affects."""
    hint: str = ""
    link: str = ""
    begins: int = 0
    """Line on which the object starts; 0 if unknown."""

    @classmethod
    def of(
        cls, rule: Rule, breach: Breach, location: Location, cores: tuple[Core, ...]
    ) -> ReleaseViolation:
        """Create a violation from a breach and the rule that it violates.

        ``cores`` are the affected releases of core unless the breach specifies some.
        """
        effect, manifest = rule.effect, breach.manifest
        return cls(
            id=rule.id,
            effect=effect.kind,
            message=breach.message,
            location=location,
            subject=describe_subject(manifest),
            path=breach.path,
            consequence=rule.consequence,
            when=effect.when if effect.kind is EffectClass.BREAKS_WHEN else "",
            cores=breach.cores or cores,
            hint=rule.hint,
            link=rule.source,
        )

    @property
    def sort_key(self) -> tuple[str, int, int, int, str, str]:
        """Return a sort key: by file, then position, then severity (most severe first)."""
        where = self.location
        rank = _ORDER.index(self.effect)
        return (where.file, where.line, where.column, rank, self.id, self.message)

    @property
    def dotted(self) -> str:
        """Return the path for display, such as ``spec.versions[0].name``."""
        return format_path(self.path)

    def shorten(self) -> ReleaseViolation:
        """Return the violation with what comes from manifests shortened."""
        return self._replace(
            message=shorten(self.message), subject=shorten(self.subject), path=_shorten(self.path)
        )

    def finding(self) -> Finding:
        """Return the violation as a finding with severity error, warning or info."""
        condition = f" when {self.when}" if self.when else ""
        message = f"{self.message} ({self.effect.value.replace('-when', '')}{condition})"
        severity = _SEVERITIES[self.effect]
        return Finding(self.id, message, self.location, severity, self.hint, self.link)


class Ignored(NamedTuple):
    """A configuration entry that accepts certain violations and states the reason."""

    rule: str
    reason: str
    file: str = "*"
    """Pattern for the file's name or path, as in ``fnmatch.fnmatchcase``."""
    object: str = "*"
    """Pattern for the object's name, as in ``fnmatch.fnmatchcase``."""


@dataclass(frozen=True)
class VerifyOptions:
    """Settings that determine which rules are checked and which violations are reported."""

    cores: tuple[Core, ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    """Roles by kind or by CRD name. The role "none" marks a kind that core never uses."""
    release: str = ""
    """Version of the release; empty if the folder is named after the version."""
    select: frozenset[str] = frozenset()
    """Rules to report, by id or by the id's letters (``CC``); empty to report all."""
    ignore: frozenset[str] = frozenset()
    ignored: tuple[Ignored, ...] = ()
    advice: bool = False


class StepState(StrEnum):
    """Whether a release has done a step of the migration to the next contract version."""

    DONE = "done"
    LEFT = "left"
    OPTIONAL = "optional"
    """The step is not done, but core does not depend on it."""
    UNSEEN = "unseen"
    """The step cannot be seen in manifests: it concerns code, or objects that the provider
    writes."""


class MigrationStep(NamedTuple):
    """Something to change in a kind, or in a file, to migrate to the next contract version."""

    state: StepState
    kind: str
    """Kind and role, such as ``AcmeMachine (InfraMachine)``, or the name of a file."""
    action: str
    """The action to take, as an imperative sentence without a period."""
    note: str
    rules: tuple[str, ...]
    location: Location
    path: Path
    subject: str

    def shorten(self) -> MigrationStep:
        """Return the step with what comes from manifests shortened."""
        return self._replace(
            kind=shorten(self.kind),
            action=shorten(self.action),
            note=shorten(self.note),
            path=_shorten(self.path),
            subject=shorten(self.subject),
        )


@dataclass(frozen=True)
class Migration:
    """The steps from one contract version to the next, in the migration guide's order."""

    old: str
    new: str
    end: SupportEnd
    source: str
    steps: tuple[MigrationStep, ...]

    def count(self, state: StepState) -> int:
        """Return the number of steps in a state."""
        return sum(1 for step in self.steps if step.state is state)


@dataclass(frozen=True)
class Verdict:
    """The violations, sorted by file and position, and notes on what was left out."""

    violations: tuple[ReleaseViolation, ...]
    files: int
    cores: tuple[Core, ...]
    hidden_advice: int = 0
    suppressed: int = 0
    """Number of violations accepted by a comment, the configuration or the baseline."""
    from_source: tuple[Core, ...] = ()
    """Targeted releases of core that capsmith's tests do not run against."""
    unanswered: tuple[str, ...] = ()
    """Live checks that could not be made, each with its object and the reason."""
    not_judged: tuple[str, ...] = ()
    """Releases of the provider that no targeted release of core can install, with the reasons."""
    left_out: tuple[str, ...] = ()
    """Parts of a source tree that were not checked, with the reasons: test folders, kustomizations
    other than the release's that could not be built, and sources beside a components file.
    """
    releases: tuple[str, ...] = ()
    """Sorted folders of the checked releases. Each has a components file. Empty for an upgrade."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Original content of the checked files, by name."""
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """The rules that were checked and are reported, by id."""
    violated: frozenset[str] = frozenset()
    """Ids of the violated rules, even if all their violations are accepted or hidden."""
    migration: Migration | None = None
    """The steps to the next contract version, if the target release ends support for one."""

    def count(self, effect: EffectClass) -> int:
        """Return the number of violations with the given effect."""
        return sum(1 for violation in self.violations if violation.effect is effect)

    def find_release(self, file: str) -> str:
        """Return the folder of the release that contains a file; empty if there is none."""
        parents = map(str, PurePosixPath(file).parents)
        return next((each for each in parents if each in self.releases), "")

    def shorten(self) -> Verdict:
        """Return the verdict with what comes from manifests shortened, for a report."""
        moved = self.migration
        if moved is not None:
            moved = replace(moved, steps=tuple(step.shorten() for step in moved.steps))
        return replace(
            self,
            violations=tuple(violation.shorten() for violation in self.violations),
            unanswered=tuple(map(shorten, self.unanswered)),
            not_judged=tuple(map(shorten, self.not_judged)),
            left_out=tuple(map(shorten, self.left_out)),
            migration=moved,
        )

    @property
    def exit_code(self) -> int:
        """Return 1 if something certainly breaks, else 0.

        Conditional effects and advice do not count.
        """
        return 1 if self.count(EffectClass.BREAKS) else 0
