"""Convert OpenAPI schemas to fields for provider.yaml, in the shortest form.

Unsupported keywords are kept: the checks on provider.yaml refuse them, and
:mod:`capsmith.importing.refusals` removes and reports them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capsmith.importing.compare import LIST_TYPE, RULES, simplify
from capsmith.manifests.parse import texts_of
from capsmith.provider_yaml.field_schemas import IMMUTABLE_MESSAGE, IMMUTABLE_RULE
from capsmith.yamldoc.quote import UNPRINTABLE

_FIRST = ("type", "format", "required", "immutable", "description")
_LAST = ("items", "properties", "additionalProperties", RULES)
_SCALARS = ("string", "integer", "number", "boolean")
_NUMBERS = ("int32", "int64")
_FALSE = (
    *("nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"),
    "x-kubernetes-embedded-resource",
)
_IMMUTABLE = {"rule": IMMUTABLE_RULE, "message": IMMUTABLE_MESSAGE}
MAX_DESCRIPTION = 4000
"""Maximum length of a description, in characters."""
Field = Any
"""A field as written in provider.yaml: a shorthand such as ``string[]!``, or a mapping."""


def convert_fields(schema: Mapping[str, Any]) -> dict[str, Field]:
    """Convert the properties of an object schema to fields for provider.yaml, by name."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    required = set(texts_of(schema, "required"))
    return {
        str(name): convert_field(below, name in required)
        for name, below in properties.items()
        if isinstance(below, Mapping)
    }


def convert_field(schema: Mapping[str, Any], required: bool = False) -> Field:
    """Convert a schema to a field, using a shorthand such as ``string[]!`` where possible."""
    found = _schema(schema)
    short = _shorthand(found)
    if short:
        return short + ("!" if required else "")
    if required:
        found["required"] = True
    first = {key: found[key] for key in _FIRST if key in found}
    last = {key: found[key] for key in _LAST if key in found}
    return {**first, **{k: v for k, v in found.items() if k not in _LAST}, **last}


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = simplify(schema)
    for key in _FALSE:
        if found.get(key) is False:
            del found[key]
    for key in ("description", "title"):
        if isinstance(found.get(key), str):
            found[key] = clean_description(found[key])
            if not found[key]:
                del found[key]
    if found.get(LIST_TYPE) == "atomic":
        del found[LIST_TYPE]
    _rules(found)
    _below(found)
    return found


def _rules(found: dict[str, Any]) -> None:
    rules = found.get(RULES)
    if not isinstance(rules, list):
        return
    kept = [clean_rule(rule) for rule in rules if rule != _IMMUTABLE]
    if len(kept) < len(rules):
        found["immutable"] = True
    if kept:
        found[RULES] = kept
    else:
        del found[RULES]


def clean_rule(rule: Any) -> Any:
    """Return a CEL rule without keys that have no effect. Other values are returned unchanged."""
    if not isinstance(rule, Mapping):
        return rule
    return {key: value for key, value in rule.items() if value not in ("", None, False)}


def _below(found: dict[str, Any]) -> None:
    fields = convert_fields(found)
    # Each property is marked instead.  A required name without a property is lost here, and
    # comparing the CRDs reports it.
    found.pop("required", None)
    found.pop("properties", None)
    if fields:
        found["properties"] = fields
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), Mapping):
            found[key] = convert_field(found[key])


def _shorthand(found: Mapping[str, Any]) -> str:
    kind = found.get("type")
    if kind in _SCALARS and len(found) == 1:
        return str(kind)
    if kind == "integer" and len(found) == 2 and found.get("format") in _NUMBERS:
        return str(found["format"])
    items = found.get("items")
    if kind == "array" and len(found) == 2 and isinstance(items, str) and "[" not in items:
        return f"{items}[]"
    return ""


def clean_description(written: str) -> str:
    """Return a description that is within the length limit and that clusterctl does not change.

    clusterctl treats ``${X}`` as a variable and replaces ``$$`` with ``$``.
    """
    lines = [line.expandtabs(2).rstrip() for line in written.strip().split("\n")]
    found = UNPRINTABLE.sub("", "\n".join(lines))
    while "$$" in found:
        found = found.replace("$$", "$")
    found = found.replace("${", "$(")
    return found if len(found) <= MAX_DESCRIPTION else found[: MAX_DESCRIPTION - 1].rstrip() + "…"
