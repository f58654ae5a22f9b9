"""RE2 means the same after it was converted for Python's engine."""

from __future__ import annotations

import re

import pytest

from capsmith_runtime.testing.patterns import compile_pattern


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        (r"^(?i)[a-z]+$", ["Ab"], ["1", ""]),
        (r"^a(?i)b|c$", ["aB", "xC"], ["Ab", "c1"]),
        (r"^(a(?i)b)c$", ["aBc"], ["aBC", "ABc"]),
        (r"^(?i)(?s)a.b\z", ["A\nB"], ["A\nB\n", "ab"]),
        (r"^[[:alpha:]_]+[^[:digit:]]$", ["a_b"], ["1a", "a1"]),
        (r"^[(|)]\|\(?$", ["(|", "||("], ["a|"]),
        (r"^\w$", ["a"], ["ä"]),
        (r"^[a-z]+$", ["ab"], ["ab\n"]),
        (r"(?m)^a$", ["b\na\nb"], ["ab"]),
        (r"^a{,3}$", ["a{,3}"], ["", "aa"]),
        (r"^[[:punct:]-]+$", ["!`-"], ["a"]),
        (r"^[:alph]$", [":", "a"], ["b"]),
    ],
)
def test_a_pattern_matches_what_re2_matches(
    pattern: str, matches: list[str], others: list[str]
) -> None:
    compiled = compile_pattern(pattern)
    assert [text for text in matches if not compiled.search(text)] == []
    assert [text for text in others if compiled.search(text)] == []


@pytest.mark.parametrize("pattern", [r"^\pL+$", "[[:^digit:]]"])
def test_what_python_cannot_express_is_an_error(pattern: str) -> None:
    with pytest.raises(re.error):
        compile_pattern(pattern)
