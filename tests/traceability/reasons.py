"""Reasons why rules have no proof (unproven.yaml), and rules with pending proofs (awaited.yaml)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from capsmith.contract.model import Level, Rule

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Reason:
    """A reason, for rules by id or for all unproven rules of a level."""

    text: str
    rules: tuple[str, ...] = ()
    level: Level | None = None

    def covers(self, rule: Rule) -> bool:
        return rule.id in self.rules or rule.level is self.level


@dataclass(frozen=True)
class Reasons:
    """The content of the two files."""

    reasons: tuple[Reason, ...]
    awaited: frozenset[str]

    def of(self, rule: Rule) -> tuple[Reason, ...]:
        return tuple(reason for reason in self.reasons if reason.covers(rule))

    def mistakes(self, rules: Mapping[str, Rule], proven: frozenset[str]) -> list[str]:
        """Return messages about reasons for unknown or proven rules, and about repeated ones."""
        found = []
        for reason in self.reasons:
            for id in reason.rules:
                if id not in rules:
                    found.append(f"unproven.yaml: {id} is no rule")
                elif id in proven:
                    found.append(f"unproven.yaml: {id} has a reason, but is proven by now")
            if reason.level and all(id in proven for id in rules if reason.covers(rules[id])):
                found.append(f"unproven.yaml: no {reason.level} rule needs a reason")
        for rule in rules.values():
            if rule.id not in proven and len(self.of(rule)) > 1:
                found.append(f"unproven.yaml: {rule.id} has several reasons")
        found += [f"awaited.yaml: {id} is no rule" for id in sorted(self.awaited - rules.keys())]
        found += [
            f"awaited.yaml: {rule.id} has a reason already"
            for rule in rules.values()
            if rule.id in self.awaited and self.of(rule)
        ]
        return found


def read_reasons(folder: Path = HERE) -> Reasons:
    """Read the reasons; fail unless they are a list. awaited.yaml may be missing."""
    entries = yaml.safe_load((folder / "unproven.yaml").read_text(encoding="utf-8"))
    awaited = folder / "awaited.yaml"
    ids = yaml.safe_load(awaited.read_text(encoding="utf-8")) if awaited.exists() else []
    return Reasons(tuple(_reason(entry) for entry in entries), frozenset(ids))


def _reason(entry: dict[str, Any]) -> Reason:
    assert set(entry) in ({"reason", "rules"}, {"reason", "level"}), entry
    level = Level(entry["level"]) if "level" in entry else None
    return Reason(" ".join(entry["reason"].split()), tuple(entry.get("rules", ())), level)
