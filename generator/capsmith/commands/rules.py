"""explain, rules: return the contract's rules for display."""

from __future__ import annotations

from typing import Any

from capsmith import resources
from capsmith.contract import explain as explaining
from capsmith.contract.load import load_all_rules


def explain(rule_id: str) -> dict[str, Any]:
    """Return everything about one rule, of the contract or on releases.

    Raises UnreadableInput for an unknown id, with similar ids.
    """
    return explaining.explain(load_all_rules(resources.schemas()), rule_id)


def rules(page: str | None, contract: str | None, level: str | None) -> list[dict[str, Any]]:
    """Return the rules that pass every given filter.

    Raises UnreadableInput for a page or contract without rules.
    """
    return explaining.listing(load_all_rules(resources.schemas()), page, contract, level)
