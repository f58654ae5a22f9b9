"""The normal form of a structural schema: equal forms accept, prune and merge the same objects.

Texts for people are left out, and what the API server assumes is written out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from capsmith.manifests.parse import list_of, text_of

Schema = Mapping[str, Any]
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
RULES = "x-kubernetes-validations"
_TEXTS = frozenset({"description", "title", "example", "externalDocs"})
_UNSET: Mapping[str, Any] = {
    "nullable": False,
    "uniqueItems": False,
    "exclusiveMinimum": False,
    "exclusiveMaximum": False,
    "x-kubernetes-preserve-unknown-fields": False,
    "x-kubernetes-embedded-resource": False,
    INT_OR_STRING: False,
    "x-kubernetes-map-type": "granular",
    "required": [],
    "properties": {},
    RULES: [],
    "enum": [],
    "allOf": [],
}
"""Keys with the value that they have when they are left out."""
_INTEGER_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_BELOW = ("items", "additionalProperties", "not")
_CHOICES = ("oneOf", "anyOf", "allOf")


def normal(schema: Schema) -> dict[str, Any]:
    """Return the normal form of a schema; values of a wrong type stay as they are."""
    found = simplified(schema)
    if found.get("type") == "array":
        found.setdefault(LIST_TYPE, "atomic")
    for key in ("required", "enum"):
        if isinstance(found.get(key), list):
            found[key] = sorted(found[key], key=_key)
    if isinstance(found.get(RULES), list):
        found[RULES] = sorted((_rule(rule) for rule in found[RULES]), key=_key)
    if isinstance(found.get("properties"), Mapping):
        found["properties"] = {
            str(name): normal_of(below) for name, below in found["properties"].items()
        }
    for key in _BELOW:
        if key in found:
            found[key] = normal_of(found[key])
    for key in _CHOICES:
        if isinstance(found.get(key), list):
            found[key] = [normal_of(below) for below in found[key]]
    _drop_filled(found)
    return {
        key: value.isoformat() if isinstance(value, date) else value
        for key, value in found.items()
        if key not in _TEXTS and not (key in _UNSET and value == _UNSET[key])
    }


def _drop_filled(schema: dict[str, Any]) -> None:
    """Remove required names with a default: the API server fills these in before it validates."""
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and isinstance(schema.get("required"), list):
        schema["required"] = [
            name
            for name in schema["required"]
            if not isinstance(name, str) or not _is_filled(properties.get(name))
        ]


def _is_filled(schema: Any) -> bool:
    return isinstance(schema, Mapping) and "default" in schema and not schema.get("nullable")


def normal_of(value: Any) -> Any:
    """Return the normal form of a schema, and any other value unchanged."""
    return normal(value) if isinstance(value, Mapping) else value


def simplified(schema: Schema) -> dict[str, Any]:
    """Return a copy without choices that say the same as other keywords, or nothing."""
    found = _with_one_enum(dict(schema))
    if found.get(INT_OR_STRING) is not True:
        return found
    if found.get("anyOf") == _INTEGER_OR_STRING:
        del found["anyOf"]
    if isinstance(found.get("allOf"), list):
        found["allOf"] = [part for part in found["allOf"] if part != {"anyOf": _INTEGER_OR_STRING}]
        if not found["allOf"]:
            del found["allOf"]
    return found


def _with_one_enum(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace enums in ``allOf`` by the values that all of them have.

    controller-gen repeats the enum of a type at each of its uses, and joins the two with allOf.
    """
    parts = schema.get("allOf")
    if not isinstance(parts, list) or not parts:
        return schema
    enums = [part["enum"] for part in parts if isinstance(part, Mapping) and list(part) == ["enum"]]
    if len(enums) < len(parts) or not all(isinstance(enum, list) for enum in enums):
        return schema
    first, *others = [*([schema["enum"]] if "enum" in schema else []), *enums]
    common = [value for value in first if all(value in other for other in others)]
    found = {key: value for key, value in schema.items() if key != "allOf"}
    return {**found, "enum": common} if common else schema


def columns_of(version: Any) -> list[dict[str, Any]]:
    """Return the printer columns of a version in normal form, without their descriptions."""
    return [
        {
            "name": text_of(column, "name"),
            "type": text_of(column, "type"),
            "jsonPath": normal_path(text_of(column, "jsonPath")),
            "format": text_of(column, "format"),
            "priority": column.get("priority") or 0,
        }
        for column in list_of(version, "additionalPrinterColumns")
        if isinstance(column, Mapping)
    ]


def normal_path(path: str) -> str:
    """Return the JSON path of a column with dots: ``['a\\.b']`` -> ``.a\\.b``."""
    found = path.strip()
    for quote in ("'", '"'):
        parts = found.split(f"[{quote}")
        found = parts[0] + "".join(
            f".{part.replace(f'{quote}]', '', 1)}" if f"{quote}]" in part else f"[{quote}{part}"
            for part in parts[1:]
        )
    return found


def _rule(rule: Any) -> Any:
    if not isinstance(rule, Mapping):
        return rule
    kept = {key: value for key, value in rule.items() if value not in ("", None, False)}
    if isinstance(kept.get("rule"), str):
        kept["rule"] = kept["rule"].strip()
    if kept.get("reason") == "FieldValueInvalid":
        del kept["reason"]
    return kept


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
