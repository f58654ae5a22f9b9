"""The published vocabulary of checks is that of the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capsmith import resources
from capsmith.judge import checks
from capsmith.judge.checks.vocabulary import make_rules_schema, render_rules_schema
from tests.rules.cases import rules
from tests.rules.vocabulary import expected

ENTRIES: dict[str, dict[str, Any]] = {
    entry["properties"]["name"]["const"]: entry
    for entry in make_rules_schema()["$defs"]["CheckEntry"]["oneOf"]
}


@pytest.mark.parametrize("file", expected(), ids=lambda file: file.name)
def test_the_file_is_current(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == expected()[file], "python -m tests.rules.vocabulary"


def test_the_schema_ships_with_the_generator() -> None:
    shipped = (resources.schemas() / "rules.schema.json").read_text(encoding="utf-8")
    assert json.loads(shipped) == make_rules_schema()
    assert render_rules_schema().endswith("}\n")


def test_every_check_is_used_and_described() -> None:
    used = {rule.check.name for rule in rules().values() if rule.check is not None}
    assert set(ENTRIES) == set(checks.list_checks()) == used
    for entry in ENTRIES.values():
        assert entry["description"].endswith("."), entry
        for name, value in entry["properties"].get("with", {}).get("properties", {}).items():
            assert value["description"].endswith("."), (entry["properties"]["name"], name)


def _parts(schema: dict[str, Any]) -> list[dict[str, Any]]:
    below = [
        *schema.get("properties", {}).values(),
        *([schema["items"]] if "items" in schema else []),
    ]
    return [schema, *(part for child in below for part in _parts(child))]


@pytest.mark.parametrize("name", ENTRIES)
def test_unknown_parameters_are_refused(name: str) -> None:
    for part in _parts(ENTRIES[name]):
        if "properties" in part:
            assert part["additionalProperties"] is False


@pytest.mark.parametrize(
    "rule", [rule for rule in rules().values() if rule.check], ids=lambda rule: rule.id
)
def test_the_schema_accepts_the_parameters_of_a_rule(rule: Any) -> None:
    schema = ENTRIES[rule.check.name]["properties"].get("with", {})
    assert set(rule.check.params) <= set(schema.get("properties", {}))
    assert set(schema.get("required", ())) <= set(rule.check.params)
