"""Check releases: apply each rule to the API versions that core uses, and determine the effects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from capsmith.contract.model import Contract, EffectClass, Rule
from capsmith.findings import Finding, Location
from capsmith.judge.checks.evaluate import find_violations
from capsmith.judge.checks.registry import SharedResults, Violation
from capsmith.judge.release.model import Breach, ReleaseViolation, VerifyOptions
from capsmith.judge.release.release import ReleaseFiles
from capsmith.judge.release.targets import (
    LABEL,
    Core,
    choose,
    filter_installable,
    format_span,
    parse_core,
)
from capsmith.manifests.bundle import Artefact, Bundle, Installed, find_roles, split
from capsmith.manifests.crds import Crd
from capsmith.manifests.series import find_series, list_metadata, read_series
from capsmith.progress import track

_BESIDE = "CC-01"
"""Id of the rule that requires metadata.yaml next to the components file."""
_CONTRACTS = ("v1beta1", "v1beta2")


def judge(
    release: ReleaseFiles, contracts: Mapping[str, Contract], options: VerifyOptions
) -> tuple[ReleaseViolation, ...]:
    """Return all violations in the releases, including advice, sorted by file and position."""
    found = [_unreadable(finding, options.cores) for finding in release.findings]
    # Both contracts may result in the same violation, which is reported once for all releases of
    # core.
    merged: dict[ReleaseViolation, tuple[Core, ...]] = {}
    bundles = list(split(release.manifests, {}))
    installed = Installed(tuple(manifest for bundle in bundles for manifest in bundle.objects))
    for bundle in track("judging release", bundles):
        whole = replace(bundle, installed=installed)
        for violation in _of_bundle(whole, release, contracts, options):
            key = violation._replace(cores=())
            merged[key] = tuple(sorted({*merged.get(key, ()), *violation.cores}))
    found += [violation._replace(cores=cores) for violation, cores in merged.items()]
    return tuple(_gravest(sorted(found, key=lambda violation: violation.sort_key)))


def list_not_judged(release: ReleaseFiles, options: VerifyOptions) -> tuple[str, ...]:
    """Return a note for each release whose contract version no targeted release of core supports.

    The note names that release's first file, and the contract version.
    """
    return tuple(
        f"{manifest.file}: no target supports contract {contract}"
        for bundle in split(release.manifests, {})
        if (contract := read_series_contract(replace(bundle, release=options.release)))
        if not filter_installable(options.cores, contract)
        for manifest in bundle.objects[:1]
    )


def list_rules(contracts: Mapping[str, Contract], options: VerifyOptions) -> dict[str, Rule]:
    """Return, by id, the rules that have a check and an effect in a targeted release of core."""
    return {
        rule.id: rule
        for version, contract in contracts.items()
        for rule in contract.rules.values()
        if rule.check is not None
        and _concerns(rule, [core for core in options.cores if version in core.contracts])
    }


def _gravest(ordered: Iterable[ReleaseViolation]) -> Iterator[ReleaseViolation]:
    """Yield the violations, leaving out less severe repetitions for other releases of core."""
    seen: set[tuple[str, str, str, Location]] = set()
    for violation in ordered:
        # The effect and the releases of core are left out, because only these differ between the
        # two.
        key = (violation.id, violation.subject, violation.message, violation.location)
        if violation.effect is not EffectClass.ADVICE or key not in seen:
            seen.add(key)
            yield violation


def _of_bundle(
    bundle: Bundle, release: ReleaseFiles, contracts: Mapping[str, Contract], options: VerifyOptions
) -> Iterator[ReleaseViolation]:
    roles = find_roles(bundle, options.roles)
    bundle = replace(bundle, roles=roles, release=options.release)
    cores = filter_installable(options.cores, read_series_contract(bundle))
    shared = SharedResults()
    for version, contract in contracts.items():
        speaking = [core for core in cores if version in core.contracts]
        if not speaking:
            continue
        # Core chooses one version of a CRD for each contract; versions that it never reads break
        # nothing.
        judged = {
            crd.manifest.name: choice.version
            for core in speaking
            for crd in bundle.crds
            if (choice := choose(crd, core)).contract == version
        }
        chosen = replace(bundle, judged=judged)
        for rule in track(f"contract {version}, rule", contract.rules.values()):
            if rule.check is not None and _concerns(rule, speaking):
                violations = find_violations(rule, chosen, contract, shared)
                yield from _of_rule(rule, violations, chosen, contract, speaking, release)


def _of_rule(
    rule: Rule,
    violations: Iterable[Violation],
    bundle: Bundle,
    contract: Contract,
    cores: Sequence[Core],
    release: ReleaseFiles,
) -> Iterator[ReleaseViolation]:
    for found in violations:
        # A file that was named individually says nothing about its neighbours.
        if rule.id == _BESIDE and found.manifest.file in release.alone:
            continue
        crd = next((crd for crd in bundle.crds if crd.manifest is found.manifest), None)
        met = [core for core in cores if _concerns(rule, [core]) and _uses(core, crd, contract)]
        if found.only_contract:
            # A release of core that supports both contracts finds the label of its other contract.
            alone = [core for core in met if core.contracts == (found.only_contract,)]
            found = found if alone else replace(found, harmless=True)
            met = alone or met
        if met:
            yield _report(rule, found, crd, tuple(met), release)


def _report(
    rule: Rule, found: Violation, crd: Crd | None, cores: tuple[Core, ...], release: ReleaseFiles
) -> ReleaseViolation:
    manifest, effect = found.manifest, rule.effect
    location = release.locate(manifest, found.path)
    if found.line and not found.path:
        location = replace(location, line=found.line, column=1)
    kind = effect.kind
    when = (found.when or effect.when).replace("{core}", format_span(cores))
    if kind is EffectClass.BREAKS and when:
        kind = EffectClass.BREAKS_WHEN
    if found.harmless or (effect.roles and crd is not None and crd.role not in effect.roles):
        kind = EffectClass.ADVICE
    breach = Breach(rule.id, manifest, found.message, found.path)
    return ReleaseViolation.of(rule, breach, location, cores)._replace(
        effect=kind,
        when=when if kind is EffectClass.BREAKS_WHEN else "",
        begins=release.locate(manifest, ()).line,
    )


def _unreadable(finding: Finding, cores: tuple[Core, ...]) -> ReleaseViolation:
    return ReleaseViolation(
        id=finding.id,
        effect=EffectClass.BREAKS,
        message=finding.message,
        location=finding.location,
        subject="",
        consequence="clusterctl cannot use the file.",
        cores=cores,
        hint=finding.hint,
    )


def _concerns(rule: Rule, cores: Sequence[Core]) -> bool:
    """Return whether the effect of a rule exists in any of the given releases of core."""
    since, until = parse_core(rule.core.since), parse_core(rule.core.until)
    return any(
        (since is None or core >= since) and (until is None or core <= until) for core in cores
    )


def _uses(core: Core, crd: Crd | None, contract: Contract) -> bool:
    """Return whether core uses a kind under a contract; True for manifests other than CRDs."""
    return crd is None or not crd.role or choose(crd, core).contract == contract.version


def read_series_contract(bundle: Bundle) -> str:
    """Return the release's contract version according to metadata.yaml; empty if unknown.

    If the release's own version is unknown, the newest series is used.  If it is not listed, or
    sources have no metadata.yaml, the release has the contract version that all labels of the CRDs
    name.
    """
    for metadata in list_metadata(bundle):
        listed = read_series(metadata)
        # Without a version, use the newest series, which clusterctl installs by default.
        series = find_series(bundle, metadata) or max(listed, default=None)
        known = listed.get(series) if series is not None else None
        contract = known.contract if known is not None else _read_labels(bundle)
        return contract if contract in _CONTRACTS else ""
    # CC-01 reports a release without the file; a build may add it to the sources.
    return "" if bundle.files(Artefact.COMPONENTS) else _read_labels(bundle)


def _read_labels(bundle: Bundle) -> str:
    """Return the only contract version in the labels of the CRDs; empty if there are several."""
    found = {
        contract
        for crd in bundle.crds
        for contract in _CONTRACTS
        if crd.labelled(f"{LABEL}{contract}")
    }
    return found.pop() if len(found) == 1 else ""
