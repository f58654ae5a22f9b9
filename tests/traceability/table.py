"""All data about every rule, and the errors in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from capsmith.contract.model import Rule
from tests.traceability.carriers import Carrier, carriers
from tests.traceability.catalogue import ROOT, Place, catalogue
from tests.traceability.claims import Claim, read_claims
from tests.traceability.proofs import Evidence, evidence
from tests.traceability.reasons import HERE, Reason, Reasons, read_reasons


@dataclass(frozen=True)
class Row:
    """One rule."""

    rule: Rule
    place: Place
    carriers: tuple[Carrier, ...]
    evidence: Evidence
    reason: Reason | None
    """Why there is no proof; None where there is one, or where one is awaited."""
    awaited: bool

    @property
    def proven(self) -> bool:
        return self.evidence.complete


@dataclass(frozen=True)
class Table:
    """All rules in order, and all errors."""

    rows: tuple[Row, ...]
    mistakes: tuple[str, ...]


def table(root: Path = ROOT, reasons_folder: Path = HERE) -> Table:
    """Collect all rows and errors."""
    placed = catalogue(root)
    rules = {id: each.rule for id, each in placed.items()}
    read = read_claims(root)
    found, carried = evidence(rules, read.claims, root), carriers(root)
    reasons = read_reasons(reasons_folder)
    rows = tuple(
        Row(
            rule=rule,
            place=placed[id].place,
            carriers=tuple(carried.get(id, ())),
            evidence=found[id],
            reason=_reason(reasons, rule, found[id]),
            awaited=not found[id].complete and id in reasons.awaited,
        )
        for id, rule in rules.items()
    )
    proven = frozenset(row.rule.id for row in rows if row.proven)
    mistakes = [
        *read.mistakes,
        *_unknown(read.claims, rules),
        *reasons.mistakes(rules, proven),
        *missing(rows),
    ]
    return Table(rows, tuple(mistakes))


def missing(rows: tuple[Row, ...]) -> list[str]:
    """Return a message about each rule that has neither a proof nor a reason."""
    return [
        f"{row.place}: {row.rule.id} ({row.rule.title}) has neither a proof nor a reason"
        for row in rows
        if not (row.proven or row.reason or row.awaited)
    ]


def _reason(reasons: Reasons, rule: Rule, found: Evidence) -> Reason | None:
    of_rule = reasons.of(rule)
    return of_rule[0] if of_rule and not found.complete else None


def _unknown(claims: tuple[Claim, ...], rules: dict[str, Rule]) -> list[str]:
    return [
        f"{claim.place}: {claim.test} says to prove {claim.rule}, which is no rule"
        for claim in claims
        if claim.rule not in rules
    ]
