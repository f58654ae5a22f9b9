"""Hints, shorthand and plain schemas."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.spec.fields import FieldSchema
from capsmith.spec.parse import parse
from capsmith.spec.plain import is_required, plain
from capsmith.spec.quote import clip, did_you_mean, listed
from capsmith.spec.rules import is_transition
from tests.invalid.cases import EXAMPLES

ACME = (EXAMPLES / "acme" / "provider.yaml").read_text(encoding="utf-8")


def hints(text: str) -> list[str]:
    return [finding.hint for finding in parse(text, "provider.yaml").findings]


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (
            "name: acme",
            "name: no",
            'YAML reads plain `no` as a boolean; in quotes it is a text: "no"',
        ),
        ("name: acme", "name: acme\ntitle: 1.10", 'in quotes it is a text: "1.10"'),
        ("contracts: [v1beta2]", "contracts: v1beta2", "write [v1beta2]"),
        ("contracts: [v1beta2]", "contracs: [v1beta2]", "did you mean `contracts`?"),
        ("minimum: 8", 'minimum: "8"', "leave the quotes out"),
        ("capsmith: 1", 'capsmith: "1"', "leave the quotes out"),
        ("format: int32", "uniqueItems: true", "use x-kubernetes-list-type: set"),
        ("implements: InfraMachine", "implements: inframachine", "did you mean `InfraMachine`?"),
        ("name: acme\n", "", "add the name that clusterctl will know, such as `name: acme`"),
        ("image: string!", "image:", "give it a value, or leave the key out"),
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
    assert plain(shorthand) == schema
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
    assert plain(field) == {
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
def test_transition_rules_are_told_from_texts(rule: str, expected: bool) -> None:
    assert is_transition(rule) is expected


def test_quotes_are_short_and_printable() -> None:
    assert clip("a\x1b[2J\nb\u202e") == "a\ufffd[2J b\ufffd"
    assert len(clip("x" * 1000)) == 60
    assert listed(["a", "b", "c"]) == "`a`, `b` and `c`"
    assert did_you_mean("Contracs", ["contracts", "name"]) == "did you mean `contracts`?"
    assert did_you_mean("zzz", ["b", "a"]) == "known here: a, b"
    assert did_you_mean("zzz", []) == "leave it out"
