"""Compare two schemas of one version: what stored objects lose, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from capsmith.manifests.parse import list_of, mapping_of, texts_of
from capsmith.manifests.schemas import describe

_OPEN = "x-kubernetes-preserve-unknown-fields"
_OF_CONTROLLERS = frozenset({"apiVersion", "kind", "metadata", "status"})
_LOWER = ("minimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
_FORMS = ("pattern", "format", "multipleOf")


class Change(NamedTuple):
    """A difference between two schemas that concerns stored objects."""

    rule: str
    field: str
    """Dotted, with ``[]`` and ``{}``."""
    message: str


def changes(old: Any, new: Any) -> Iterator[Change]:
    """Yield the changes of a version's schema outside of metadata and status."""
    before, after = mapping_of(old, "properties"), mapping_of(new, "properties")
    for name, part in before.items():
        if name in _OF_CONTROLLERS:
            continue
        if name in after:
            yield from _of_field(part, after[name], name)
        elif not _keeps_unknown(new):
            yield Change("UP-08", name, "is no longer declared")
    yield from _required(old, new, "")


def _of_field(old: Any, new: Any, path: str) -> Iterator[Change]:
    if describe(mapping_of(old)) != describe(mapping_of(new)):
        if not _keeps_unknown(new) or "type" in mapping_of(new):
            kinds = (describe(mapping_of(each)) for each in (old, new))
            yield Change("UP-07", path, " was {} and is now {}".format(*kinds).strip())
        return
    for text in _narrowed(mapping_of(old), mapping_of(new)):
        yield Change("UP-06", path, text)
    before, after = mapping_of(old).get("default"), mapping_of(new).get("default")
    if before != after:
        yield Change("UP-09", path, f"had the default {before!r} and now has {after!r}")
    yield from _required(old, new, path)
    parts = mapping_of(new, "properties")
    for name, part in mapping_of(old, "properties").items():
        if name in parts:
            yield from _of_field(part, parts[name], f"{path}.{name}")
        elif not _keeps_unknown(new):
            yield Change("UP-08", f"{path}.{name}", "is no longer declared")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if mapping_of(old, key) and mapping_of(new, key):
            yield from _of_field(old[key], new[key], path + mark)


def _required(old: Any, new: Any, path: str) -> Iterator[Change]:
    before = set(texts_of(old, "required"))
    for name in texts_of(new, "required"):
        has_default = "default" in mapping_of(new, "properties", name)
        if name not in before and name not in _OF_CONTROLLERS and not has_default:
            yield Change("UP-05", f"{path}.{name}".removeprefix("."), "is now required")


def _narrowed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a schema refuses that it accepted."""
    choices, left = list_of(old, "enum"), list_of(new, "enum")
    if left and not choices:
        yield f"now accepts only {', '.join(map(str, left))}"
    elif gone := [str(choice) for choice in choices if left and choice not in left]:
        yield f"no longer accepts {', '.join(gone)}"
    for keys, sign in ((_LOWER, 1), (_UPPER, -1)):
        for key in keys:
            before, after = _number(old.get(key)), _number(new.get(key))
            if after is not None and (before is None or (after - before) * sign > 0):
                yield f"has {key} {after}, {'not before' if before is None else f'not {before}'}"
    for key in _FORMS:
        if key in new and new[key] != old.get(key):
            yield f"has {key} {new[key]}, {f'not {old[key]}' if key in old else 'not before'}"
    if old.get("nullable") is True and new.get("nullable") is not True:
        yield "no longer accepts null"
    known = {mapping_of(rule).get("rule") for rule in list_of(old, "x-kubernetes-validations")}
    for rule in list_of(new, "x-kubernetes-validations"):
        text = mapping_of(rule).get("rule")
        # Such a rule compares with the old object, and says nothing about stored values.
        if text not in known and "oldSelf" not in str(text):
            yield f"has a new rule {text!r}"


def _number(value: Any) -> int | float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None


def _keeps_unknown(schema: Any) -> bool:
    data = mapping_of(schema)
    return data.get(_OPEN) is True or "additionalProperties" in data
