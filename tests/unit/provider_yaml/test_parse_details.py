"""Hints, shorthand and plain schemas."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.cel_text import is_transition
from capsmith.provider_yaml.field_schemas import convert_field, is_required
from capsmith.provider_yaml.forms import FieldSchema
from capsmith.provider_yaml.parse import parse
from capsmith.yamldoc.quote import clip, join_names, suggest
from tests.invalid.cases import EXAMPLES

ACME = (EXAMPLES / "acme" / "provider.yaml").read_text(encoding="utf-8")

_QUOTE = "Quote the text of `description`: in braces, a comma outside of quotes ends it."
_TABS = "Indent with spaces: YAML allows no tabs here."
_QUOTE_SIGNS = 'Write a text with such characters in quotes, as in `description: "Size: S, M or L"`'


def hints(text: str) -> list[str]:
    return [finding.hint for finding in parse(text, "provider.yaml").findings]


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (
            "name: acme",
            "name: no",
            'Write "no" in quotes: YAML reads plain `no` as a boolean.',
        ),
        ("name: acme", "name: acme\ntitle: 1.10", 'Write "1.10" in quotes'),
        ("contracts: [v1beta2]", "contracts: v1beta2", "Write [v1beta2]."),
        ("contracts: [v1beta2]", "contracs: [v1beta2]", "Did you mean `contracts`?"),
        ("minimum: 8", 'minimum: "8"', "Remove the quotes."),
        ("capsmith: 1", 'capsmith: "1"', "Remove the quotes."),
        ("format: int32", "uniqueItems: true", "Use x-kubernetes-list-type: set."),
        ("implements: InfraMachine", "implements: inframachine", "Did you mean `InfraMachine`?"),
        ("name: acme\n", "", "Add the name of the provider in clusterctl, such as `name: acme`."),
        ("type: integer", "type: map", "with `additionalProperties: string`"),
        ("type: integer", "type: list", "Write `type: array` with `items: string`."),
        ("image: string!", "image:", "Give it a value, or remove the key."),
        # Keys that only some parts of the file have are suggested there.
        ("implements: InfraMachine", "implements: InfraMachine\n    machine: x", "`machineKind`"),
        (
            "implements: InfraMachine",
            "implements: InfraMachine\n    webhooks: {x: 1}",
            "defaulting",
        ),
        (
            "implements: InfraMachine",
            "implements: InfraMachine\n    versions: {v1: {x: 1}}",
            "contractFields",
        ),
        ("name: acme", "name: acme\nmanager: {flag: {}}", "Did you mean `flags`?"),
        ("image: string!", "image: {type: string, format: ip}", "isIP(self)"),
        # In braces, a comma ends a text that has no quotes.
        ("size: string!", "size: {type: string, description: Size, S to L}", _QUOTE),
        ("size: string!", "size: {type: string, description: Size, S,\n  or L}", _QUOTE),
        ("size: string!", "size: {description: Size, such as S: small, type: string}", _QUOTE),
        ("size: string!", "size: {type: string, description: S, M, L}", _QUOTE),
        ("size: string!", "size: {description: Size, require: true}", "Did you mean `required`?"),
        ("size: string!", "size: {description: Size, require:}", "Did you mean `required`?"),
        ("size: string!", 'size: {description: "Size", S to L}', "Use one of: "),
        (
            "size: string!",
            "size:\n        description: Size\n        S to L: small",
            "Use one of: ",
        ),
        # What ends a text without a comma.
        ("size: string!", "size: {type: string, description: Size: S or L}", _QUOTE_SIGNS),
        ("size: string!", "size: {type: string, description: Size [GiB], S}", _QUOTE_SIGNS),
        ("size: string!", "size: {type: string, description: Size #1}", _QUOTE_SIGNS),
        ("size: string!", "size: {type: string, description: %S}", _QUOTE_SIGNS),
        ("enum: [north, south]", "enum: [north: cold, [south]", _QUOTE_SIGNS),
        ("size: string!", "size:\n        description: Size: S or L", _QUOTE_SIGNS),
        ("size: string!", "size: 'string", "Check the indentation, quotes and brackets"),
        ("      size: string!", "\tsize: string!", _TABS),
        ("size: string!", "size:\n\t\ttype: string", _TABS),
        ("size: string!", "size: {\n@}", "Check the indentation, quotes and brackets"),
    ],
)
def test_hints_say_what_to_do(old: str, new: str, hint: str) -> None:
    assert old in ACME
    assert any(hint in given for given in hints(ACME.replace(old, new)))


@pytest.mark.parametrize(
    ("shorthand", "schema"),
    [
        ("string", {"type": "string"}),
        ("boolean!", {"type": "boolean"}),
        ("int32", {"type": "integer", "format": "int32"}),
        (
            "int64[]!",
            {
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {"type": "integer", "format": "int64"},
            },
        ),
    ],
)
def test_shorthand(shorthand: str, schema: dict[str, Any]) -> None:
    assert convert_field(shorthand) == schema
    assert is_required(shorthand) == shorthand.endswith("!")


def test_plain_schemas_are_kubernetes_own() -> None:
    field = FieldSchema.model_validate(
        {
            "type": "object",
            "required": ["b"],
            "immutable": True,
            "properties": {
                "a": "string!",
                "b": {"type": "array", "items": "string"},
                "c": {"type": "string", "required": False, "default": None, "nullable": True},
                "d": {"type": "object", "additionalProperties": "integer", "required": True},
            },
            "x-kubernetes-validations": [{"rule": "self.a != 'x'", "message": "no x"}],
        }
    )
    assert not is_required(field)
    assert convert_field(field) == {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {"type": "string"},
            },
            "c": {"type": "string", "nullable": True, "default": None},
            "d": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "required": ["a", "b", "d"],
        "x-kubernetes-validations": [
            {"rule": "self.a != 'x'", "message": "no x"},
            {"rule": "self == oldSelf", "message": "the value is immutable"},
        ],
    }


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("self == oldSelf", True),
        ("oldSelf.orValue('x') == self", True),
        ("self != 'oldSelf'", False),
        ('self != "a\\"oldSelf"', False),
        ("self != r'\\' && oldSelf == self", True),
        ("self.oldSelfie == 1", False),
        ("self != '''oldSelf'''", False),
    ],
)
def test_transition_rules_are_distinguished_from_texts(rule: str, expected: bool) -> None:
    assert is_transition(rule) is expected


def test_quotes_are_short_and_printable() -> None:
    assert clip("a\x1b[2J\nb\u202e") == "a\ufffd[2J b\ufffd"
    assert len(clip("x" * 1000)) == 60
    assert join_names(["a", "b", "c"]) == "`a`, `b` and `c`"
    assert suggest("Contracs", ["contracts", "name"]) == "Did you mean `contracts`?"
    assert suggest("zzz", ["b", "a"]) == "Use one of: a, b."
    assert suggest("zzz", []) == "Remove it."
