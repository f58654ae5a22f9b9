"""Move fields of the contract to where a CRD has them.

The author lists their paths in ``contractFields.paths``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from capsmith.contract.model import ContractField
from capsmith.provider.fields import Schema

_PART = "spec."


def list_movable_paths(fields: Iterable[ContractField]) -> list[str]:
    """Return the paths of the fields that a CRD may have elsewhere, such as
    ``spec.machineTemplate.infrastructureRef``."""
    return [f"{_PART}{field.name}.{path}" for field in fields for path in field.movable]


def select_paths(fields: Iterable[ContractField], paths: Mapping[str, str]) -> dict[str, str]:
    """Return the ``paths`` of movable ``fields``; all others belong to another contract version."""
    movable = set(list_movable_paths(fields))
    return {old: new for old, new in paths.items() if old in movable}


def move_fields(fields: Iterable[ContractField], paths: Mapping[str, str]) -> list[ContractField]:
    """Return the contract's ``fields`` of spec, with those in ``paths`` where the CRD has them.

    A field keeps its schema, and is required if the contract requires it.
    """
    found = {field.name: field for field in fields}
    for old, new in select_paths(found.values(), paths).items():
        name, *below = split_path(old)
        field = found[name]
        cut = _cut(field.schema, below)
        if cut.schema.get("properties"):
            is_required = field.required and not cut.was_last
            found[name] = field._replace(schema=cut.schema, required=is_required)
        else:
            del found[name]
        _insert(found, new, field, cut.taken, field.required and cut.is_required)
    return list(found.values())


def split_path(path: str) -> list[str]:
    """Return the names in a path below ``spec``."""
    return path.removeprefix(_PART).split(".")


def has_field(schema: Schema, steps: Sequence[str]) -> bool:
    """Return whether ``schema`` declares the property at the end of ``steps``."""
    for step in steps:
        if step not in schema.get("properties", {}):
            return False
        schema = schema["properties"][step]
    return True


class _Cut(NamedTuple):
    schema: Schema
    """The schema without the property."""
    taken: Schema
    """The schema of the property."""
    is_required: bool
    """Whether each value must have the property."""
    was_last: bool
    """Whether the schema required only this property."""


def _cut(schema: Schema, steps: Sequence[str]) -> _Cut:
    first, *rest = steps
    properties, required = dict(schema["properties"]), list(schema.get("required", ()))
    below = _Cut({}, properties.pop(first), True, True)
    if rest:
        below = _cut(below.taken, rest)
    if below.schema.get("properties"):
        properties[first] = below.schema
    is_required = first in required and below.is_required
    if first in required and (below.was_last or first not in properties):
        required.remove(first)
    left = {key: value for key, value in schema.items() if key != "required"}
    left |= {"properties": properties, **({"required": required} if required else {})}
    return _Cut(left, below.taken, is_required, bool(schema.get("required")) and not required)


def _insert(
    found: dict[str, ContractField], path: str, field: ContractField, schema: Schema, required: bool
) -> None:
    """Add a field at ``path``, which belongs to the rule and the feature of ``field``."""
    name, *below = split_path(path)
    empty = field._replace(name=name, schema={"type": "object"}, required=False, own=(), movable=())
    holder = found.get(name, empty)
    whole = add_property(holder.schema, below, schema, required)
    found[name] = holder._replace(schema=whole, required=holder.required or required)


def add_property(
    holder: Schema, steps: Sequence[str], schema: Schema, required: bool = False
) -> Schema:
    """Return a copy of the schema ``holder`` with a property at the end of ``steps``.

    Objects on the way are declared as well; if the property is ``required``, they are, too.
    """
    if not steps:
        return schema
    first, *rest = steps
    properties: dict[str, Any] = dict(holder.get("properties", {}))
    below = properties.get(first, {"type": "object"})
    properties[first] = add_property(below, rest, schema, required)
    names = list(holder.get("required", ()))
    if required and first not in names:
        names.append(first)
    return {**holder, "properties": properties, **({"required": names} if names else {})}
