"""Every case, and that none is missing."""

from __future__ import annotations

import pytest

from capsmith.judge.checks.evaluate import find_violations
from capsmith.manifests.bundle import split
from capsmith.manifests.kustomize import build
from tests.rules.cases import ROOT, Case, cases, read, rules

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


_OF_WHOLE_FILES = {"CC-01", "CC-11", "CC-20", "CC-34", "CC-72", "CC-73"}
"""Rules on what is missing in a file, or on its name."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_violation_has_a_place_in_its_object(case: Case) -> None:
    found = [
        problem
        for bundle in split(build(read(case.folder / "bad")), {})
        for problem in find_violations(case.rule, bundle, case.contract)
    ]
    without = [each.message for each in found if not each.path and not each.line]
    assert bool(without) is (case.rule.id in _OF_WHOLE_FILES)
    for problem in found:
        if problem.path:
            assert problem.path[0] in {*problem.manifest.document, "metadata", "spec"}
