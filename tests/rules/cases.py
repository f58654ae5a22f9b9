"""Cases are folders: ``<rule>/[<variant>/]{good,bad}/*.yaml`` and ``findings.txt``.

A variant called like a contract version is judged by that version, the others by the newest one
in which the rule holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from capsmith import resources
from capsmith.contract.load import list_versions, load_contract, load_rules
from capsmith.contract.model import Contract, Rule
from capsmith.findings import Finding
from capsmith.judge.checks.evaluate import evaluate_manifests
from capsmith.manifests.parse import Manifest, parse_manifests

ROOT = Path(__file__).parent
LEFT_OUT = {
    # Every replica of a hook server answers core: there is nothing to lead.
    "runtime-extension": frozenset({"MG-02"}),
}

DECLINED = {"NimbusServerTemplate": frozenset({"CRD-10", "CRD-11"})}
"""Of ``contractCategory: false`` and ``contractColumns: false``."""


def left_out(component: str) -> frozenset[str]:
    """Return the rules of level MAY that a generated component of a type does not follow."""
    return LEFT_OUT.get(component, frozenset())


def declined(message: str) -> frozenset[str]:
    """Return the advice that the example ``everything`` declines for a kind, as imports do."""
    kind, _, _ = message.replace(":", " ").partition(" ")
    return DECLINED.get(kind, frozenset())


@dataclass(frozen=True)
class Case:
    """One folder."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.relative_to(ROOT).as_posix()

    @property
    def rule(self) -> Rule:
        return rules()[self.folder.relative_to(ROOT).parts[0]]

    @property
    def contract(self) -> Contract:
        variant = self.folder.name
        return contract(variant if variant in list_versions() else self.rule.contracts[-1])

    @property
    def expected(self) -> str:
        return (self.folder / "findings.txt").read_text()

    def findings(self, side: str) -> list[Finding]:
        """Return the findings of the case's own rule on one side."""
        found = evaluate_manifests(read(self.folder / side), self.contract)
        return [finding for finding in found if finding.id == self.rule.id]

    def actual(self) -> str:
        """Return the content that findings.txt must have."""
        return "".join(
            f"{f.location.file}:{f.location.line} {f.severity} {f.id} {f.message}\n"
            for f in self.findings("bad")
        )


def cases() -> list[Case]:
    return [Case(folder.parent) for folder in sorted(ROOT.rglob("bad"))]


def read(folder: Path) -> list[Manifest]:
    manifests: list[Manifest] = []
    for file in sorted(folder.rglob("*.yaml")):
        parsed, findings = parse_manifests(file.read_text(), file.relative_to(folder).as_posix())
        assert findings == ()
        manifests.extend(parsed)
    assert manifests
    return manifests


@cache
def rules() -> dict[str, Rule]:
    return load_rules(resources.schemas())


@cache
def contract(version: str) -> Contract:
    return load_contract(version, resources.schemas())
