"""Judge releases: each rule on what core would choose, and what follows from a violation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from capsmith.contract.model import Contract, EffectClass, Rule
from capsmith.findings import Finding, Location
from capsmith.judge.release.model import Options, Violation
from capsmith.judge.release.release import Release
from capsmith.judge.release.targets import Core, choose, installable, parse_core, span
from capsmith.judge.rules.checks.registry import Problem
from capsmith.judge.rules.evaluate import violations
from capsmith.manifests.bundle import Artefact, Bundle, Installed, roles_of, split
from capsmith.manifests.crds import Crd
from capsmith.manifests.parse import list_of, text_of

_BESIDE = "CC-01"
"""The rule on a file beside the components."""


def judge(
    release: Release, contracts: Mapping[str, Contract], options: Options
) -> tuple[Violation, ...]:
    """Return what the releases violate, in order; advice is included."""
    found = [_unreadable(finding, options.cores) for finding in release.findings]
    merged: dict[Violation, tuple[Core, ...]] = {}
    bundles = list(split(release.manifests, {}))
    installed = Installed(tuple(manifest for bundle in bundles for manifest in bundle.objects))
    for bundle in bundles:
        whole = replace(bundle, installed=installed)
        for violation in _of_bundle(whole, release, contracts, options):
            key = violation._replace(cores=())
            merged[key] = tuple(sorted({*merged.get(key, ()), *violation.cores}))
    found += [violation._replace(cores=cores) for violation, cores in merged.items()]
    return tuple(_gravest(sorted(found, key=lambda violation: violation.sort_key)))


def not_judged(release: Release, options: Options) -> tuple[str, ...]:
    """Return the files of releases whose contract no release of core in the target speaks."""
    return tuple(
        f"{manifest.file}: no target supports contract {contract}"
        for bundle in split(release.manifests, {})
        if (contract := series_contract(replace(bundle, release=options.release)))
        if not installable(options.cores, contract)
        for manifest in bundle.objects[:1]
    )


def _gravest(ordered: Iterable[Violation]) -> Iterator[Violation]:
    """Yield the violations without those that repeat a graver one, for other releases of core."""
    seen: set[tuple[str, str, str, Location]] = set()
    for violation in ordered:
        key = (violation.id, violation.subject, violation.message, violation.location)
        if violation.effect is not EffectClass.ADVICE or key not in seen:
            seen.add(key)
            yield violation


def _of_bundle(
    bundle: Bundle, release: Release, contracts: Mapping[str, Contract], options: Options
) -> Iterator[Violation]:
    roles = roles_of(bundle, options.roles)
    bundle = replace(bundle, roles=roles, release=options.release)
    cores = installable(options.cores, series_contract(bundle))
    for version, contract in contracts.items():
        speaking = [core for core in cores if version in core.contracts]
        if not speaking:
            continue
        judged = {
            crd.manifest.name: choice.version
            for core in speaking
            for crd in bundle.crds
            if (choice := choose(crd, core)).contract == version
        }
        chosen = replace(bundle, judged=judged)
        for rule in contract.rules.values():
            if _concerns(rule, speaking):
                yield from _of_rule(rule, chosen, contract, speaking, release)


def _of_rule(
    rule: Rule, bundle: Bundle, contract: Contract, cores: Sequence[Core], release: Release
) -> Iterator[Violation]:
    crds = {id(crd.manifest): crd for crd in bundle.crds}
    for problem in violations(rule, bundle, contract):
        if rule.id == _BESIDE and problem.manifest.file in release.alone:
            continue
        crd = crds.get(id(problem.manifest))
        met = [core for core in cores if _concerns(rule, [core]) and _uses(core, crd, contract)]
        if problem.only_contract:
            alone = [core for core in met if core.contracts == (problem.only_contract,)]
            problem = problem if alone else replace(problem, harmless=True)
            met = alone or met
        if met:
            yield _violation(rule, problem, crd, tuple(met), release)


def _violation(
    rule: Rule, problem: Problem, crd: Crd | None, cores: tuple[Core, ...], release: Release
) -> Violation:
    manifest, effect = problem.manifest, rule.effect
    location = release.locate(manifest, problem.path)
    if problem.line and not problem.path:
        location = replace(location, line=problem.line, column=1)
    kind = effect.kind
    when = (problem.when or effect.when).replace("{core}", span(cores))
    if kind is EffectClass.BREAKS and when:
        kind = EffectClass.BREAKS_WHEN
    if problem.harmless or (effect.roles and crd is not None and crd.role not in effect.roles):
        kind = EffectClass.ADVICE
    return Violation(
        id=rule.id,
        effect=kind,
        message=problem.message,
        location=location,
        subject=f"{manifest.kind} {manifest.name}".strip(),
        path=problem.path,
        consequence=rule.consequence,
        when=when if kind is EffectClass.BREAKS_WHEN else "",
        cores=cores,
        hint=rule.hint,
        link=rule.source,
        begins=release.locate(manifest, ()).line,
    )


def _unreadable(finding: Finding, cores: tuple[Core, ...]) -> Violation:
    return Violation(
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
    """Return whether the effect of a rule exists in one of the releases."""
    since, until = parse_core(rule.core.since), parse_core(rule.core.until)
    return any(
        (since is None or core >= since) and (until is None or core <= until) for core in cores
    )


def _uses(core: Core, crd: Crd | None, contract: Contract) -> bool:
    """Return whether core uses a kind by a contract; what is no CRD concerns all."""
    return crd is None or not crd.role or choose(crd, core).contract == contract.version


def series_contract(bundle: Bundle) -> str:
    """Return the contract of the release by metadata.yaml; empty where that does not tell."""
    for metadata in bundle.files(Artefact.METADATA):
        folder = metadata.file.replace("\\", "/").split("/")[-2:-1]
        release = parse_core(bundle.release) or parse_core("".join(folder))
        series = {
            Core(entry["major"], entry["minor"]): text_of(entry, "contract")
            for entry in list_of(metadata.document, "releaseSeries")
            if isinstance(entry, dict)
            and all(isinstance(entry.get(key), int) for key in ("major", "minor"))
        }
        version = release or max(series, default=None)
        contract = series.get(version, "") if version is not None else ""
        return contract if contract in {"v1beta1", "v1beta2"} else ""
    return ""
