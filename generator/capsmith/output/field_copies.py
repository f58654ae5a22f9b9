"""Decide which required fields a conversion scaffold copies between two API versions.

An object with the same name in both versions needs no author code, even if its types differ inside:
optional fields that the other version lacks are left out.  A list, map or object that one version
requires is empty if the other version does not have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from capsmith.output.python_types import (
    ConvertedPart,
    ConvertedVersion,
    PythonClass,
    PythonField,
    generate_module,
    generate_version_module,
)
from capsmith.provider.fields import Field, Schema
from capsmith.provider.versions import PartChanges, has_same_type
from capsmith.safetext import Identifier, SafeText

_WORD = re.compile(r"\w+")
_HUB = "hub"
"""Name under which the scaffold imports the classes of the storage version."""
_LENGTHS = ("minItems", "minProperties")


class CopiedField(NamedTuple):
    """A field that a conversion function fills in, as source code."""

    attribute: Identifier
    expression: SafeText


class FunctionCopies(NamedTuple):
    """The required fields that a conversion function's scaffold copies, if it copies any."""

    missing: tuple[str, ...]
    """Required fields that only the author can fill.  If there are any, nothing is copied."""
    fields: tuple[CopiedField, ...]

    @property
    def uses_function(self) -> bool:
        """Return whether any field is copied by ``copy_fields``."""
        return any("copy_fields(" in each.expression for each in self.fields)

    @property
    def uses_hub(self) -> bool:
        """Return whether any field's value is an instance of a storage version class."""
        return any(f" {_HUB}." in each.expression for each in self.fields)


class _Side(NamedTuple):
    """The fields of spec or status in one version, with the classes of its module."""

    fields: Mapping[str, Field]
    python: Mapping[str, PythonField]
    classes: frozenset[str]
    module: str
    """Name under which the scaffold imports the classes."""


def list_function_copies(converted: ConvertedVersion) -> dict[str, FunctionCopies]:
    """Return what each conversion function's scaffold copies, keyed by function name."""
    version = {str(each.name): each for each in generate_version_module(converted).classes}
    stored = {str(each.name): each for each in generate_module(converted.resource).classes}
    copies = {}
    for typed, part in zip(converted.parts, converted.version.parts, strict=True):
        hub_fields = getattr(converted.resource, f"{part.part}_fields")
        spoke = _read_side(part.spoke, version, typed.pascal, str(converted.version.version.name))
        hub = _read_side(hub_fields, stored, typed.hub_type, _HUB)
        copied = _list_copied(typed, part, spoke, hub)
        if typed.to_hub:
            copies[f"{part.part}_to_hub"] = _fill(part, typed.hub_required, copied, spoke, hub)
        if typed.from_hub:
            copies[f"{part.part}_from_hub"] = _fill(part, typed.spoke_required, copied, hub, spoke)
    return copies


def _read_side(
    fields: tuple[Field, ...], classes: Mapping[str, PythonClass], owner: str, module: str
) -> _Side:
    python = classes[owner].fields if fields else ()
    return _Side(
        {field.name: field for field in fields},
        {field.name: each for field, each in zip(fields, python, strict=True)},
        frozenset(classes),
        module,
    )


def _list_copied(
    typed: ConvertedPart, part: PartChanges, spoke: _Side, hub: _Side
) -> frozenset[str]:
    """Return the fields of both versions that one of them needs.

    What one function fills, the other has to read: otherwise, a change in one version is lost.
    """
    needed = {*typed.hub_required, *typed.spoke_required}
    changed = {field.name for field in part.hub_changes} & {f.name for f in part.spoke_changes}
    return frozenset(
        name
        for name in needed & changed
        if _can_copy(spoke.fields[name], hub.fields[name])
        and _can_copy(hub.fields[name], spoke.fields[name])
    )


def _fill(
    part: PartChanges,
    required: tuple[str, ...],
    copied: frozenset[str],
    source: _Side,
    target: _Side,
) -> FunctionCopies:
    missing = tuple(name for name in required if name not in copied)
    names = [] if missing else [name for name in target.fields if name in copied]
    return FunctionCopies(missing, tuple(_express(part, name, source, target) for name in names))


def _express(part: PartChanges, name: str, source: _Side, target: _Side) -> CopiedField:
    python = target.python[name]
    words = _WORD.findall(python.annotation)
    nested = next((f"{target.module}.{word}" for word in words if word in target.classes), "")
    is_list = python.annotation.startswith("tuple[")
    value = f"{part.part}.{source.python[name].attribute}"
    expression = value
    if nested and is_list:
        expression = f"tuple(copy_fields(each, {nested}) for each in {value})"
    elif nested:
        expression = f"copy_fields({value}, {nested})"
    return CopiedField(python.attribute, SafeText(expression))


def _can_copy(source: Field, target: Field) -> bool:
    return _can_copy_value(source.schema, target.schema, always=_is_present(source))


def _is_present(field: Field) -> bool:
    return field.required or "default" in field.schema


def _can_copy_value(source: Schema, target: Schema, *, always: bool) -> bool:
    """Return whether each value of ``source`` becomes one that ``target`` requires.

    ``always`` is False if the value may be absent.
    """
    if source.get("nullable") or (not always and not _can_be_empty(target)):
        return False
    if has_same_type(source, target):
        return True
    if source.get("type") != target.get("type"):
        return False
    if target.get("type") == "array":
        return _can_copy_value(source.get("items", {}), target.get("items", {}), always=True)
    target_fields, source_fields = target.get("properties") or {}, source.get("properties") or {}
    return bool(target_fields and source_fields) and all(
        _can_copy_property(source, target, name) for name in target_fields
    )


def _can_copy_property(source: Schema, target: Schema, name: str) -> bool:
    target_field, source_field = target["properties"][name], source["properties"].get(name)
    is_needed_here = name in target.get("required", ()) and "default" not in target_field
    if source_field is None:
        # The API server fills in a default, so that another value comes back.
        return not is_needed_here and "default" not in target_field
    if not has_same_type(source_field, target_field) and "default" in target_field:
        return False
    always = name in source.get("required", ()) or "default" in source_field
    if is_needed_here:
        return _can_copy_value(source_field, target_field, always=always)
    return source_field.get("default") == target_field.get("default") and _has_no_other_defaults(
        source_field, target_field
    )


def _has_no_other_defaults(source: Schema, target: Schema) -> bool:
    """Return whether nothing inside an optional value gets a default in ``target`` only."""
    target_fields, source_fields = target.get("properties") or {}, source.get("properties") or {}
    if target.get("type") == "array" == source.get("type"):
        return _has_no_other_defaults(source.get("items", {}), target.get("items", {}))
    return all(
        schema.get("default") == source_fields.get(name, {}).get("default")
        and _has_no_other_defaults(source_fields.get(name, {}), schema)
        for name, schema in target_fields.items()
    )


def _can_be_empty(schema: Schema) -> bool:
    """Return whether the schema allows an empty list, map or object."""
    if schema.get("enum") or any(schema.get(key) for key in _LENGTHS):
        return False
    if schema.get("type") == "array":
        return True
    properties = schema.get("properties") or {}
    return schema.get("type") == "object" and all(
        _can_be_empty(properties[name]) for name in _list_needed(schema)
    )


def _list_needed(schema: Schema) -> Iterator[str]:
    """Yield the names of properties that the schema requires without giving a default."""
    properties = schema.get("properties") or {}
    for name in schema.get("required", ()):
        if name in properties and "default" not in properties[name]:
            yield name
