"""The effect of each checked rule is data, and validated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.contract.load import read_rules
from capsmith.contract.model import EffectClass
from capsmith.errors import UnreadableInput
from tests.rules.cases import rules

CONTRACTS = Path(__file__).parents[3] / "schemas" / "contracts"


def entries() -> list[dict[str, Any]]:
    files = sorted(CONTRACTS.glob("*/rules/*.yaml"))
    return [rule for file in files for rule in yaml.safe_load(file.read_text())["rules"]]


def read(effect: dict[str, Any]) -> None:
    entry = {**next(each for each in entries() if each["id"] == "IM-14"), "effect": effect}
    data = {"source": "https://example.com", "rules": [entry]}
    list(read_rules(data, "infra-machine", ("v1beta1", "v1beta2"), "file.yaml"))


def test_every_checked_rule_says_what_follows() -> None:
    assert [entry["id"] for entry in entries() if entry["check"] and "effect" not in entry] == []


def test_rules_without_a_check_have_no_effect() -> None:
    assert [entry["id"] for entry in entries() if not entry["check"] and "effect" in entry] == []


def test_effects_are_read() -> None:
    effect = rules()["MP-13"].effect
    assert effect.kind is EffectClass.BREAKS_WHEN
    assert effect.when
    assert rules()["IM-14"].effect.roles == ("InfraMachineTemplate",)


@pytest.mark.parametrize(
    "effect",
    [
        {"class": "explodes"},
        {"class": "breaks", "when": "it rains"},
        {"class": "breaks-when"},
        {"class": "breaks", "roles": ["ControlPlane"]},
        {"class": "breaks", "weather": "rain"},
    ],
)
def test_effects_that_are_wrong(effect: dict[str, Any]) -> None:
    with pytest.raises(UnreadableInput):
        read(effect)
