"""Fields of a kind as Python dataclasses: their source, and the behaviour of the classes."""

from __future__ import annotations

import keyword
import sys
import types
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsmith import resources
from capsmith.blueprint.render import Formatter, make_environment
from capsmith.output.python_types import generate_module
from capsmith.provider import naming
from capsmith.provider.fields import Field
from capsmith.provider.model import Role
from capsmith_runtime.api.serialization import decode, encode
from tests.unit.provider.build import resource

SOURCE = "project/src/__package__/_generated/api/__resource__.py.jinja"
ENVIRONMENT = make_environment({SOURCE: (resources.blueprints() / SOURCE).read_text()}, None, "")
HOSTILE = '"""\\\n${x}{{ y }} \'; import os #'


def field(name: str, schema: Mapping[str, Any], required: bool = False) -> Field:
    return Field(name, naming.name_attribute(name), schema, required)


def text(*fields: Field, status: tuple[Field, ...] = ()) -> str:
    machine = resource("AcmeMachine", Role.INFRA_MACHINE, fields)
    kind = types.SimpleNamespace(
        kind=machine.kind,
        role=machine.role,
        group=machine.group,
        spec_fields=fields,
        status_fields=status,
        instance_fields=(),
    )
    ENVIRONMENT.filters["python_module"] = generate_module
    rendered = ENVIRONMENT.get_template(SOURCE).render(resource=kind)
    return Formatter(None).format(rendered, SOURCE)


def run(*fields: Field, status: tuple[Field, ...] = ()) -> types.ModuleType:
    module = types.ModuleType("rendered_kind")
    sys.modules[module.__name__] = module
    code = compile(text(*fields, status=status), "kind", "exec")
    exec(code, module.__dict__)  # noqa: S102 - what is generated is what is tested
    return module


def annotations_of(*fields: Field) -> dict[str, str]:
    return {
        str(f.attribute): f"{f.annotation}{f.assignment}"
        for cls in generate_module(resource(fields=fields)).classes
        for f in cls.fields
    }


@pytest.mark.parametrize(
    ("schema", "required", "expected"),
    [
        ({"type": "string"}, True, "str"),
        ({"type": "string"}, False, "str | None = None"),
        ({"type": "integer", "default": 0}, False, "int = 0"),
        ({"type": "number", "nullable": True}, True, "float | None"),
        ({"type": "boolean", "default": False}, True, "bool = False"),
        ({"type": "string", "enum": ["a", "b"]}, True, "Literal['a', 'b']"),
        ({"type": "string", "enum": ["a", None], "nullable": True}, True, "Literal['a'] | None"),
        ({"type": "integer", "enum": [1, 2], "default": 2}, False, "Literal[1, 2] = 2"),
        ({"type": "number", "enum": [0.5, 1.5]}, True, "float"),
        ({"type": "array", "items": {"type": "string"}}, False, "tuple[str, ...] = ()"),
        (
            {"type": "array", "items": {"type": "integer"}, "default": [1]},
            False,
            "tuple[int, ...] = (1,)",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            False,
            "Mapping[str, str] = field(default_factory=dict)",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}, "default": {"a": "b"}},
            False,
            "Mapping[str, str] = field(default_factory=lambda: {'a': 'b'})",
        ),
        ({"type": "object"}, True, "Mapping[str, Any]"),
        ({"x-kubernetes-int-or-string": True}, True, "int | str"),
        ({"x-kubernetes-preserve-unknown-fields": True}, False, "Any = None"),
    ],
)
def test_types(schema: Mapping[str, Any], required: bool, expected: str) -> None:
    assert annotations_of(field("size", schema, required))["size"] == expected


def test_a_nested_object_is_a_class_of_its_own() -> None:
    disk = {
        "type": "object",
        "required": ["sizeGiB"],
        "properties": {"sizeGiB": {"type": "integer"}, "class": {"type": "string"}},
        "default": {"sizeGiB": 8},
    }
    module = run(field("disks", {"type": "array", "items": disk}), field("root", disk))

    spec = module.AcmeMachineSpec()
    assert spec.root == module.AcmeMachineSpecRoot(size_gib=8, class_=None)
    assert spec.disks == ()
    assert module.AcmeMachineSpecDisks(size_gib=1).size_gib == 1


def test_a_status_has_no_required_fields() -> None:
    module = run(status=(field("serverID", {"type": "string"}, required=True),))

    assert module.AcmeMachineStatus().server_id is None


def test_names_that_annotations_need_are_left_free() -> None:
    fields = [field(name, {"type": "string"}) for name in ("str", "field", "tuple", "class")]
    more = field("camelCase", {"type": "array", "items": {"type": "integer"}})

    spec = run(*fields, more).AcmeMachineSpec(str_="a", field_="b", tuple_="c", class_="d")

    assert (spec.str_, spec.field_, spec.tuple_, spec.class_) == ("a", "b", "c", "d")


def test_nested_names_that_meet_in_python_stay_apart() -> None:
    inner = {"type": "object", "properties": {"a-b": {"type": "string"}, "aB": {"type": "string"}}}
    outer = {"type": "object", "properties": {"b": inner}}
    module = run(field("a", outer), field("aB", inner))

    assert {"AcmeMachineSpecAB", "AcmeMachineSpecAB_2"} <= vars(module).keys()
    assert module.AcmeMachineSpecAB(a_b="x", a_b_2="y").a_b_2 == "y"


def test_names_that_are_not_camel_case_are_read_and_written_as_they_are() -> None:
    names = ["IPProtocol", "vpc_id", "ID", "kebab-case", "Class", "str", "def", "A-", "B1_2"]
    module = run(*(field(name, {"type": "string"}, required=True) for name in names))
    data = {name: f"of {name}" for name in names}
    spec = decode(module.AcmeMachineSpec, data, "spec")
    assert encode(spec) == data
    assert (spec.ip_protocol, spec.class_, spec.kebab_case) == (
        "of IPProtocol",
        "of Class",
        "of kebab-case",
    )


def test_hostile_text_stays_text() -> None:
    fields = (
        field("a", {"type": "string", "default": HOSTILE, "description": HOSTILE}),
        field("b", {"type": "string", "enum": [HOSTILE], "description": "x" * 300}),
        field(
            "c",
            {
                "type": "object",
                "description": HOSTILE,
                "properties": {"d": {"type": "string", "default": HOSTILE}},
                "additionalProperties": False,
                "default": {"d": HOSTILE},
            },
        ),
        field(
            "e",
            {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "default": {HOSTILE: HOSTILE},
            },
        ),
    )

    spec = run(*fields).AcmeMachineSpec()

    assert (spec.a, spec.c.d, spec.e) == (HOSTILE, HOSTILE, {HOSTILE: HOSTILE})


def test_a_literal_of_something_else_is_a_bug() -> None:
    with pytest.raises(TypeError, match="no Python literal"):
        generate_module(resource(fields=(field("a", {"type": "string", "default": object()}),)))


SCALARS = st.one_of(
    st.fixed_dictionaries({"type": st.just("string")}, optional={"default": st.text(max_size=20)}),
    st.fixed_dictionaries({"type": st.just("integer")}, optional={"default": st.integers()}),
    st.fixed_dictionaries({"type": st.just("boolean")}, optional={"default": st.booleans()}),
    st.fixed_dictionaries({"type": st.just("string"), "enum": st.lists(st.text(), min_size=1)}),
    st.just({"x-kubernetes-int-or-string": True}),
    st.just({}),
)
NAMES = st.from_regex(r"[a-zA-Z][a-zA-Z0-9]{0,8}", fullmatch=True)
SCHEMAS = st.recursive(
    st.builds(
        lambda schema, words: {**schema, "description": words}, SCALARS, st.text(max_size=40)
    ),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda values: {"type": "object", "additionalProperties": values}, inner),
        st.builds(
            lambda found: {"type": "object", "properties": found},
            st.dictionaries(NAMES, inner, min_size=1, max_size=4),
        ),
    ),
    max_leaves=6,
)


@given(st.dictionaries(NAMES, SCHEMAS, max_size=4))
def test_whatever_is_described_is_python(described: dict[str, Any]) -> None:
    unique = {naming.name_attribute(name): (name, schema) for name, schema in described.items()}
    module = run(*(field(name, schema) for name, schema in unique.values()))

    spec = module.AcmeMachineSpec()
    assert all(not keyword.iskeyword(name) for name in spec.__slots__)
