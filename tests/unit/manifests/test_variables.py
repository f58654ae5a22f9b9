from __future__ import annotations

from typing import Any, SupportsIndex

import pytest

from capsmith.manifests.variables import (
    MAX_DEPTH,
    CommentFinder,
    Trouble,
    find_required,
    scan,
    substitute,
)
from tests.unit.manifests.substitutions import FORMS, VALUES


@pytest.mark.parametrize(("text", "result"), FORMS)
def test_forms_that_clusterctl_accepts_and_their_values(text: str, result: str | None) -> None:
    """Proves: CC-40."""
    troubles = {variable.trouble for variable in scan(text)}
    assert (Trouble.SYNTAX in troubles) == (result is None)
    if result is not None:
        assert substitute(text, VALUES) == result


@pytest.mark.parametrize(
    ("text", "name", "default", "trouble"),
    [
        ("${A}", "A", None, None),
        ("${A:=b}", "A", "b", None),
        ("${A=b}", "A", "b", None),
        ("${A:=:8443}", "A", ":8443", None),
        ('${A:=""}', "A", '""', None),
        ("${A:=}", "A", None, Trouble.EMPTY),
        ("${A:-${B}}", "A", "${B}", None),
        ("${A//b/c}", "A", None, None),
        ("${A-b}", "", None, Trouble.SYNTAX),
        ("${A:=${B-}}", "", None, Trouble.SYNTAX),
        ("${A", "", None, Trouble.SYNTAX),
    ],
)
def test_names_and_defaults(
    text: str, name: str, default: str | None, trouble: Trouble | None
) -> None:
    (variable,) = scan(f"x: {text}")
    assert variable.text == text
    assert (variable.name, variable.default, variable.trouble) == (name, default, trouble)


@pytest.mark.parametrize("text", ["$A", "$(A)", "^a$", "$${A}", "$$$${A}", "{A}", "a: b"])
def test_what_is_no_variable(text: str) -> None:
    assert scan(text) == ()


def test_lines_and_comments() -> None:
    text = "a: ${A} # ${B}\nb: 'x # ${C}'\n# it's ${D}\nc: it's # ${E}\nd: a#${F}\n${-}\n${G}"
    assert [(v.name, v.line, v.commented) for v in scan(text)] == [
        ("A", 1, False),
        ("B", 1, True),
        ("C", 2, False),
        ("D", 3, True),
        ("E", 4, True),
        ("F", 5, False),
        ("", 6, False),
        ("G", 7, False),
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("${A}", {"A"}),
        ("${A:=}", {"A"}),
        ("${A^^} ${#B}", {"A", "B"}),
        ("${A:=b}", set()),
        ("${A:=${B}}", set()),
        ("${A%.*} ${A}", set()),
        ("${A:=b} ${A}", set()),
        ("${A} ${A:=b}", {"A"}),
        ("${A-} ${B}", {"B"}),
    ],
)
def test_clusterctl_requires_what_first_occurs_without_a_default(
    text: str, names: set[str]
) -> None:
    assert find_required(scan(text)) == names


def test_variables_within_others() -> None:
    (variable,) = scan("${A:=${B}-${C:=${D}}-${E:=f}}")
    assert variable.inner == ("B", "D")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain", "plain"),
        ("a: ${A:=1}${B:-2} ${C}", "a: 12 ${C}"),
        ('a: ${A:=""}', 'a: ""'),
        ("a: $${A}", "a: ${A}"),
        ("a: ${A:=${B}-x} ${C%.*}", "a: ${B}-x ${C}"),
        ("a: ${A-b} ${C:=d}", "a: ${A-b} d"),
    ],
)
def test_what_has_no_value_stays(text: str, result: str) -> None:
    assert substitute(text) == result


def test_a_substring_of_negative_length_stays() -> None:
    assert substitute("${A:0:-1}", {"A": "abc"}) == "${A:0:-1}"


def test_deep_nesting_is_refused() -> None:
    depth = MAX_DEPTH * 100
    (variable,) = scan("${A:=" * depth + "}" * depth)
    assert variable.trouble is Trouble.SYNTAX


def test_each_character_of_a_line_is_read_once() -> None:
    """A line of 50 KB with 5,000 variables took half a minute."""

    class Counted(str):
        reads = 0

        def __getitem__(self, key: SupportsIndex | slice[Any, Any, Any]) -> str:
            Counted.reads += 1
            return super().__getitem__(key)

    line = Counted("${A//x/y} " * 500)
    finder = CommentFinder(line)
    assert not any(finder.is_commented(position) for position in range(0, len(line), 10))
    assert Counted.reads <= 2 * len(line)


def test_a_comment_lasts_until_the_end_of_its_line() -> None:
    text = "a: '${A} # ${B}' ${C} # it's ${D} ${E}\nb: ${F}"
    assert [v.name for v in scan(text) if v.commented] == ["D", "E"]
