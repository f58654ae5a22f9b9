"""The registry of checks, against the rules that use it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from capsmith import resources
from capsmith.contract.load import load_rules
from capsmith.contract.model import Rule
from capsmith.judge import checks
from capsmith.judge.checks.registry import bind, check

RULES = load_rules(resources.schemas())


@dataclass(frozen=True)
class Inner:
    name: str


@dataclass(frozen=True)
class Params:
    text: str
    many: tuple[str, ...] = ()
    inner: tuple[Inner, ...] = ()
    flag: bool = False
    made: tuple[str, ...] = field(default_factory=tuple)


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.check], ids=lambda rule: rule.id
)
def test_every_rule_names_a_check_and_its_parameters(rule: Rule) -> None:
    assert rule.check is not None
    named = checks.list_checks()[rule.check.name]
    assert isinstance(bind(named.params, rule.check.params), named.params)


def test_no_check_is_unused() -> None:
    used = {rule.check.name for rule in RULES.values() if rule.check}
    assert set(checks.list_checks()) == used


def test_every_check_says_for_which_rules_it_is() -> None:
    for named in checks.list_checks().values():
        assert named.run.__doc__


def test_names_are_taken_once() -> None:
    with pytest.raises(ValueError, match="crd-scope"):
        check("crd-scope")(lambda context: [])


def test_parameters_are_typed() -> None:
    data = {"text": "a", "many": ["b"], "inner": [{"name": "c"}], "flag": True}
    assert bind(Params, data) == Params("a", ("b",), (Inner("c"),), True)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "text is missing"),
        ({"text": 1}, "text is 1"),
        ({"text": "a", "many": "b"}, "many is 'b'"),
        ({"text": "a", "many": [1]}, "many is 1"),
        ({"text": "a", "inner": [{"title": "c"}]}, "title"),
        ({"text": "a", "other": 1, "more": 2}, "more, other"),
    ],
)
def test_wrong_parameters_are_refused(data: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bind(Params, data)
