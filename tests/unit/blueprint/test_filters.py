"""Every literal filter gives back exactly the value that went in, for any text."""

from __future__ import annotations

import ast
import json
import re
import tomllib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from capsmith.blueprint import filters
from capsmith.printable import find_unprintable

TEXT = st.text(max_size=60)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_py_literal_round_trips(value: object) -> None:
    assert ast.literal_eval(filters.py_literal(value)) == value


@pytest.mark.parametrize(
    "character",
    ["\U0001fae8", "\u1c89", "\u0378"],
    ids=["assigned in Unicode 15", "assigned in Unicode 16", "not assigned"],
)
def test_text_does_not_depend_on_the_unicode_version_of_python(character: str) -> None:
    text = f"a {character} b"
    assert filters.py_literal(text) == f"'{text}'"
    assert filters.one_line(text) == text
    assert filters.docstring(text) == f"{text}."


@given(PLAIN, st.integers(0, 6))
def test_to_yaml_round_trips_at_any_indent(value: object, indent: int) -> None:
    lead = " " * indent
    text = f"{lead}{filters.to_yaml({'key': value}, indent)}\n"
    assert yaml.safe_load(text) == {"key": value}


@given(PLAIN)
def test_json_literal_round_trips_and_is_yaml_too(value: object) -> None:
    text = filters.json_literal(value)
    assert text.isascii()
    assert json.loads(text) == value


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_toml_literal_round_trips(value: str) -> None:
    literal = filters.toml_literal(value)
    assert tomllib.loads(f"key = {literal}")["key"] == value
    assert not find_unprintable(literal)


@pytest.mark.parametrize(
    ("character", "escape"),
    [
        ("\u202e", "\\u202e"),  # reverses the text after it in an editor
        ("\u200b", "\\u200b"),  # has no width
        ("\ufeff", "\\ufeff"),
        ("\x85", "\\u0085"),
        ("\U000e0041", "\\U000e0041"),
        ("\uffff", "\\uffff"),
    ],
)
def test_toml_literal_shows_what_an_editor_hides(character: str, escape: str) -> None:
    assert filters.toml_literal(f"a{character}b") == f'"a{escape}b"'


@given(TEXT | st.text("\"'\\\\ a-", max_size=200))
def test_a_docstring_says_any_text_within_the_columns(text: str) -> None:
    source = f'"""{filters.docstring(text)}"""\n'
    module = ast.parse(source)
    said = " ".join((ast.get_docstring(module) or "").split())
    assert len(module.body) == 1
    assert said.removesuffix(".") == filters.one_line(text).removesuffix(".")
    assert all(len(line) <= 100 or " " not in line for line in source.splitlines())


@pytest.mark.parametrize("text", ["1. one", "12) two", "- x", "+ x", "--- x", "=", "# x", "> x"])
def test_markdown_opens_no_block(text: str) -> None:
    assert re.match(r"\d*\\", filters.markdown(text))


def test_markdown_says_what_was_written() -> None:
    assert filters.markdown("a & b &lt; <b>") == "a & b &amp;lt; &lt;b\\>"
    assert filters.markdown_code("a`b") == "``a`b``"
    assert filters.markdown_code("`a|b`") == "`` `a\\|b` ``"


@given(TEXT)
def test_a_comment_is_comment_lines_only(text: str) -> None:
    lines = filters.comment(text, width=20).split("\n")
    assert all(line.startswith("#") for line in lines)
    assert ast.parse("\n".join(lines)).body == []


@given(TEXT)
def test_a_comment_never_opens_a_clusterctl_variable(text: str) -> None:
    assert "${" not in filters.comment(text)


@given(TEXT)
def test_markdown_stays_in_its_table_cell(text: str) -> None:
    for cell in (filters.markdown(text), filters.markdown_code(text)):
        assert "\n" not in cell
        assert "|" not in cell.replace("\\|", "")


@pytest.mark.parametrize("word", ["no", "on", "y", "1.10", "0x1", "null", "~", "2026-01-01", ""])
def test_words_that_yaml_reads_otherwise_are_quoted(word: str) -> None:
    assert yaml.safe_load(filters.to_yaml([word])) == [word]


def test_frozen_data_is_dumped_in_a_stable_order() -> None:
    assert filters.to_yaml({"a": frozenset({"c", "b"}), "t": ("x",)}) == "a:\n- b\n- c\nt:\n- x"
