"""Variables become sample values, and positions stay those of the original."""

from __future__ import annotations

import pytest

from capsmith.judge.release.release import SourceFile, read_file, substitute
from capsmith.manifests.parse import SAMPLE

TEXT = """a: ${A:=x} end
b: ${ B } # $$ one
${C}
v: ${KUBERNETES_VERSION%.*} z
q: "${D:=${CLUSTER_NAME}-vnet}" k
r: ${E:=one
two} r
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A:=x}", "x"),
        ("${A:=${CLUSTER_NAME}-vnet}", "sample-vnet"),
        ("${A}", SAMPLE),
        ("x-${A:=}", f"x-{SAMPLE}"),
        ("${A:0:3}", SAMPLE),
        ("${#A}", "1"),
        ("${KUBERNETES_VERSION%.*}", "v1.34"),
        ("$${A} $$ $ $A", "${A} $ $ $A"),
        ("x: ${A-b}", f"x: {SAMPLE}"),
    ],
)
def test_values(text: str, expected: str) -> None:
    assert substitute(text).text == expected


def test_a_variable_alone_in_its_line_may_be_a_block() -> None:
    assert substitute("a:\n  ${BLOCK}\nb: ${B}\n", alone="").text == f"a:\n  \nb: {SAMPLE}\n"


@pytest.mark.parametrize("word", ["end", "one", "z", "k", "r:", 'q: "', "two"])
def test_positions(word: str) -> None:
    """Each word is at the same place of both texts, by the way back."""
    result = substitute(TEXT)
    offset = result.text.index(word)
    line = result.text.count("\n", 0, offset) + 1
    found = result.position(line, offset - result.text.rfind("\n", 0, offset))
    original = result.original.split("\n")[found[0] - 1]
    expected = "${E" if word == "two" else word
    assert original[found[1] - 1 :].startswith(expected)


def test_a_value_is_where_its_variable_is() -> None:
    assert substitute("key: [1, ${LONG:=a}, ${B:=b}]").position(1, 13) == (1, 22)


def test_a_text_without_variables_is_as_it_was() -> None:
    result = substitute("a: b\nc: d\n")
    assert (result.text, result.position(2, 4)) == ("a: b\nc: d\n", (2, 4))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028", "\u2029"])
def test_lines_end_where_yaml_says(end: str) -> None:
    """Errors in files with other line ends were reported as a wrong option."""
    lines = ["kind: A", "a: ${A}", "b: 1", "c: 1", "d: 1", "e: [1", "f: 1", ""]
    file = SourceFile("infrastructure-components.yaml", end.join(lines), alone=True)
    _, (finding,), _ = read_file(file)
    assert finding.location.line == 7
