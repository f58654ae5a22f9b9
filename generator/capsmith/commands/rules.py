"""The commands `explain` and `rules`: return contract rules for display."""

from __future__ import annotations

from typing import Any

from capsmith import resources
from capsmith.contract import explain as explaining
from capsmith.contract.compatibility import load_compatibility
from capsmith.contract.load import load_all_rules


def explain_rule(rule_id: str) -> dict[str, Any]:
    """Return all data of a rule.

    Raises UnreadableInput, with similar ids, if the id is unknown.
    """
    found = explaining.explain(load_all_rules(resources.schemas()), rule_id)
    return _with_source(found, _executed())


def list_rules(page: str | None, contract: str | None, level: str | None) -> list[dict[str, Any]]:
    """Return the rules that match every given filter.

    Raises UnreadableInput for a page or contract that has no rules.
    """
    executed = _executed()
    found = explaining.list_rules(load_all_rules(resources.schemas()), page, contract, level)
    return [_with_source(rule, executed) for rule in found]


def _executed() -> frozenset[str]:
    """Return the release series of core that tests run with."""
    core = load_compatibility(resources.schemas()).core
    return frozenset(each.series for each in core.executed)


def _with_source(rule: dict[str, Any], executed: frozenset[str]) -> dict[str, Any]:
    """Return a rule with the releases that it names and that no test runs with."""
    return {**rule, "coreFromSource": sorted(set(rule["core"].values()) - executed)}
