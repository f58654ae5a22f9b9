"""Of each static rule some breaches; ``python -m tests.mutation`` runs all."""

from __future__ import annotations

import pytest

from tests.mutation.mutants import OPERATORS, Mutant
from tests.mutation.runs import Target, judge_by, runs, survivors, targets
from tests.mutation.sources import generated

MOST = 3
"""Breaches of one rule under one contract."""


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_a_breach_is_found_by_its_rule(target: Target) -> None:
    done = list(runs(target, MOST))
    assert done, "no valid release has a place for the rule"
    assert [run.name for run in done if not run.found and run.name not in survivors()] == []


def test_every_check_has_an_operator() -> None:
    used = {target.rule.check.name for target in targets() if target.rule.check}
    assert used == set(OPERATORS)


def test_a_release_without_a_breach_has_no_finding() -> None:
    (target,) = (each for each in targets() if each.name == "IC-05-v1beta2")
    for release in generated().values():
        assert judge_by(target, Mutant("nothing", {}).of(release)) == ()


def test_survivors_have_a_reason() -> None:
    for name, reason in survivors().items():
        assert name.partition(" ")[0] in {target.rule.id for target in targets()}
        assert reason.endswith(".")
