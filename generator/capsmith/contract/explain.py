"""Describe contract rules as plain data and as lines for a terminal."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from capsmith.contract.model import EffectClass, Origin, Proof, Rule
from capsmith.errors import UnreadableInput

_OPTIONS = {"upgrade": "--upgrade", "live": "--live"}
"""Command-line option that enables each page of rules outside the contract."""
_BY = {
    Proof.BEHAVIOUR: "a test that drives the controller",
    Proof.RUNTIME: "a running API server, Cluster API core or clusterctl",
}

_ORIGIN = {
    Origin.CONTRACT: "A page of the contract says so.",
    Origin.OBSERVED: "Observed in Cluster API or Kubernetes; no page of the contract promises it.",
    Origin.ADVICE: "Advice; neither the contract nor core requires it.",
}


def explain(rules: Mapping[str, Rule], rule_id: str) -> dict[str, Any]:
    """Return a rule as plain data. ``rule_id`` is case-insensitive.

    Raises UnreadableInput, with similar ids in its hint, if the id is unknown.
    """
    rule = rules.get(rule_id.strip().upper())
    if rule is None:
        near = find_similar_ids(rules, rule_id)
        raise UnreadableInput(
            "rule-unknown",
            f"unknown rule {rule_id!r}",
            hint=(
                f"Did you mean {', '.join(near)}?" if near else "Run `capsmith rules` to list all."
            ),
        )
    return describe_rule(rule)


def describe_rule(rule: Rule) -> dict[str, Any]:
    """Return all of a rule's fields as plain data, in reading order."""
    return {
        "id": rule.id,
        "title": rule.title,
        "level": rule.level.value,
        "origin": rule.origin.value,
        "severity": rule.weight.value,
        "core": {name: release for name, release in rule.core._asdict().items() if release},
        "contracts": list(rule.contracts),
        "page": rule.page,
        "row": rule.row,
        "applies_to": list(rule.applies_to),
        "statement": rule.statement,
        "condition": rule.condition,
        "consequence": rule.consequence,
        "hint": rule.hint,
        "checked": get_verification(rule),
        "effect": describe_effect(rule),
        "source": rule.source,
    }


def get_verification(rule: Rule) -> dict[str, Any]:
    """Return how a rule is verified, as plain data: by a static check, or by another proof.

    For rules that need more than one release's files, ``option`` names the option of ``capsmith
    verify`` that enables them.
    """
    if rule.page in _OPTIONS:
        return {"by": "verify", "option": _OPTIONS[rule.page]}
    if rule.check is not None:
        return {"by": "static", "check": rule.check.name, "with": dict(rule.check.params)}
    return {"by": rule.proof.value if rule.proof is not None else "nobody"}


def describe_effect(rule: Rule) -> dict[str, Any]:
    """Return a violation's consequence as plain data; empty if no check finds violations."""
    if rule.check is None and rule.page not in _OPTIONS:
        return {}
    return {
        "class": rule.effect.kind.value,
        "when": rule.effect.when,
        "roles": [*rule.effect.roles],
    }


def format_effect(effect: Mapping[str, Any]) -> str:
    """Return a violation's consequence in words: ``breaks when core is v1.13 or older``."""
    words = {
        EffectClass.BREAKS: "breaks",
        EffectClass.BREAKS_WHEN: f"breaks when {effect['when']}",
        EffectClass.ADVICE: "advice",
    }[EffectClass(effect["class"])]
    return f"{words}, for {', '.join(effect['roles'])}" if effect["roles"] else words


def format_origin(rule: Mapping[str, Any]) -> str:
    """Return sentences about a rule's origin and the core releases that it applies to."""
    releases = _releases(rule["core"], rule.get("coreFromSource", ()))
    return f"{_ORIGIN[Origin(rule['origin'])]}{releases}"


def format_verification(rule: Mapping[str, Any]) -> str:
    """Return a sentence about how a rule is verified; empty if it is not verified."""
    by = rule["checked"]["by"]
    if by == "static":
        return (
            f"Checked by capsmith ({rule['checked']['check']}); violations have severity "
            f"{rule['severity']}. Class in capsmith verify: {format_effect(rule['effect'])}."
        )
    if by == "verify":
        command = f"capsmith verify {rule['checked']['option']}"
        return f"Checked by `{command}`. Class: {format_effect(rule['effect'])}."
    return f"Shown by {_BY[Proof(by)]}." if by != "nobody" else ""


def format_lines(rule: Mapping[str, Any]) -> list[str]:
    """Format the result of :func:`explain` as lines for a terminal."""
    contracts = ", ".join(rule["contracts"])
    result = [
        f"{rule['id']}  {rule['title']}",
        f"{rule['level']} in contract {contracts}; page {rule['page']}",
        "",
        rule["statement"],
        format_origin(rule),
    ]
    if rule["condition"]:
        result.append(f"It applies when {rule['condition']}.")
    result += ["", f"If violated: {rule['consequence']}", f"What to do: {rule['hint']}", ""]
    if format_verification(rule):
        result.append(format_verification(rule))
    return [*result, f"Source: {rule['source']}"]


def _releases(core: Mapping[str, str], from_source: Sequence[str]) -> str:
    """Return the sentence about releases of core; empty if the rule is not limited to any."""
    parts = {"since": "since {}", "until": "until {}", "deprecated": "deprecated in {}"}
    found = [text.format(core[name]) for name, text in parts.items() if name in core]
    note = f" ({', '.join(from_source)} as read from source)" if from_source else ""
    return f" Releases of core: {', '.join(found)}{note}." if found else ""


def list_rules(
    rules: Mapping[str, Rule],
    page: str | None = None,
    contract: str | None = None,
    level: str | None = None,
) -> list[dict[str, Any]]:
    """Return the rules that match all given filters, each as plain data with all its fields.

    A filter of None matches every rule.  Raises UnreadableInput for a page or contract without
    rules.
    """
    _known("page", page, {rule.page for rule in rules.values()})
    _known("contract", contract, {name for rule in rules.values() for name in rule.contracts})
    return [
        describe_rule(rule)
        for rule in rules.values()
        if page in (None, rule.page)
        and (contract is None or contract in rule.contracts)
        and level in (None, rule.level.value)
    ]


def format_row(rule: Mapping[str, Any]) -> list[str]:
    """Format a rule from :func:`list_rules` as the columns of a table row."""
    core = " ".join(f"{name} {release}" for name, release in rule["core"].items())
    contracts = ",".join(rule["contracts"])
    return [rule["id"], rule["level"], rule["origin"], contracts, core, rule["title"]]


def find_similar_ids(rules: Mapping[str, Rule], rule_id: str) -> list[str]:
    """Return up to five rule ids that a user who typed ``rule_id`` may have meant.

    Similar ids come first, followed by rules whose title contains ``rule_id``.
    """
    query = rule_id.strip().upper()
    padded = re.sub(r"^([A-Z]+)[-_ ]?([0-9])$", r"\1-0\2", query)
    padded = re.sub(r"^([A-Z]+)[_ ]?([0-9]{2})$", r"\1-\2", padded)
    exact = [padded] if padded in rules else []
    near = exact + difflib.get_close_matches(query, rules, n=5, cutoff=0.7)
    titled = [rule.id for rule in rules.values() if query and query in rule.title.upper()]
    return list(dict.fromkeys([*near, *titled]))[:5]


def _known(what: str, value: str | None, there: set[str]) -> None:
    if value is not None and value not in there:
        raise UnreadableInput(
            f"{what}-unknown",
            f"no rule has {what} {value!r}",
            hint=f"Use one of: {', '.join(sorted(there))}.",
        )
