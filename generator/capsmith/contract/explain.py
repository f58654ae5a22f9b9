"""Contract rules as plain data: one rule in full, or a list."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from capsmith.contract.model import Proof, Rule
from capsmith.errors import UnreadableInput

_BY = {
    Proof.BEHAVIOUR: "a test that drives the controller",
    Proof.RUNTIME: "a running API server, Cluster API core or clusterctl",
}


def explain(rules: Mapping[str, Rule], rule_id: str) -> dict[str, Any]:
    """Return all data on one rule; the case of its id does not matter.

    Raises UnreadableInput for an unknown id, with similar ids.
    """
    rule = rules.get(rule_id.strip().upper())
    if rule is None:
        near = similar(rules, rule_id)
        raise UnreadableInput(
            "rule-unknown",
            f"there is no rule {rule_id!r}",
            hint=(
                f"Did you mean {', '.join(near)}?" if near else "Run `capsmith rules` to list all."
            ),
        )
    return details(rule)


def details(rule: Rule) -> dict[str, Any]:
    """Return all fields of a rule, in the order of reading."""
    return {
        "id": rule.id,
        "title": rule.title,
        "level": rule.level.value,
        "severity": rule.weight.value,
        "contracts": list(rule.contracts),
        "page": rule.page,
        "applies_to": list(rule.applies_to),
        "statement": rule.statement,
        "condition": rule.condition,
        "consequence": rule.consequence,
        "hint": rule.hint,
        "checked": checked(rule),
        "source": rule.source,
    }


def checked(rule: Rule) -> dict[str, Any]:
    """Return how the rule is verified: by capsmith itself (``static``), or by a proof."""
    if rule.check is not None:
        return {"by": "static", "check": rule.check.name, "with": dict(rule.check.params)}
    return {"by": rule.proof.value if rule.proof is not None else "nobody"}


def lines(rule: Mapping[str, Any]) -> list[str]:
    """Return the data of :func:`explain` as lines for a terminal."""
    contracts = ", ".join(rule["contracts"])
    result = [
        f"{rule['id']}  {rule['title']}",
        f"{rule['level']} in contract {contracts}; page {rule['page']}",
        "",
        rule["statement"],
    ]
    if rule["condition"]:
        result.append(f"It binds when {rule['condition']}.")
    result += ["", f"If it is broken: {rule['consequence']}", f"What to do: {rule['hint']}", ""]
    by = rule["checked"]["by"]
    if by == "static":
        result.append(
            f"Checked by capsmith ({rule['checked']['check']}); violations have severity "
            f"{rule['severity']}."
        )
    elif by != "nobody":
        result.append(f"Shown by {_BY[Proof(by)]}.")
    return [*result, f"Source: {rule['source']}"]


def listing(
    rules: Mapping[str, Rule],
    page: str | None = None,
    contract: str | None = None,
    level: str | None = None,
) -> list[dict[str, Any]]:
    """Return the rules that pass all given filters, each with all its fields.

    Raises UnreadableInput for a page or contract without rules.
    """
    _known("page", page, {rule.page for rule in rules.values()})
    _known("contract", contract, {name for rule in rules.values() for name in rule.contracts})
    return [
        details(rule)
        for rule in rules.values()
        if page in (None, rule.page)
        and (contract is None or contract in rule.contracts)
        and level in (None, rule.level.value)
    ]


def similar(rules: Mapping[str, Rule], rule_id: str) -> list[str]:
    """Return ids that look like ``rule_id``, then rules whose title has it; at most five."""
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
            f"no rule is of {what} {value!r}",
            hint=f"Use one of: {', '.join(sorted(there))}.",
        )
