"""docs/style.md in figures: verbs, lengths and class names; what is worse than its limit fails.

``python -m tests.unit.figures`` prints the figures, ``--names`` and ``--long`` the places.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.figures import (
    PACKAGES,
    ROOT,
    Figures,
    collect,
    comment_lines,
    double_class_names,
    head_lines,
    length,
    starts_with_verb,
)

LIMITS: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("figures.yaml").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def figures() -> Figures:
    return collect(PACKAGES)


@pytest.mark.parametrize("folder", LIMITS["functions_without_verb"])
def test_functions_start_with_a_verb(folder: str) -> None:
    found = collect([ROOT / folder]).non_verbs
    limit = LIMITS["functions_without_verb"][folder]
    assert len(found) <= limit, (
        f"{len(found)} public functions, the limit is {limit}:"
        f" `python -m tests.unit.figures --names {folder}`"
    )


def test_functions_are_short(figures: Figures) -> None:
    assert not [
        name
        for name in figures.long_functions
        if name.split(": ")[1] not in LIMITS["long_functions"]
    ]


def test_long_files_have_a_reason(figures: Figures) -> None:
    assert {name.split(": ")[0] for name in figures.long_files} == {*LIMITS["long_files"]}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_class_name_has_one_meaning(package: Path) -> None:
    known = LIMITS["class_names_with_two_meanings"]
    found = double_class_names(package)
    assert {name: found[name] for name in found.keys() - known} == {}


def test_figures_of_a_file() -> None:
    text = '"""Say what."""\n\nimport ast\n\n# A reason.\nx = 1  # no line of its own\n'
    assert head_lines(ast.parse(text), 6) == 5
    assert comment_lines(text) == 1
    (function,) = ast.parse(
        '@a\ndef f(\n    x,\n):\n    """Text."""\n    a = x\n\n    return a\n'
    ).body
    assert isinstance(function, ast.FunctionDef)
    assert length(function) == 6


@pytest.mark.parametrize(
    ("name", "expected"),
    [("read_file", True), ("is_open", True), ("_add", True), ("chosen", False), ("edited", False)],
)
def test_verbs(name: str, expected: bool) -> None:
    assert starts_with_verb(name) is expected
