"""Patterns: what Go's regexp refuses is refused, and matching takes linear time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsmith.provider_yaml import patterns
from capsmith.provider_yaml.patterns import explain_refusal, has_match

ACCEPTED = r"""
    ^[a-z]+$ ^(a+)+$ (?P<n>a) (?<n>a) (?i)a (?i:a) (?-i)a (?s). [[:alpha:]] \pL\p{Greek} \x{61}
    \x61 \d\w\s\b\A\z (a|b)*?c a?? [*+] \*+ a{0} a{2,} a{1000} []a] [^]a] é+ \a\f\t\n\r\v
    (a{30}){30} [a&&b] {a} ^{$ {1, \< \> \0 \07 (?) }* x\]{ \p{Greek}{300} [[:^digit:]]
"""
REFUSED = r"""
    (?=a)b (?!a) (?<=a)b (?<!a)b (a)\1 \8 \k<n> \g<n> a++ a** a*?+ a{2}{3} a{1001} a{1,2000}
    (a{40}){40} ((a{100}){100}){100} (?x)a (?>a) (?#c) \Z \G \u{61} ( ) [ [z-a] [a-\d] * +a a|*
    x{2,1} \e [a--b] [[:foo:]] \p{IsGreek} (?P<é>a) \C a{9999999999} \X \h (?'q'a) (?|a)
"""


@pytest.mark.parametrize("pattern", ACCEPTED.split())
def test_what_the_api_server_takes(pattern: str) -> None:
    assert explain_refusal(pattern) == ""


@pytest.mark.parametrize("pattern", REFUSED.split())
def test_what_the_api_server_refuses(pattern: str) -> None:
    assert explain_refusal(pattern)


def test_deep_and_long_patterns_are_judged() -> None:
    assert explain_refusal("(" * 500 + ")" * 500) == ""
    assert explain_refusal("(" * 50_000)
    assert explain_refusal("a{" + "9" * 900 + "}")
    assert explain_refusal("a" * 100_000) == ""
    assert has_match(r"(\pL{1000}){1000}", "too large to be matched")


def test_matching_is_unanchored_and_linear() -> None:
    assert has_match("b+", "abba")
    assert not has_match("^b+$", "abba")
    assert not has_match("^(a+)+$", "a" * 5000 + "b")
    assert has_match("(", "anything")


EVERYDAY = [
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
    r"^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$",
    r"^v?(?:0|[1-9]\d{0,3})\.\w+/[^\r\n]*$",
]


@pytest.mark.parametrize("pattern", EVERYDAY)
def test_everyday_patterns_do_not_load_the_cel_library(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(patterns, "_matcher")
    assert explain_refusal(pattern) == ""
    assert not has_match(pattern, "\n")


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^\d$", "1", "٣"),
        (r"^\D$", "٣", "1"),
        (r"^\w+$", "a_1", "ä"),
        (r"^[^\w]$", "ä", "a"),
        (r"^\s$", "\t", "\u00a0"),
        (r"\bä", "xä", "ä"),
        (r"^[a&&b]+$", "a&b", "c"),
        (r"^[[]$", "[", "]"),
        (r"^[]a]+$", "]a", "b"),
        (r"^\Qa.b\E$", "a.b", "axb"),
        (r"^[[:alpha:]~-]+$", "a~-b", "1"),
        (r"^[+--]$", "-", "a"),
        (r"^{\d}$", "{1}", "{٣}"),
        (r"^\101\x{42}$", "AB", "ab"),
        (r"^(?i)k$", "\u212a", "x"),
        (r"^\$\{\w+\}$", "${a}", "${}"),
        (r"^.$", "é", "\n"),
        (r"^a$", "a", "a\n"),
    ],
)
def test_classes_are_those_of_re2(pattern: str, matching: str, other: str) -> None:
    assert explain_refusal(pattern) == ""
    assert has_match(pattern, matching)
    assert not has_match(pattern, other)


_ATOMS = r"""
    a b - . ^ $ | ( ) (?: \d \w \S \. \- \n é [a-z] [^0-9] [-a] [a-] [a-z-] [,-.] [!-~] [+--] [>-~a]
    [a&&b] [a--b] [a~~b] [[a] [\d-z] [\n-a] [^\]] [[:alpha:]] (?i) \b { } {1 ] /
"""
_QUANTIFIERS = ("", "", "", "*", "+", "?", "*?", "{2}", "{0,2}", "{,2}")
_PARTS = st.tuples(st.sampled_from(_ATOMS.split()), st.sampled_from(_QUANTIFIERS)).map("".join)


@given(st.lists(_PARTS, max_size=6).map("".join), st.text("ab-,.~&[]{}09 \n\u00e9A", max_size=6))
def test_the_fast_engine_agrees_with_re2(pattern: str, text: str) -> None:
    is_match, refusal = patterns._match(pattern, text)
    assert bool(explain_refusal(pattern)) == bool(refusal)
    assert refusal or has_match(pattern, text) == is_match
