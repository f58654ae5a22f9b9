"""Every case, and that none is missing."""

from __future__ import annotations

import pytest

from tests.rules.cases import ROOT, Case, cases, rules

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_keeps_the_rule_is_not_found(case: Case) -> None:
    assert case.findings("good") == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_breaks_the_rule_is_found(case: Case) -> None:
    assert case.expected
    assert case.actual() == case.expected


def test_every_checked_rule_has_a_case() -> None:
    checked = {rule.id for rule in rules().values() if rule.check is not None}
    assert {case.rule.id for case in CASES} == checked


def test_every_folder_is_a_case() -> None:
    folders = {folder.name for folder in ROOT.iterdir() if folder.is_dir()} - {"__pycache__"}
    assert folders == {case.rule.id for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_finding_says_what_to_do_and_where_it_is_written(case: Case) -> None:
    for finding in case.findings("bad"):
        assert finding.hint == case.rule.hint
        assert finding.link == case.rule.source
        assert finding.severity == case.rule.weight.value
