"""A schema of objects or of a part of them, reduced to what is well formed, and read once.

Schemas are untrusted input: what has a wrong type is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from capsmith.cel_text import is_transition
from capsmith.judge.checks.apiextensions.defaults import create_compiler
from capsmith.judge.checks.validations import RULES
from capsmith.manifests.crds import EMBEDDED, INT_OR_STRING, OPEN
from capsmith.manifests.parse import list_of, mapping_of, text_of, texts_of
from capsmith.provider_yaml.patterns import explain_refusal

if TYPE_CHECKING:
    from capsmith.provider_yaml.cel.compile import Compiler

_SIZES = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_RANGES = ("minimum", "maximum", "multipleOf")
_FLAGS = ("exclusiveMinimum", "exclusiveMaximum")
_RANGED = (("integer", "int32"), ("number", "float"))
"""Types and formats whose range API servers check since Kubernetes v1.36."""
_LIST_TYPE, _KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    # Of our own schemas of Kubernetes' kinds only: no CRD may have such a type.
    "quantity": (str, int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


class SchemaLimits(NamedTuple):
    """Schemas for a value itself, each with some of its limits; empty for none."""

    own: Mapping[str, Any]
    """Limits that do not depend on nested values."""
    list_type: Mapping[str, Any]
    alternatives: Mapping[str, Any]
    """``allOf``, ``anyOf``, ``oneOf`` and ``not``; empty if one of them cannot be judged."""
    rules: tuple[Mapping[str, Any], ...]
    """CEL rules that apply when an object is created."""
    has_any: bool
    """Whether there are limits other than CEL rules."""


class ValueSchema:
    """The schema of a value.  It must not be changed afterwards."""

    def __init__(self, schema: Any) -> None:
        self.schema: Mapping[str, Any] = mapping_of(schema)
        self.accepted_texts: set[tuple[str, bool]] = set()
        """Texts that match the schema, each with whether they are in a complete object."""

    @cached_property
    def kind(self) -> str:
        """Return the type that the schema declares; empty if there is none."""
        return text_of(self.schema, "type")

    @cached_property
    def types(self) -> tuple[type, ...]:
        """Return the Python types of values; empty if the schema accepts all of them."""
        return _TYPES.get(self.kind, ())

    @cached_property
    def is_int_or_string(self) -> bool:
        """Return whether values are integers or strings."""
        return self.schema.get(INT_OR_STRING) is True

    @cached_property
    def is_open(self) -> bool:
        """Return whether undeclared fields are accepted."""
        return self.schema.get(OPEN) is True or self.schema.get(EMBEDDED) is True

    @cached_property
    def is_nullable(self) -> bool:
        """Return whether null is a value; otherwise the API server drops it."""
        return self.schema.get("nullable") is True

    @cached_property
    def choices(self) -> list[Any]:
        """Return the values of the enum; empty if there is none."""
        return list_of(self.schema, "enum")

    @cached_property
    def limits(self) -> SchemaLimits:
        """Return the limits for a value itself."""
        alternatives = _junctors(self.schema)
        if _has_unknown_pattern(alternatives):
            alternatives = {}
        schemas = (_plain(self.schema), _list_type(self.schema), alternatives)
        own, list_type, judged = ({**each, OPEN: True} if each else {} for each in schemas)
        rules = tuple(_list_rules(self.schema))
        return SchemaLimits(own, list_type, judged, rules, any((own, list_type, judged)))

    @cached_property
    def properties(self) -> Mapping[Any, ValueSchema]:
        """Return the schemas of the declared fields by name."""
        declared = mapping_of(self.schema, "properties")
        return {name: ValueSchema(part) for name, part in declared.items()}

    @cached_property
    def additional(self) -> ValueSchema | None:
        """Return the schema of the values of a map; None if the schema declares no map."""
        key = "additionalProperties"
        return ValueSchema(self.schema[key]) if key in self.schema else None

    def find_field(self, name: Any) -> ValueSchema | None:
        """Return the schema of a field or of a value of a map; None if it is not declared."""
        return self.properties.get(name, self.additional)

    @cached_property
    def items(self) -> ValueSchema | None:
        """Return the schema of the items of a list; None if there is none."""
        items = self.schema.get("items")
        return None if items is None else ValueSchema(items)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Return the names of the fields that an object must have: those without defaults."""
        return tuple(
            name
            for name in texts_of(self.schema, "required")
            if (part := self.properties.get(name)) is None or "default" not in part.schema
        )

    @cached_property
    def compiler(self) -> Compiler:
        """Return a compiler for the CEL rules."""
        return create_compiler(self.schema)

    @cached_property
    def has_defaults(self) -> bool:
        """Return whether a part of a value, at any depth, has a default."""
        below = [part for part in (self.items, self.additional) if part is not None]
        return any(
            "default" in part.schema or part.has_defaults for part in self.properties.values()
        ) or any(part.has_defaults for part in below)


class _ById:
    """Refers to a schema: schemas are not hashable, and equal ones are seldom read."""

    __slots__ = ("schema",)

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.schema is self.schema


def read_schema(schema: Any) -> ValueSchema:
    """Return a schema, which must not be changed afterwards, as a part."""
    return _read_schema(_ById(schema))


# A run judges hundreds of objects by the same schemas of core's kinds.
@lru_cache(maxsize=4096)
def _read_schema(key: _ById) -> ValueSchema:
    return ValueSchema(key.schema)


def _list_rules(schema: Any) -> list[Mapping[str, Any]]:
    return [
        rule
        for rule in list_of(schema, RULES)
        if isinstance(rule, Mapping) and not is_transition(text_of(rule, "rule"))
    ]


def _plain(schema: Any) -> dict[str, Any]:
    """Return a schema's well-formed limits for the value itself, without nested values."""
    data = mapping_of(schema)
    limits: dict[str, Any] = {
        **{key: data[key] for key in _SIZES if _is_number(data.get(key), int)},
        **{key: data[key] for key in _RANGES if _is_number(data.get(key), int, float)},
        **{key: True for key in _FLAGS if data.get(key) is True},
    }
    kind, form = data.get("type"), data.get("format")
    if isinstance(form, str) and (kind in (None, "string") or (kind, form) in _RANGED):
        limits |= {"type": kind or "string", "format": form}
    elif kind == "integer":
        limits["type"] = kind
    pattern = data.get("pattern")
    if isinstance(pattern, str) and not explain_refusal(pattern):
        limits["pattern"] = pattern
    return limits


def _list_type(schema: Any) -> dict[str, Any]:
    kind, keys = mapping_of(schema).get(_LIST_TYPE), texts_of(schema, _KEYS)
    if kind == "set":
        return {_LIST_TYPE: kind}
    return {_LIST_TYPE: kind, _KEYS: list(keys)} if kind == "map" and keys else {}


def _junctors(schema: Any) -> dict[str, Any]:
    """Return the alternatives (such as ``anyOf``) of a schema, reduced to their validations."""
    data = mapping_of(schema)
    found: dict[str, Any] = {
        key: [_nested(each) for each in list_of(data, key)]
        for key in _ALTERNATIVES
        if list_of(data, key)
    }
    if isinstance(data.get("not"), Mapping):
        found["not"] = _nested(data["not"])
    return found


def _nested(schema: Any) -> dict[str, Any]:
    """Return the validations of an alternative; an alternative does not declare fields or types."""
    data = mapping_of(schema)
    found: dict[str, Any] = {**_plain(data), **_junctors(data)}
    if isinstance(data.get("pattern"), str):
        found["pattern"] = data["pattern"]
    if list_of(data, "enum"):
        found["enum"] = list_of(data, "enum")
    if texts_of(data, "required"):
        found["required"] = list(texts_of(data, "required"))
    below: Mapping[str, Callable[[Any], Any]] = {
        "items": _nested,
        "properties": lambda parts: {str(name): _nested(each) for name, each in parts.items()},
    }
    for key, convert in below.items():
        if isinstance(data.get(key), Mapping):
            found[key] = convert(data[key])
    return found


def _has_unknown_pattern(alternative: Any) -> bool:
    """Return whether an alternative has an unsupported pattern and could match too many values."""
    if isinstance(alternative, list):
        return any(map(_has_unknown_pattern, alternative))
    if not isinstance(alternative, dict):
        return False
    pattern = alternative.get("pattern")
    return (isinstance(pattern, str) and bool(explain_refusal(pattern))) or any(
        _has_unknown_pattern(each) for each in alternative.values()
    )


def _is_number(value: Any, *types: type) -> bool:
    return isinstance(value, types) and not isinstance(value, bool)
