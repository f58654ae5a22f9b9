"""Whatever the input is, the answer is findings (or that it cannot be read), never a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from capsmith.errors import UnreadableInput
from capsmith.workspace.reading import read_document
from tests.invalid.cases import EXAMPLES, judge, text_of

FILES = sorted(EXAMPLES.glob("*/provider.yaml"))
TEXTS = [path.read_text(encoding="utf-8") for path in FILES]
BITS = r"""
    { } [ ] : - ? &a *a !x | > % --- ... ' " # << ~ no 1.10 .inf \ é capsmith:
    infrastructure: spec: default: pattern: ( ${X} array
"""
PIECES = st.sampled_from(
    [*BITS.split(), " ", "\n", "\n  ", "\t", "\x00", "\x85", "\ud800", ": ", "- "]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS | PIECES,
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
NAMES = """
    type format required immutable enum default pattern minimum maximum minLength items properties
    additionalProperties nullable x-kubernetes-list-type x-kubernetes-list-map-keys
    x-kubernetes-validations x-kubernetes-int-or-string multipleOf maxItems
"""
KEYWORDS = st.sampled_from(NAMES.split())
WORDS = st.sampled_from(["string", "integer", "array", "object", "map", "set", "a", "true", "name"])
SCHEMAS = st.recursive(
    st.dictionaries(KEYWORDS, SCALARS | WORDS | st.lists(SCALARS | WORDS, max_size=3), max_size=5),
    lambda inner: st.dictionaries(
        KEYWORDS, inner | WORDS | st.dictionaries(WORDS, inner, max_size=2), max_size=5
    ),
    max_leaves=6,
)


def check(text: str) -> None:
    said = text_of(judge(text))
    said.encode()
    assert "\x1b" not in said


@given(st.text(max_size=300))
@example("\ufeff")
@example("%YAML 1.99999999999999999999\n---\na: 1")
@example('"\\UFFFFFFFF"')
@example("!<tag:%ff> x")
def test_any_text(text: str) -> None:
    check(text)


@given(st.lists(PIECES, max_size=30).map("".join))
@settings(max_examples=300)
def test_any_punctuation(text: str) -> None:
    check(text)


@given(
    st.sampled_from(TEXTS), st.integers(0, 5000), st.integers(0, 40), PIECES | st.text(max_size=9)
)
@settings(max_examples=300)
def test_any_edit_of_a_description(text: str, at: int, cut: int, put: str) -> None:
    at %= len(text)
    check(text[:at] + put + text[at + cut :])


@given(
    VALUES, st.sampled_from(["name", "contracts", "releases", "infrastructure", "rbac", "groups"])
)
@settings(max_examples=300)
def test_any_value_of_a_key(value: Any, key: str) -> None:
    lines = [line for line in TEXTS[0].splitlines() if not line.startswith(f"{key}:")]
    check("\n".join(lines) + f"\n{key}: {json.dumps(value)}\n")


@given(SCHEMAS)
@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
def test_any_schema_of_a_field(schema: Any) -> None:
    check(TEXTS[0].replace("image: string!", f"image: {json.dumps(schema)}"))


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "provider.yaml"
    path.write_bytes(data)
    if is_text(data):
        check(read_document(path))
        return
    with pytest.raises(UnreadableInput) as caught:
        read_document(path)
    assert caught.value.finding.id == "input-not-text"
    assert caught.value.exit_code == 2


def is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize("length", [10, 300])
def test_long_names_are_judged_not_built(length: int) -> None:
    for key in ("name: acme", "AcmeMachine", "diskGiB", "AcmeIdentity"):
        check(TEXTS[0].replace(key, key + "a" * length))
