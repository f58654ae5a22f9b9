"""List the steps that a release must still take to move to the next contract version.

The differences between contract versions are data, in ``schemas/upgrades``.  Each remaining step is
also a violation, so all output formats, filters and the baseline apply to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from capsmith.contract.model import (
    ChangeKind,
    ConditionType,
    Contract,
    EffectClass,
    FieldChange,
    FieldConversion,
    Rule,
    Upgrade,
    Where,
)
from capsmith.judge.release.judge import judge
from capsmith.judge.release.model import (
    Migration,
    MigrationStep,
    ReleaseViolation,
    StepState,
    VerifyOptions,
    describe_subject,
)
from capsmith.judge.release.release import ReleaseFiles
from capsmith.judge.release.targets import LABEL, parse_core, rank_kubernetes_version
from capsmith.manifests.bundle import NONE, Artefact, Bundle, find_roles, split
from capsmith.manifests.crds import Crd, CrdVersion, find_field
from capsmith.manifests.parse import Manifest, list_of, text_of
from capsmith.manifests.series import read_series
from capsmith.yamldoc.compose import Path

_ORDER = (
    *("InfraCluster", "InfraMachine", "BootstrapConfig", "ControlPlane"),
    *("IPPool", "GlobalIPPool", "InfraMachinePool", "Addon"),
    *("Remediation", "Resource", "Identity"),
)
"""Roles in the order of upstream's migration page, then those that it does not mention."""
_LABEL_RULE = "GEN-01"
_LIMITS = (ChangeKind.NARROWED, ChangeKind.OPTIONAL)
_SEVERITY = "severity"
"""Field of the conditions of contract v1beta1 that those of v1beta2 lack (ST-04)."""


def plan_migration(
    release: ReleaseFiles, contracts: Mapping[str, Contract], old: str, options: VerifyOptions
) -> Migration:
    """Return the steps from contract version ``old`` to the one that follows it.

    Limits on fields that exist in both contract versions are checked by the new version's rules.
    Raises LookupError if no contract version follows, or if no end of support is announced.
    """
    new = next((each for each in contracts.values() if old in each.upgrades), None)
    end = contracts[old].end
    if new is None or end is None:
        raise LookupError(f"no contract follows {old}")
    last = parse_core(end.last)
    assert last is not None
    violations = judge(release, {new.version: new}, replace(options, cores=(last,)))
    broken = frozenset(
        (each.subject, each.id) for each in violations if each.effect is EffectClass.BREAKS
    )
    planner = _Planner(release, new.upgrades[old], broken, new.rules)
    steps = [
        step
        for bundle in split(release.manifests, {})
        for step in planner.of_bundle(replace(bundle, roles=find_roles(bundle, options.roles)))
    ]
    # Providers that are released together share their metadata.yaml.
    unique = tuple(dict.fromkeys(steps))
    return Migration(old, new.version, end, new.upgrades[old].source, unique)


def list_remaining(migration: Migration, rules: Mapping[str, Rule]) -> Iterator[ReleaseViolation]:
    """Yield a violation for each remaining step. Violations for optional steps are advice."""
    core = parse_core(migration.end.core)
    consequence = (
        f"Core {migration.end}, ends support for contract {migration.old}: Clusters whose kinds do"
        f" not follow {migration.new} are no longer reconciled."
    )
    for step in migration.steps:
        if step.state not in (StepState.LEFT, StepState.OPTIONAL):
            continue
        id = next(iter(step.rules), _LABEL_RULE)
        is_left = step.state is StepState.LEFT
        yield ReleaseViolation(
            id=id,
            effect=EffectClass.BREAKS if is_left else EffectClass.ADVICE,
            message=f"{step.kind}: {step.action}",
            location=step.location,
            subject=step.subject,
            path=step.path,
            consequence=consequence if is_left else "",
            cores=(core,) if core is not None else (),
            hint=step.note,
            link=rules[id].source,
            begins=step.location.line,
        )


class _Planner:
    """Finds the steps of the providers in a release."""

    def __init__(
        self,
        release: ReleaseFiles,
        upgrade: Upgrade,
        broken: frozenset[tuple[str, str]],
        rules: Mapping[str, Rule],
    ) -> None:
        """Plan with the rules of the new contract; ``broken`` are violated ones, by subject."""
        self._rules = rules
        self._release = release
        self._upgrade = upgrade
        self._broken = broken

    def of_bundle(self, bundle: Bundle) -> Iterator[MigrationStep]:
        """Yield the steps of one provider: its kinds by role, then its metadata."""
        crds = [crd for crd in bundle.crds if crd.role not in ("", NONE)]
        is_native = self._is_native(bundle, crds)
        for crd in sorted(crds, key=lambda crd: (_rank(crd.role), crd.kind)):
            for step in self._of_crd(crd):
                # Code that was written for the new contract has nothing to adapt.
                if not is_native or step.state is not StepState.UNSEEN:
                    yield step
        for change in self._upgrade.changes:
            if change.where is Where.METADATA:
                for manifest in bundle.files(Artefact.METADATA):
                    yield self._of_metadata(manifest, change)

    def _is_native(self, bundle: Bundle, crds: Sequence[Crd]) -> bool:
        """Return whether a provider has had the new contract from its first release on."""
        # Core does not read pools of addresses, but their labels say as much.
        read = [crd for crd in crds if self._is_read(crd)] or crds
        former = f"{LABEL}{self._upgrade.old}"
        is_labelled = all(crd.labelled(self._label) and not crd.labelled(former) for crd in read)
        series = (
            entry.contract
            for metadata in bundle.files(Artefact.METADATA)
            for entry in read_series(metadata).values()
        )
        return bool(read) and is_labelled and self._upgrade.old not in series

    def _of_crd(self, crd: Crd) -> Iterator[MigrationStep]:
        target = self._target(crd)
        for change in self._upgrade.changes:
            if change.where is Where.CRD:
                missing = StepState.LEFT if self._is_read(crd) else StepState.OPTIONAL
                state = StepState.DONE if self._is_labelled(crd, target) else missing
                action = f"name an API version in the label {self._label} of the CRD"
                yield self._step(state, crd, change, action, ("metadata", "labels"))
            elif change.where is Where.CORE and _is_written_by(change, crd.role):
                kinds = " and ".join(change.roles)
                action = f"adapt the code that writes {change.old or change.new} of {kinds}"
                yield self._step(StepState.UNSEEN, crd, change, action, ())
            elif change.where is Where.OBJECT and crd.role in change.roles:
                yield from self._of_field(crd, target, change)
        for condition in self._upgrade.conditions:
            if crd.role in condition.roles:
                yield self._of_condition(crd, condition)

    def _target(self, crd: Crd) -> CrdVersion | None:
        """Return the version for the new contract, or the one that its label could name.

        That is the greatest version that the label of the old contract does not name, None if there
        is none.
        """
        named = crd.labelled(self._label)
        former = crd.labelled(f"{LABEL}{self._upgrade.old}")
        versions = [each for each in crd.versions if each.name in named] or [
            each for each in crd.versions if each.served and each.name not in former
        ]
        return max(versions, key=lambda each: rank_kubernetes_version(each.name), default=None)

    def _is_labelled(self, crd: Crd, version: CrdVersion | None) -> bool:
        return version is not None and version.name in crd.labelled(self._label)

    def _is_read(self, crd: Crd) -> bool:
        """Return whether core reads the kind, so that it depends on its label and fields."""
        return crd.role in self._rules[_LABEL_RULE].applies_to

    @property
    def _label(self) -> str:
        return f"{LABEL}{self._upgrade.new}"

    def _of_field(
        self, crd: Crd, target: CrdVersion | None, change: FieldChange
    ) -> Iterator[MigrationStep]:
        former = next((each for each in _former(crd, target) if _has(each, change.old)), None)
        if former is None and (target is None or not _has(target, change.new)):
            return  # the provider has no such field
        state = self._state(crd, target, change)
        version = target or former
        assert version is not None
        place = change.old if former is version else change.new
        field = place if _has(version, place) else ""
        path = crd.schema_path(version.name, field)
        yield self._step(state, crd, change, _describe(change, version.name), path)

    def _state(self, crd: Crd, target: CrdVersion | None, change: FieldChange) -> StepState:
        missing = (
            StepState.OPTIONAL if _is_optional(change) or not self._is_read(crd) else StepState.LEFT
        )
        if target is None:
            return missing
        has_new, has_old = _has(target, change.new), _has(target, change.old)
        if change.kind is ChangeKind.REMOVED:
            return StepState.OPTIONAL if has_old else StepState.DONE
        if not has_new or (change.kind is ChangeKind.COPIED and not has_old):
            return missing
        # Core still reads a spec field at its old path, so the old field must be removed.
        is_moved = change.old != change.new and change.kind is not ChangeKind.COPIED
        if is_moved and has_old and change.old.startswith("spec."):
            return missing
        subject = describe_subject(crd.manifest)
        # Rules, and therefore limits, are judged for the version that the label names.
        is_judged = self._is_labelled(crd, target) or change.kind not in _LIMITS
        is_broken = not is_judged or any((subject, rule) in self._broken for rule in change.rules)
        return missing if is_broken or _has_old_form(target, change) else StepState.DONE

    def _of_condition(self, crd: Crd, condition: ConditionType) -> MigrationStep:
        action = f"set the condition {condition.type}"
        return self._step(StepState.UNSEEN, crd, condition, action, ())

    def _of_metadata(self, manifest: Manifest, change: FieldChange) -> MigrationStep:
        series = list_of(manifest.document, "releaseSeries")
        contracts = {text_of(each, "contract") for each in series if isinstance(each, Mapping)}
        is_done = self._upgrade.new in contracts
        return MigrationStep(
            StepState.DONE if is_done else StepState.LEFT,
            "metadata.yaml",
            f"add a release series with the contract {self._upgrade.new}",
            change.note,
            change.rules,
            self._release.locate(manifest, ("releaseSeries",)),
            ("releaseSeries",),
            describe_subject(manifest),
        )

    def _order(self, ids: Collection[str], role: str) -> tuple[str, ...]:
        """Return ids of rules, those that apply to the role first."""
        known = [id for id in ids if id in self._rules]
        return tuple(sorted(known, key=lambda id: role not in self._rules[id].applies_to))

    def _step(
        self,
        state: StepState,
        crd: Crd,
        change: FieldChange | ConditionType,
        action: str,
        path: Path,
    ) -> MigrationStep:
        return MigrationStep(
            state,
            f"{crd.kind} ({crd.role})",
            action,
            change.note,
            self._order(change.rules or (_LABEL_RULE,), crd.role),
            self._release.locate(crd.manifest, path),
            path,
            describe_subject(crd.manifest),
        )


def _rank(role: str) -> tuple[int, bool]:
    """Return a sort key: kinds in the order of the page, each before its template."""
    plain = role.removesuffix("Template")
    return _ORDER.index(plain) if plain in _ORDER else len(_ORDER), plain != role


def _former(crd: Crd, target: CrdVersion | None) -> Sequence[CrdVersion]:
    """Return the served versions, the one of the new contract last, the greatest first."""
    served = [each for each in crd.versions if each.served and each is not target]
    served.sort(key=lambda each: rank_kubernetes_version(each.name), reverse=True)
    return [*served, *([target] if target is not None else [])]


def _has(version: CrdVersion, path: str) -> bool:
    return bool(path) and find_field(version.schema, path) is not None


def _has_old_form(version: CrdVersion, change: FieldChange) -> bool:
    """Return whether a field that keeps its path still has the structure of the old contract."""
    schema = find_field(version.schema, change.new)
    if schema is None:
        return False
    if change.conversion is FieldConversion.MAP_TO_LIST:
        return schema.get("type") != "array"
    if change.conversion is FieldConversion.CONDITIONS:
        return find_field(version.schema, f"{change.new}[].{_SEVERITY}") is not None
    return False


def _is_optional(change: FieldChange) -> bool:
    """Return whether core does not depend on the step."""
    return change.habit or change.kind in (ChangeKind.ADDED, ChangeKind.REMOVED)


def _is_written_by(change: FieldChange, role: str) -> bool:
    """Return whether providers with a kind of that role write the objects of core's kinds."""
    return bool(change.roles) and role in ("IPPool", "GlobalIPPool")


def _describe(change: FieldChange, version: str) -> str:
    where = f"in API version {version}"
    match change.kind:
        case ChangeKind.ADDED:
            return f"add {change.new} {where}"
        case ChangeKind.REMOVED:
            return f"remove {change.old} {where}"
        case ChangeKind.COPIED:
            return f"add {change.new} {where}, and keep {change.old}"
        case ChangeKind.OPTIONAL:
            return f"make {change.new} optional {where}"
        case _ if change.old != change.new:
            return f"replace {change.old} by {change.new} {where}"
        case ChangeKind.RETYPED:
            return f"change the structure of {change.new} {where}"
        case _:
            return f"apply the new limits of {change.new} {where}"
