"""A blueprint prints safe text only: what a user wrote can never become code."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from capsmith.blueprint.plan import load_manifest
from capsmith.blueprint.render import UnsafeText, make_environment
from capsmith.errors import BlueprintError
from capsmith.safetext import KindName

USER_TEXT = "'; import os  # {{ 7 * 7 }}"


def rendered(blueprint: str, **context: object) -> str:
    return make_environment({"b": blueprint}, None, "").get_template("b").render(**context)


@pytest.mark.parametrize(
    "blueprint",
    [
        "{{ text }}",
        "{{ text | trim }}",
        "{{ 'a' ~ text }}",
        "{{ kind + text }}",
        "{{ text | default('x') }}",
        "{{ text | replace('a', 'b') }}",
        "{{ [text, text][0] }}",
        "{{ text if text else 'x' }}",
        "{{ true }}",
        "{{ none }}",
        "{% for c in text %}{{ c }}{% endfor %}",
    ],
)
def test_text_without_a_literal_filter_is_refused(blueprint: str) -> None:
    with pytest.raises(UnsafeText):
        rendered(blueprint, text=USER_TEXT, kind=KindName("Foo"))


@pytest.mark.parametrize(
    "blueprint", ["{{ [text] | join(', ') }}", "{{ text | upper }}", "{{ text | lower }}"]
)
def test_filters_that_keep_text_safe_refuse_what_is_not(blueprint: str) -> None:
    with pytest.raises(TypeError):
        rendered(blueprint, text=USER_TEXT)


@pytest.mark.parametrize(
    ("blueprint", "expected"),
    [
        ("class {{ kind }}:", "class AcmeMachine:"),
        ("{{ 'a' if kind else 'b' }}", "a"),
        ("{{ kind | lower }}s", "acmemachines"),
        ("{{ [kind, kind] | join(', ') }}", "AcmeMachine, AcmeMachine"),
        ("x = {{ text | py_literal }}", f"x = {USER_TEXT!r}"),
        ("{{ 3 }}", "3"),
        ("{{ text | length }}", str(len(USER_TEXT))),
    ],
)
def test_safe_text_is_printed(blueprint: str, expected: str) -> None:
    assert rendered(blueprint, text=USER_TEXT, kind=KindName("AcmeMachine")) == expected


def test_an_undefined_name_is_an_error_that_names_it() -> None:
    with pytest.raises(UndefinedError, match="nobody"):
        rendered("{{ nobody }}")


class MemoryCache:
    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        return self.entries.get(key)

    def put(self, key: str, value: bytes) -> None:
        self.entries[key] = value


def test_compiled_blueprints_are_kept_and_still_refuse() -> None:
    cache = MemoryCache()
    make_environment({"b": "{{ text }}"}, cache, "1").get_template("b")
    assert len(cache.entries) == 1
    again = make_environment({"b": "{{ text }}"}, cache, "1").get_template("b")
    with pytest.raises(UnsafeText):
        again.render(text=USER_TEXT)
    make_environment({"b": "{{ text }}"}, cache, "2").get_template("b")
    assert len(cache.entries) == 2


@pytest.mark.parametrize(
    ("text", "line"),
    [("- source: [", 2), ("- {source: a.jinja, owner: merged}\n\tb", 2), ("a: \x00", 0)],
)
def test_a_manifest_that_is_no_yaml_is_reported(text: str, line: int) -> None:
    with pytest.raises(BlueprintError, match="invalid YAML") as raised:
        load_manifest(text, "blueprints/manifest.yaml")
    finding = raised.value.finding
    assert (finding.id, finding.location.file) == ("blueprint-manifest", "blueprints/manifest.yaml")
    assert finding.location.line == line


@pytest.mark.parametrize("text", ["- source: !!timestamp now", "- !!bool maybe"])
def test_a_manifest_with_values_of_other_forms_is_reported(text: str) -> None:
    with pytest.raises(BlueprintError, match="invalid YAML"):
        load_manifest(text, "blueprints/manifest.yaml")
