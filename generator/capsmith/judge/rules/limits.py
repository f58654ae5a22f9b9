"""Limits of a structural schema on one value, as the API server applies them to objects.

The schema may be any text of a foreign CRD: what is no limit is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from capsmith.manifests.parse import list_of, mapping_of, texts_of
from capsmith.manifests.variable_values import has_variable
from capsmith.provider_yaml.patterns import refusal
from capsmith.provider_yaml.values import mismatches
from capsmith.yamldoc.compose import Path

_OPEN = "x-kubernetes-preserve-unknown-fields"
_SIZES = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_RANGES = ("minimum", "maximum", "multipleOf")
_FLAGS = ("exclusiveMinimum", "exclusiveMaximum")
_RANGED = (("integer", "int32"), ("number", "float"))
"""Types and formats whose range API servers check since Kubernetes v1.36."""
_LIST_TYPE, _KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")


def broken_limits(schema: Any, value: Any, complete: bool) -> Iterator[tuple[Path, str, bool]]:
    """Yield the place below a value at which a limit is broken, why, and if all below counts.

    ``complete``: nothing adds fields that are missing.  The value is of the schema's type.  What
    its parts break by themselves is not included.
    """
    value = with_defaults(schema, value)
    for path, why in mismatches(value, {**_plain(schema), _OPEN: True}):
        yield path, why, False
    for path, why in mismatches(value, {**_list_type(schema), _OPEN: True}):
        yield path, why, True
    # Whether alternatives fit may depend on each part of the value.
    if complete and not has_unknown(value) and not _has_unknown_pattern(_junctors(schema)):
        for path, why in mismatches(value, {**_junctors(schema), _OPEN: True}):
            yield path, why, True


def with_defaults(schema: Any, value: Any) -> Any:
    """Return a value with the defaults of its schema, which the API server fills in first."""
    if isinstance(value, list):
        items = mapping_of(schema, "items")
        return [with_defaults(items, item) for item in value]
    if not isinstance(value, dict):
        return value
    properties = mapping_of(schema, "properties")
    others = mapping_of(schema).get("additionalProperties")
    found = {
        name: with_defaults(properties.get(name, others), each) for name, each in value.items()
    }
    for name, part in properties.items():
        if name not in found and "default" in mapping_of(part):
            found[name] = with_defaults(part, part["default"])
    return found


def has_unknown(value: Any) -> bool:
    """Return whether any part of a value is not known."""
    if isinstance(value, dict):
        return any(has_unknown(each) for pair in value.items() for each in pair)
    if isinstance(value, list):
        return any(map(has_unknown, value))
    return value is None or (isinstance(value, str) and has_variable(value))


def _plain(schema: Any) -> dict[str, Any]:
    """Return the limits that concern a value itself, as far as they are well-formed."""
    data = mapping_of(schema)
    limits: dict[str, Any] = {
        **{key: data[key] for key in _SIZES if _is_number(data.get(key), int)},
        **{key: data[key] for key in _RANGES if _is_number(data.get(key), int, float)},
        **{key: True for key in _FLAGS if data.get(key) is True},
    }
    kind, form = data.get("type"), data.get("format")
    if isinstance(form, str) and (kind in (None, "string") or (kind, form) in _RANGED):
        limits |= {"type": kind or "string", "format": form}
    pattern = data.get("pattern")
    if isinstance(pattern, str) and not refusal(pattern):
        limits["pattern"] = pattern
    return limits


def _list_type(schema: Any) -> dict[str, Any]:
    kind, keys = mapping_of(schema).get(_LIST_TYPE), texts_of(schema, _KEYS)
    if kind == "set":
        return {_LIST_TYPE: kind}
    return {_LIST_TYPE: kind, _KEYS: list(keys)} if kind == "map" and keys else {}


def _junctors(schema: Any) -> dict[str, Any]:
    """Return the alternatives of a schema; values are judged by nothing else in them."""
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
    """Return the validations of an alternative; it declares neither fields nor types."""
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
    """Return whether a pattern cannot be judged, so that more values might seem to fit."""
    if isinstance(alternative, list):
        return any(map(_has_unknown_pattern, alternative))
    if not isinstance(alternative, dict):
        return False
    pattern = alternative.get("pattern")
    return (isinstance(pattern, str) and bool(refusal(pattern))) or any(
        _has_unknown_pattern(each) for each in alternative.values()
    )


def _is_number(value: Any, *types: type) -> bool:
    return isinstance(value, types) and not isinstance(value, bool)
