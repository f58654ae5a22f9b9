"""Patterns that accept at least what another one accepts."""

from __future__ import annotations

import random
import re
import string

import pytest

from capsmith.judge.release.pattern_languages import is_included

WIDER = [
    ("^[a-z]+$", "^[a-z0-9]+$"),
    ("^[a-z]{1,5}$", "^[a-z]{0,9}$"),
    ("^[a-z]{3}$", "[a-z]"),
    ("^a$", "a"),
    ("^(small|large)$", "^(small|medium|large)$"),
    ("^(?:a|b)+$", "^[ab]*$"),
    (r"^\d+\.\d+$", r"^\d+(\.\d+)*$"),
    (r"^v1\.[0-9]+$", r"^v[12]\..+$"),
    ("^[^/]+$", "^[^/]*$"),
    ("^s", "^[rs]"),
    ("a", ""),
    (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
    ("^[A-Za-z_]+$", r"^\w*$"),
    (r"^\$x$", r"\$x"),
    ("^[a-]$", "^[-a]$"),
]


@pytest.mark.parametrize(("pattern", "other"), WIDER)
def test_a_wider_pattern_is_found(pattern: str, other: str) -> None:
    assert is_included(pattern, other)


@pytest.mark.parametrize(("pattern", "other"), WIDER[:6] + WIDER[7:14])
def test_a_narrower_pattern_is_none(pattern: str, other: str) -> None:
    assert not is_included(other, pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?i)a", r"\ba", r"\pL", "[[:alpha:]]", "a+?", "(?P<n>a)", "^a|b$", "a$b", "(", "["),
        *("a{2000}", "(a{100}){100}", "a**", "x{2,1}", "(" * 200 + ")" * 200, "\\"),
    ],
)
def test_what_is_not_supported_is_not_decided(pattern: str) -> None:
    assert not is_included("x", pattern)
    assert not is_included(pattern, pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a|b)*a(a|b){20}$",
        f"^{'?'.join(string.ascii_letters * 4)}?$",
        f"(?:{'|'.join(string.ascii_letters * 3)}){{2}}",
        f"^{'(' * 2_000}a{')' * 2_000}$",
    ],
    ids=lambda pattern: pattern[:9],
)
def test_what_would_take_long_is_not_decided(pattern: str) -> None:
    assert not is_included(pattern, pattern)


def test_the_verdict_is_that_of_texts() -> None:
    """Compare with what the patterns match, for small patterns at random."""
    chance = random.Random(1)
    texts = [
        "",
        "a",
        "b",
        "ab",
        "ba",
        "aa",
        "bb",
        "aab",
        "aba",
        "bab",
        "c",
        "ac",
        "abc",
        "\n",
        "aaa",
    ]
    pieces = ["a", "b", "[ab]", "[^a]", ".", "(a|b)", "(ab)?", "a*", "b+", "a{1,2}", "(a|bc)*"]
    included = 0
    for _ in range(1500):
        one, two = (
            f"{chance.choice(['', '^'])}{''.join(chance.choices(pieces, k=chance.randint(0, 3)))}"
            f"{chance.choice(['', '$'])}"
            for _ in range(2)
        )
        # In Python, $ also matches before the last line end.
        matched = [[bool(re.search(_end(each), text)) for text in texts] for each in (one, two)]
        is_refuted = any(left and not right for left, right in zip(*matched, strict=True))
        assert not (is_included(one, two) and is_refuted), (one, two)
        included += is_included(one, two)
        assert is_included(one, one), one
    assert included > 100


def _end(pattern: str) -> str:
    return pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern
