"""The JSON Schema: what is committed is what the model says, and an example shows all of it."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from capsmith import resources
from capsmith.provider_yaml.jsonschema import build_provider_schema, format_provider_schema
from tests.invalid.cases import EXAMPLES


def test_the_committed_schema_is_the_generated_one() -> None:
    committed = resources.schemas() / "provider.schema.json"
    assert committed.read_text(encoding="utf-8") == format_provider_schema()


def test_every_key_is_described() -> None:
    schema = build_provider_schema()
    for part in (schema, *schema["$defs"].values()):
        assert part["additionalProperties"] is False
        assert part["description"].endswith(".")
        for name, key in part["properties"].items():
            assert key["description"], name
    assert json.loads(format_provider_schema()) == schema


def test_patterns_are_anchored_and_read_by_javascript() -> None:
    found = re.findall(r'"pattern": "(.*)"', format_provider_schema())
    assert found
    for pattern in found:
        assert pattern.startswith("^(")
        assert pattern.endswith(")$")
        assert "(?P" not in pattern
        assert "(?s" not in pattern


def test_the_examples_have_every_key() -> None:
    texts = [path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*/provider.yaml")]
    used = {key for text in texts for key in _keys(yaml.safe_load(text))}
    schema = build_provider_schema()
    known = {name for part in (schema, *schema["$defs"].values()) for name in part["properties"]}
    assert known - used == set()


def test_the_common_case_is_short() -> None:
    text = (EXAMPLES / "acme" / "provider.yaml").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 30


def _keys(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [*node, *(key for value in node.values() for key in _keys(value))]
    return [key for item in node for key in _keys(item)] if isinstance(node, list) else []
