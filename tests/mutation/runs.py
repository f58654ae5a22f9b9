"""Every mutant of every rule, and whether verify finds it by that rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from capsmith import resources
from capsmith.contract.compatibility import load_compatibility
from capsmith.contract.load import list_versions, load_contract
from capsmith.contract.model import Contract, Rule
from capsmith.judge import checks
from capsmith.judge.checks.registry import Context, NoParams, bind
from capsmith.judge.release.judge import judge
from capsmith.judge.release.model import ReleaseViolation, VerifyOptions
from capsmith.judge.release.release import ReleaseFiles
from capsmith.judge.release.targets import choose, list_targets, parse_core
from capsmith.manifests.bundle import Installed, find_roles, split
from capsmith.manifests.crds import Crd
from tests.mutation import (
    access,
    components,
    crds,
    definitions,
    flavors,
    references,
    shapes,
    validations,
)
from tests.mutation.mutants import OPERATORS, Mutant, Site
from tests.mutation.sources import generated, good

MODULES = (access, components, crds, definitions, flavors, references, shapes, validations)
"""Their import registers the operators."""
_KNOWN = list_targets(load_compatibility(resources.schemas()).core).known
_OPTIONS = VerifyOptions(_KNOWN)
_SURVIVORS = Path(__file__).with_name("survivors.yaml")


class Run(NamedTuple):
    """A mutant, and what became of it."""

    rule: str
    contract: str
    source: str
    mutant: Mutant
    found: bool

    @property
    def name(self) -> str:
        return f"{self.rule} {self.contract} {self.source}: {self.mutant.text}"


class Target(NamedTuple):
    """A rule of one contract."""

    rule: Rule
    contract: Contract

    @property
    def name(self) -> str:
        return f"{self.rule.id}-{self.contract.version}"


@cache
def targets() -> tuple[Target, ...]:
    """Return each checked rule in each contract."""
    contracts = [load_contract(version, resources.schemas()) for version in list_versions()]
    return tuple(
        Target(rule, contract)
        for contract in contracts
        for rule in contract.rules.values()
        if rule.check is not None
    )


def runs(target: Target, most: int | None = None) -> Iterator[Run]:
    """Yield the runs of a rule over all valid releases.

    With ``most``: of the first release that has a place for the rule, and only so many, evenly
    chosen.  Where no generated release has one, the rule's good cases are the releases.
    """
    for sources in (generated(), good(target.rule.id, target.contract.label)):
        has_some = False
        for name, release in sources.items():
            mutants = list(_mutants(target, release))
            if not mutants:
                continue
            has_some = True
            before = _keys(target, release)
            for mutant in mutants[:: max(len(mutants) // most, 1) if most else 1][:most]:
                found = bool(_keys(target, mutant.of(release)) - before)
                yield Run(target.rule.id, target.contract.version, name, mutant, found)
            if most:
                return
        if has_some:
            return


def _mutants(target: Target, release: ReleaseFiles) -> Iterator[Mutant]:
    rule, contract = target
    assert rule.check is not None
    named = checks.list_checks()[rule.check.name]
    params = None if named.params is NoParams else bind(named.params, rule.check.params)
    bundles = list(split(release.manifests, {}))
    installed = Installed(tuple(m for bundle in bundles for m in bundle.objects))
    for bundle in bundles:
        roles = find_roles(bundle, {})
        whole = replace(bundle, roles=roles, installed=installed)
        whole = replace(whole, judged=_judged(whole.crds, target))
        yield from OPERATORS[rule.check.name](Site(Context(whole, contract, rule), params))


def _judged(crds: Sequence[Crd], target: Target) -> Mapping[str, str]:
    """Return the versions that a release of core uses by the contract while the rule holds."""
    rule, contract = target
    since, until = parse_core(rule.core.since), parse_core(rule.core.until)
    return {
        crd.manifest.name: choice.version
        for crd in crds
        for core in _KNOWN
        if (since is None or core >= since) and (until is None or core <= until)
        if (choice := choose(crd, core)).contract == contract.version and choice.version
    }


def _keys(target: Target, release: ReleaseFiles) -> frozenset[tuple[str, str]]:
    return frozenset((each.subject, each.message) for each in judge_by(target, release))


def judge_by(target: Target, release: ReleaseFiles) -> tuple[ReleaseViolation, ...]:
    """Return what verify finds by the rule, advice included."""
    alike = [each.contract for each in targets() if each.rule.id == target.rule.id]
    contracts = {
        contract.version: replace(contract, rules={target.rule.id: contract.rules[target.rule.id]})
        for contract in alike
    }
    return judge(release, contracts, _OPTIONS)


def survivors() -> dict[str, str]:
    """Return the reason why a mutant is not found, by the mutant's name."""
    found: dict[str, str] = yaml.safe_load(_SURVIVORS.read_text(encoding="utf-8")) or {}
    return found
