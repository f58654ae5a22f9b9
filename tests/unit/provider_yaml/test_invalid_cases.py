"""Every folder of tests/invalid says exactly what it should, and says it helpfully."""

from __future__ import annotations

import re

import pytest

from tests.invalid.cases import CONTRACTS, EXAMPLES, FOLDER, cases, judge, text_of

RULES = {id for contract in CONTRACTS.values() for id in contract.rules}


@pytest.mark.parametrize("case", cases())
def test_findings_are_the_expected_ones(case: str) -> None:
    text = (FOLDER / case / "provider.yaml").read_text(encoding="utf-8")
    expected = (FOLDER / case / "findings.txt").read_text(encoding="utf-8")
    assert expected, "a case without findings is a valid description"
    assert text_of(judge(text)) == expected


@pytest.mark.parametrize("case", cases())
def test_findings_help(case: str) -> None:
    text = (FOLDER / case / "provider.yaml").read_text(encoding="utf-8")
    lines = text.splitlines() or [""]
    for finding in judge(text):
        assert finding.hint
        assert finding.message
        assert (finding.message + finding.hint).isprintable()
        assert len(finding.message) < 250
        assert finding.location.line <= len(lines) + 1
        if finding.location.line:
            line = lines[min(finding.location.line, len(lines)) - 1]
            assert finding.location.column <= len(line) + 1
        assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", finding.id) or finding.id in RULES


@pytest.mark.parametrize("name", sorted(p.parent.name for p in EXAMPLES.glob("*/provider.yaml")))
def test_examples_are_valid(name: str) -> None:
    text = (EXAMPLES / name / "provider.yaml").read_text(encoding="utf-8")
    assert text_of(judge(text)) == ""
