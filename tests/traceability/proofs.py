"""The proofs of a rule: cases of its check, generated repositories, refusals and tests."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from capsmith.blueprint.plan import PlannedFile, plan_files
from capsmith.commands.build import load_runtime_library
from capsmith.commands.load import load
from capsmith.contract.model import Rule
from capsmith.manifests.crds import Crd, find_field, read_crds
from capsmith.manifests.parse import parse_manifests
from capsmith.output.runtime import select_runtime
from capsmith.provider.model import Provider
from tests.golden.cases import Case, cases
from tests.rules.cases import left_out
from tests.traceability.carriers import blueprints
from tests.traceability.catalogue import ROOT, RULE_ID
from tests.traceability.claims import Claim

_ARTEFACTS = {
    "metadata": "metadata.yaml",
    "cluster-template": "templates/cluster-template",
    "cluster-class": "templates/clusterclass-",
}
"""What a rule may apply to, and how the paths of its files begin; others every provider has."""
_EVERYWHERE = frozenset({"components", "rbac"})
_EXTENSIONS = {"extension-config": "kind: ExtensionConfig"}
_CERTIFICATES = "inject-ca-form"
_REFUSED = re.compile(rf"\b(?:error|warning) ({RULE_ID}):")


@dataclass(frozen=True)
class Evidence:
    """All evidence for one rule."""

    cases: tuple[str, ...] = ()
    """Folders below tests/rules: what keeps the rule, what breaks it."""
    repositories: tuple[str, ...] = ()
    """Generated repositories that have what the rule's check looks at, and keep it."""
    refusals: tuple[str, ...] = ()
    """Folders below tests/invalid: descriptions that would break the rule."""
    claims: tuple[Claim, ...] = ()

    @property
    def checked(self) -> bool:
        """Return whether the check finds a violation, and generated repositories have none."""
        return bool(self.cases) and bool(self.repositories)

    @property
    def complete(self) -> bool:
        """Return whether the rule is proven."""
        return self.checked or bool(self.refusals) or bool(self.claims)


@dataclass
class _Gathered:
    by_rule: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def of(self, rule: str) -> tuple[str, ...]:
        return tuple(self.by_rule.get(rule, ()))


def evidence(
    rules: Mapping[str, Rule], claims: tuple[Claim, ...], root: Path = ROOT
) -> dict[str, Evidence]:
    """Return the evidence for each rule, by rule id."""
    checks, refused = _check_cases(root), _refusals(root)
    held = {id: _repositories(rule) for id, rule in rules.items() if rule.check is not None}
    return {
        id: Evidence(
            cases=checks.of(id),
            repositories=held.get(id, ()),
            refusals=refused.of(id),
            claims=tuple(claim for claim in claims if claim.rule == id),
        )
        for id in rules
    }


def _check_cases(root: Path) -> _Gathered:
    found = _Gathered()
    folder = root / "tests" / "rules"
    for bad in sorted(folder.rglob("bad")):
        case = bad.parent.relative_to(folder)
        found.by_rule[case.parts[0]].append(case.as_posix())
    return found


def _refusals(root: Path) -> _Gathered:
    found = _Gathered()
    for file in sorted((root / "tests" / "invalid").glob("*/findings.txt")):
        for rule in sorted(set(_REFUSED.findall(file.read_text(encoding="utf-8")))):
            found.by_rule[rule].append(file.parent.name)
    return found


def _repositories(rule: Rule) -> tuple[str, ...]:
    """The generated repositories that hold something of what the rule applies to."""
    return tuple(
        case.name
        for case in cases()
        if _provider(case).contracts[0].version in rule.contracts
        and _subjects(case) & set(rule.applies_to)
        and _sought(rule) in _manifests(case)
        and _declares_fields(case, rule)
        and any(rule.id not in left_out(each.type) for each in _provider(case).components)
    )


def _sought(rule: Rule) -> str:
    """What manifests have to hold for a check that passes over the others; mostly nothing."""
    assert rule.check is not None
    if rule.check.name == _CERTIFICATES:
        return str(rule.check.params["annotation"])
    return _EXTENSIONS.get(rule.check.name, "")


def _declares_fields(case: Case, rule: Rule) -> bool:
    """Whether a CRD of the case has the field of the rule; most checks pass over kinds without."""
    assert rule.check is not None
    params = rule.check.params
    paths = [part["path"] for part in params.get("parts", ())[:1]]
    paths += [params["path"], *params.get("also", ())] if "path" in params else []
    return not paths or any(
        find_field(version.schema, path) is not None
        for crd in _crds(case)
        if crd.role in rule.applies_to
        for version in crd.versions
        for path in paths
    )


@cache
def _crds(case: Case) -> tuple[Crd, ...]:
    """The CRDs in the repository of a case, each with the role of its kind."""
    manifests = [
        manifest
        for file in sorted(case.expected.rglob("crd/bases/*.yaml"))
        for manifest in parse_manifests(file.read_text(encoding="utf-8"), file.name)[0]
    ]
    roles = {str(resource.crd_name): resource.role.value for resource in _provider(case).resources}
    return tuple(replace(crd, role=roles[crd.manifest.name]) for crd in read_crds(tuple(manifests)))


@cache
def _provider(case: Case) -> Provider:
    provider = load(case.spec).provider
    assert provider is not None, f"{case.spec} is not valid"
    return provider


@cache
def _planned(case: Case) -> tuple[PlannedFile, ...]:
    provider = _provider(case)
    return plan_files(blueprints(), provider, select_runtime(provider, load_runtime_library()))


@cache
def _manifests(case: Case) -> str:
    """All manifests in the repository of a case, one after the other."""
    files = sorted(case.expected.rglob("*.yaml"))
    return "".join(file.read_text(encoding="utf-8") for file in files)


@cache
def _subjects(case: Case) -> frozenset[str]:
    """Roles and artefacts in the repository of a case."""
    artefacts = {
        name
        for name, begin in _ARTEFACTS.items()
        if any(file.path.startswith(begin) for file in _planned(case))
    }
    roles = {resource.role.value for resource in _provider(case).resources}
    return _EVERYWHERE | artefacts | roles
