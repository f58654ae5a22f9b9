"""Templates of patches; `tests/e2e/test_class_templates.py` compares with core's webhook."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsmith.manifests.go_template import Cursor, TemplateError, Token, parse_template, read_tokens
from tests.class_templates import REFUSED, TAKEN


@pytest.mark.parametrize("text", TAKEN)
def test_what_core_takes_parses(text: str) -> None:
    parse_template(text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_core_refuses_does_not_parse(text: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_template(text)
    assert 0 <= caught.value.position <= len(text)


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("{{ .a.b }}{{ $.c }}{{ index .d 0 }}{{ (.e).f }}", {"a", "c", "d", "e"}),
        ("{{ if .a }}{{ .b }}{{ else }}{{ .c }}{{ end }}", {"a", "b", "c"}),
        (
            "{{ range .a }}{{ .b }}{{ $.c }}{{ else }}{{ .d }}{{ end }}{{ .e }}",
            {"a", "c", "d", "e"},
        ),
        ("{{ with .a }}{{ .b }}{{ else with .c }}{{ .d }}{{ end }}", {"a", "c"}),
        ('{{ define "t" }}{{ .a }}{{ $.b }}{{ end }}{{ template "t" .c }}', {"c"}),
        ("{{ $x := .a }}{{ $x.b }}{{ . }}{{ $ }}", {"a"}),
        ('{{/* .a */}}{{ ".b" }} .c', set()),
    ],
)
def test_variables_are_those_of_the_class(text: str, variables: set[str]) -> None:
    assert parse_template(text).variables == variables


@given(st.text("{}-/* .$()|=:,\"'`ab1\n", max_size=60) | st.text(max_size=30))
def test_any_text_parses_or_is_refused(text: str) -> None:
    with contextlib.suppress(TemplateError):
        assert parse_template(text).variables >= set()


@pytest.mark.parametrize(
    "part", ["{{if 1}}", "{{(((((", "{{range 1}}{{else with 1}}", "{{if 1}}{{else if 1}}"]
)
def test_deep_nesting_is_refused(part: str) -> None:
    with pytest.raises(TemplateError):
        parse_template(part * 2_000)


class _Tokens(list[Token]):
    """Tokens that cannot be copied, which for each action would take quadratic time."""

    def __getitem__(self, index: Any) -> Any:
        assert isinstance(index, int)
        return super().__getitem__(index)


def test_looking_ahead_copies_no_tokens() -> None:
    cursor = Cursor(_Tokens(read_tokens("{{  .a }}{{ end }}")))
    assert cursor.word_after_open() == ""
    cursor.at = 5
    assert cursor.word_after_open() == "end"
