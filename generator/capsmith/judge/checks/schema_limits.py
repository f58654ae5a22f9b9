"""The limits of a schema for a value itself, reduced to those that are well formed.

Schemas are untrusted input: a limit with a wrong type is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from capsmith.cel_text import is_transition
from capsmith.judge.checks.validations import RULES
from capsmith.manifests.crds import OPEN
from capsmith.manifests.parse import list_of, mapping_of, text_of, texts_of
from capsmith.provider_yaml.patterns import explain_refusal

_SIZES = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_RANGES = ("minimum", "maximum", "multipleOf")
_FLAGS = ("exclusiveMinimum", "exclusiveMaximum")
_RANGED = (("integer", "int32"), ("number", "float"))
"""Types and formats whose range API servers check since Kubernetes v1.36."""
_LIST_TYPE, _KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")


class SchemaLimits(NamedTuple):
    """Schemas for a value itself, each with some of its limits; empty for none."""

    own: Mapping[str, Any]
    """Limits that do not depend on nested values."""
    list_type: Mapping[str, Any]
    alternatives: Mapping[str, Any]
    """``allOf``, ``anyOf``, ``oneOf`` and ``not``; empty if one of them cannot be judged."""
    rules: tuple[Mapping[str, Any], ...]
    """CEL rules that apply when an object is created."""

    @property
    def has_any(self) -> bool:
        """Return whether there are limits other than CEL rules."""
        return bool(self.own or self.list_type or self.alternatives)


class _ById:
    """Refers to a schema: schemas are not hashable, and equal ones are seldom read."""

    __slots__ = ("schema",)

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.schema is self.schema


def read_limits(schema: Any) -> SchemaLimits:
    """Return the limits of a schema, which must not be changed afterwards."""
    return _read_limits(_ById(schema))


# A run judges hundreds of objects by the same schemas of core's kinds.
@lru_cache(maxsize=4096)
def _read_limits(key: _ById) -> SchemaLimits:
    alternatives = _junctors(key.schema)
    if _has_unknown_pattern(alternatives):
        alternatives = {}
    schemas = (_plain(key.schema), _list_type(key.schema), alternatives)
    own, list_type, judged = ({**each, OPEN: True} if each else {} for each in schemas)
    return SchemaLimits(own, list_type, judged, tuple(_list_rules(key.schema)))


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
