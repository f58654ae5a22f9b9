"""Documents: positions of everything, and little cost for hostile text."""

from __future__ import annotations

import tracemalloc

import pytest

from capsmith.findings import Location
from capsmith.yamldoc.compose import MAX_ANCHORS, MAX_DEPTH, MAX_NODES
from capsmith.yamldoc.document import MAX_CHARACTERS, Document, parse_document
from tests.counting import counted_calls


def document(text: str) -> Document:
    parsed, findings = parse_document(text, "p.yaml")
    assert findings == ()
    assert parsed is not None
    return parsed


def ids(text: str) -> list[str]:
    parsed, findings = parse_document(text, "p.yaml")
    assert (parsed is None) == bool(findings)
    return [finding.id for finding in findings]


def test_values_are_plain_data() -> None:
    text = "a: 1\nb: {c: [x, 2.5, yes, ~]}\nd: 2026-01-01\ne: '5'\nf: !!str 5\ng: |\n  x\n  y\n"
    assert document(text).data == {
        "a": 1,
        "b": {"c": ["x", 2.5, True, None]},
        "d": "2026-01-01",
        "e": "5",
        "f": "5",
        "g": "x\ny\n",
    }


def test_keys_and_values_have_positions() -> None:
    doc = document("# c\na: 1\nb:\n  c: [x,\n    {y: z}]\n")
    assert doc.key(("a",)) == Location("p.yaml", 2, 1)
    assert doc.value(("a",)) == Location("p.yaml", 2, 4)
    assert doc.value(("b", "c")) == Location("p.yaml", 4, 6)
    assert doc.value(("b", "c", 1, "y")) == Location("p.yaml", 5, 9)
    assert doc.key(("b", "c", 1, "y")) == Location("p.yaml", 5, 6)


def test_a_path_that_is_not_there_has_the_position_of_its_parent() -> None:
    doc = document("a: 1\nb:\n  c: 2\n")
    assert doc.value(("b", "missing", 3)) == doc.value(("b",))
    assert doc.key(("b", "missing")) == Location("p.yaml", 2, 1)
    assert doc.key(("missing",)) == Location("p.yaml", 1, 1)


def test_only_plain_scalars_have_a_raw_text() -> None:
    doc = document("a: 1.10\nb: '1.10'\nc: [no]\n")
    assert doc.raw(("a",)) == "1.10"
    assert doc.raw(("b",)) is None
    assert doc.raw(("c", 0)) == "no"
    assert doc.raw(("c",)) is None


def test_aliases_stand_where_they_are_used_and_their_content_where_it_is_written() -> None:
    doc = document("a: &x {b: 1}\nc: *x\nd: *x\n")
    assert doc.data == {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1}}
    assert doc.value(("c",)) == Location("p.yaml", 2, 4)
    assert doc.key(("c",)) == Location("p.yaml", 2, 1)
    assert doc.value(("c", "b")) == Location("p.yaml", 1, 11)


def test_an_alias_may_be_redefined() -> None:
    assert document("a: &x 1\nb: *x\nc: &x 2\nd: *x\n").data == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_a_byte_order_mark_is_no_text() -> None:
    assert document("\ufeffa: 1").data == {"a": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [("0x1F", 31), ("010", 8), ("1_000", 1000), ("-3", -3), ("1e3", "1e3"), ("1.0e+3", 1000.0)],
)
def test_numbers_are_those_of_yaml(text: str, value: object) -> None:
    assert document(f"a: {text}").data == {"a": value}


def test_the_longest_and_deepest_that_is_read() -> None:
    levels = MAX_DEPTH - 1
    assert ids("a: " + "[" * levels + "]" * levels) == []
    assert ids("a: " + "[" * (levels + 1) + "]" * (levels + 1)) == ["yaml-too-deep"]
    items = MAX_NODES - 3
    assert ids("a: [" + "x," * items + "]") == []
    assert ids("a: [" + "x," * (items + 1) + "]") == ["yaml-too-many-nodes"]
    assert ids("a: " + "x" * (MAX_CHARACTERS - 3)) == []
    assert ids("a: " + "x" * (MAX_CHARACTERS - 2)) == ["yaml-too-large"]


def laughs(levels: int) -> str:
    rows = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    rows += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (laughs(12), "yaml-too-many-nodes"),
        ("a: " + "[" * 100_000, "yaml-too-deep"),
        ("{a: " * 100_000, "yaml-too-deep"),
        ("- " * 300_000, "yaml-too-deep"),
        ("\n".join(f"k{i}: &a{i} 1" for i in range(9000)), "yaml-too-many-nodes"),
        ("[" + "no: 1," * 100_000, "yaml-too-many-problems"),
        ("a: &a {" + "".join(f"k{i}: *b," for i in range(9)) + "}", "yaml-alias"),
    ],
    ids=["laughs", "brackets", "braces", "dashes", "anchors", "problems", "aliases"],
)
def test_hostile_text_is_refused_at_little_cost(text: str, expected: str) -> None:
    with counted_calls("call", "c_call") as calls:
        found = ids(text)
    assert found[-1] == expected or expected in found
    assert calls[0] < 1_000_000, "a document of the largest size that is read takes 30 million"

    tracemalloc.start()
    try:
        ids(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * 1024 * 1024


def test_anchors_are_few() -> None:
    text = "\n".join(f"k{i}: &a{i} 1" for i in range(MAX_ANCHORS))
    assert ids(text) == []
    assert ids(text + "\nlast: &last 1") == ["yaml-too-many-nodes"]


def test_all_problems_are_reported_at_once() -> None:
    assert ids("no: 1\na: 1\na: 2\nb: .inf\nc: !!int '1'\nd: \"\\0\"\n") == [
        "yaml-key-not-text",
        "yaml-duplicate-key",
        "yaml-number",
        "yaml-tag",
        "yaml-control-character",
    ]


@pytest.mark.parametrize("character", ["\ufdd0", "\ufdef", "\U0001fffe", "\U0010ffff"])
def test_non_characters_are_refused(character: str) -> None:
    assert ids(f"a: {character}") == ["yaml-control-character"]


def test_an_alias_counts_as_deep_as_its_content() -> None:
    anchored = "a: &x " + "{b: " * 5 + "{}" + "}" * 5 + "\n"

    def below(levels: int) -> str:
        return anchored + "c: " + "{d: " * levels + "*x" + "}" * levels

    assert ids(below(MAX_DEPTH - 7)) == []
    assert ids(below(MAX_DEPTH - 6)) == ["yaml-too-deep"]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('a: 1\nb: "\\UFFFFFFFF"', 2, 7),
        (f"%YAML {'9' * 5000}.1\n---\na: 1", 1, 7),
        ("a: " + "x" * MAX_CHARACTERS, 1, MAX_CHARACTERS + 1),
        ("\n" * (MAX_CHARACTERS + 1), MAX_CHARACTERS + 1, 1),
    ],
)
def test_refusals_have_a_position(text: str, line: int, column: int) -> None:
    _, (finding,) = parse_document(text, "p.yaml")
    assert finding.location == Location("p.yaml", line, column)
