from __future__ import annotations

import pytest

from capsmith.conformance.variables import Trouble, scan, with_defaults


@pytest.mark.parametrize(
    ("text", "name", "default", "trouble"),
    [
        ("${A}", "A", None, None),
        ("${ A }", "A", None, None),
        ("${A:=b}", "A", "b", None),
        ("${A:-b}", "A", "b", None),
        ("${A=b}", "A", "b", None),
        ("${A:=:8443}", "A", ":8443", None),
        ('${A:=""}', "A", '""', None),
        ("${A:=}", "A", None, Trouble.EMPTY),
        ("${A-b}", "A", None, Trouble.SYNTAX),
        ("${A.B}", "A", None, Trouble.SYNTAX),
        ("${1A}", "", None, Trouble.SYNTAX),
        ("${}", "", None, Trouble.SYNTAX),
        ("${A", "", None, Trouble.SYNTAX),
        ("${A:-${B}}", "A", "${B}", Trouble.NESTED),
    ],
)
def test_forms(text: str, name: str, default: str | None, trouble: Trouble | None) -> None:
    (variable,) = scan(f"x: {text}")
    assert variable.text == text
    assert (variable.name, variable.default, variable.trouble) == (name, default, trouble)


@pytest.mark.parametrize("text", ["$A", "$(A)", "^a$", "$${A}", "$$$${A}", "{A}", "a: b"])
def test_what_is_no_variable(text: str) -> None:
    assert scan(text) == ()


def test_lines_and_comments() -> None:
    text = "a: ${A} # ${B}\nb: 'x # ${C}'\n# it's ${D}\nc: it's # ${E}\nd: a#${F}\n"
    assert [(v.name, v.line, v.commented) for v in scan(text)] == [
        ("A", 1, False),
        ("B", 1, True),
        ("C", 2, False),
        ("D", 3, True),
        ("E", 4, True),
        ("F", 5, False),
    ]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain", "plain"),
        ("a: ${A:=1}${B:-2} ${C}", "a: 12 ${C}"),
        ('a: "${A:=""}"', 'a: ""'),
        ("a: $${A}", "a: ${A}"),
        ("a: $$ $$${A:=x}", "a: $ $x"),
        ("a: ${A:=${B}}", "a: ${A:=${B}}"),
    ],
)
def test_defaults(text: str, result: str) -> None:
    assert with_defaults(text) == result
