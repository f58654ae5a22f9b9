"""Which characters are printable, and literals with them."""

from __future__ import annotations

import ast
import sys
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsmith.printable import find_unprintable, make_printable, quote_python, replace_unprintable

_OLD = unicodedata.ucd_3_2_0
"""The version of Unicode that each Python has, whatever its own is."""


def _list_characters() -> Iterator[str]:
    yield from (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)


def test_characters_of_old_are_what_python_says() -> None:
    for character in _list_characters():
        if _OLD.category(character) != "Cn":
            assert bool(find_unprintable(character)) is not character.isprintable(), ascii(
                character
            )
            assert quote_python(character) == repr(character), ascii(character)


def test_characters_that_are_not_assigned_are_printable() -> None:
    unassigned = "\U0001fae8\u1c89\u0378"
    assert find_unprintable(unassigned) == ""
    assert make_printable(unassigned) == unassigned
    assert quote_python(unassigned) == f"'{unassigned}'"


def test_every_character_comes_back_from_its_literal() -> None:
    text = "".join(_list_characters())
    assert ast.literal_eval(quote_python(text)) == text


@given(st.text(alphabet="'\"\\\n\t\x00 aé\u2028"))
def test_quotes_are_those_of_repr(text: str) -> None:
    assert quote_python(text) == repr(text)


@pytest.mark.parametrize(
    ("text", "shown"), [("a\x1b[1mb", "a\\x1b[1mb"), ("a\u202eb\n", "a\\u202eb\\n"), ("é", "é")]
)
def test_what_a_terminal_would_obey_is_shown(text: str, shown: str) -> None:
    assert make_printable(text) == shown


def test_each_unprintable_character_is_replaced() -> None:
    assert replace_unprintable("a\x00\ue000b", "?") == "a??b"
