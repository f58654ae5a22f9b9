"""Compare values with the schemas of CRDs.

Schemas are untrusted input: a limit with a wrong type is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from capsmith.judge.checks.apiextensions.defaults import list_broken
from capsmith.judge.checks.schema_limits import read_limits
from capsmith.manifests.crds import OPEN
from capsmith.manifests.parse import Manifest, has_variable, list_of, mapping_of, text_of, texts_of
from capsmith.provider_yaml.values import find_value_errors
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import quote

_OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})
_TYPES: dict[str, tuple[type, ...]] = {
    # As for clusterctl, what looks like a date is a text.
    "string": (str, date),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


class Mismatch(NamedTuple):
    """A place where an object does not match its CRD's schema."""

    path: Path
    message: str
    varies_with: Path | None = None
    """Path at which a variable's value could resolve the mismatch; None if no value could."""
    is_deep: bool = False
    """Whether a variable at any depth below ``varies_with`` could resolve the mismatch."""


def find_metadata_mismatches(manifest: Manifest) -> Iterator[Mismatch]:
    """Yield the labels and annotations that the API server refuses, whatever the kind."""
    for name in ("labels", "annotations"):
        for key, value in manifest.mapping("metadata", name).items():
            # null becomes an empty string.
            if isinstance(key, str) and not isinstance(value, str | date | None):
                path: Path = ("metadata", name, key)
                yield Mismatch(path, f"is {_name(value)}; expected string")


def find_mismatches(schema: Any, document: Any, complete: bool) -> Iterator[Mismatch]:
    """Yield each mismatch between an object and its schema.

    If ``complete`` is true, missing required fields count as mismatches.
    """
    for name, value in mapping_of(document).items():
        if name in _OF_EVERY_OBJECT or name == "status":
            continue
        part = mapping_of(schema, "properties").get(name)
        if part is None:
            yield Mismatch((name,), "is not a field")
        else:
            yield from find_value_mismatches(part, value, (name,), complete)


def find_value_mismatches(
    schema: Any, value: Any, path: Path, complete: bool
) -> Iterator[Mismatch]:
    """Yield each mismatch between a value, which is at ``path`` of an object, and its schema."""
    # The API server drops null, and an unknown value matches any schema.
    if value is None or (isinstance(value, str) and has_variable(value)):
        return
    if mapping_of(schema).get("x-kubernetes-int-or-string") is True:
        if not isinstance(value, int | str) or isinstance(value, bool):
            yield Mismatch(path, "is neither an integer nor a string")
        else:
            yield from _limits(mapping_of(schema), value, path, complete)
        return
    kind = mapping_of(schema).get("type")
    types = _TYPES.get(kind, ()) if isinstance(kind, str) else ()
    if types and (not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean")):
        # JSON has only one number type: for the API server, 1.0 is an integer.
        if not (isinstance(value, float) and value.is_integer() and kind == "integer"):
            yield Mismatch(path, f"is {_name(value)}; expected {kind}")
        return
    choices = list_of(schema, "enum")
    if choices and value not in choices:
        message = f"is {value!r}; expected one of {', '.join(map(str, choices))}"
        yield Mismatch(path, message, path)
    elif complete or value:
        # A webhook that sets missing fields may also replace an empty value.
        yield from _limits(mapping_of(schema), value, path, complete)
    if complete:
        yield from _broken_rules(mapping_of(schema), value, path)
    if isinstance(value, list):
        # A part that preserves unknown fields declares no items, and preserves unknown items as
        # well.
        items = mapping_of(schema).get("items")
        for number, item in enumerate(value if items is not None else ()):
            yield from find_value_mismatches(items, item, (*path, number), complete)
    elif isinstance(value, dict):
        yield from _mapping(schema, value, path, complete)


def _broken_rules(schema: Mapping[str, Any], value: Any, path: Path) -> Iterator[Mismatch]:
    """Yield the CEL rules that a value of an object violates when the object is created."""
    rules = read_limits(schema).rules
    if not rules or has_unknown(value):
        return
    for rule in list_broken(rules, fill_defaults(schema, value), schema):
        why = text_of(rule, "message") or quote(text_of(rule, "rule"))
        yield Mismatch(path, f"violates a rule: {why}", path, True)


def _limits(
    schema: Mapping[str, Any], value: Any, path: Path, complete: bool
) -> Iterator[Mismatch]:
    """Yield each limit that a value of the right type violates.

    If ``complete``, missing required fields count too.
    """
    for below, why, is_deep in find_broken_limits(schema, value, complete):
        part = _at(value, below)
        pattern = schema.get("pattern")
        is_own = why.endswith("the pattern") and not below and isinstance(pattern, str)
        detail = f" {quote(str(pattern))}" if is_own else ""
        is_scalar = not isinstance(part, list | dict)
        found = why.removeprefix("it ") if why.startswith("it ") else f"is invalid: {why}"
        if is_scalar:
            found = f"is {quote(str(part))}: {why}"
        yield Mismatch((*path, *below), f"{found}{detail}", path, is_deep)


def _at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) else None
        else:
            value = mapping_of(value).get(step)
    return value


def _mapping(
    schema: Any, value: Mapping[Any, Any], path: Path, complete: bool
) -> Iterator[Mismatch]:
    properties = mapping_of(schema, "properties")
    for name, item in value.items():
        if not isinstance(name, str) or has_variable(name):
            continue
        if name in properties:
            yield from find_value_mismatches(properties[name], item, (*path, name), complete)
        elif "additionalProperties" in mapping_of(schema):
            below = mapping_of(schema, "additionalProperties")
            yield from find_value_mismatches(below, item, (*path, name), complete)
        elif not _is_open(schema):
            yield Mismatch((*path, name), "is not a field")
    for name in texts_of(schema, "required") if complete else ():
        part = properties.get(name)
        if name not in value and "default" not in mapping_of(part):
            yield Mismatch((*path, name), "is required", path)


def _is_open(schema: Any) -> bool:
    data = mapping_of(schema)
    return data.get(OPEN) is True or data.get("x-kubernetes-embedded-resource") is True


def _name(value: Any) -> str:
    names = {bool: "a boolean", str: "a string", list: "a list", dict: "a mapping"}
    return names.get(type(value), "a number")


def find_broken_limits(schema: Any, value: Any, complete: bool) -> Iterator[tuple[Path, str, bool]]:
    """Yield each limit that a value violates, as a tuple (path, reason, is_deep).

    A violation is deep if a variable at any depth could resolve it.  If ``complete`` is true, the
    value is final, so missing fields count.  ``value`` must have the schema's type.  Violations
    inside nested values are not included.
    """
    limits = read_limits(schema)
    # Nearly all parts of an object have none, and to fill in defaults copies whatever is below.
    if not limits.has_any:
        return
    value = fill_defaults(schema, value)
    if limits.own:
        for path, why in find_value_errors(value, limits.own):
            yield path, why, False
    if limits.list_type:
        for path, why in find_value_errors(value, limits.list_type):
            yield path, why, True
    # Whether alternatives match may depend on every part of the value.
    if limits.alternatives and complete and not has_unknown(value):
        for path, why in find_value_errors(value, limits.alternatives):
            yield path, why, True


def fill_defaults(schema: Any, value: Any) -> Any:
    """Return a value with the schema's defaults filled in, as the API server does."""
    if isinstance(value, list):
        items = mapping_of(schema, "items")
        return [fill_defaults(items, item) for item in value]
    if not isinstance(value, dict):
        return value
    properties = mapping_of(schema, "properties")
    others = mapping_of(schema).get("additionalProperties")
    found = {
        name: fill_defaults(properties.get(name, others), each) for name, each in value.items()
    }
    for name, part in properties.items():
        if name not in found and "default" in mapping_of(part):
            found[name] = fill_defaults(part, part["default"])
    return found


def has_unknown(value: Any) -> bool:
    """Return whether any part of a value depends on a variable with an unknown value."""
    if isinstance(value, dict):
        return any(has_unknown(each) for pair in value.items() for each in pair)
    if isinstance(value, list):
        return any(map(has_unknown, value))
    return value is None or (isinstance(value, str) and has_variable(value))
