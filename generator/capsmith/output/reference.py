"""Rows for the generated reference: each kind's fields, and the page about the Python API."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from capsmith.output.crd import build_spec_schema, build_status_schema
from capsmith.provider.fields import Schema
from capsmith.provider.model import Resource
from capsmith.provider.versions import VersionChanges
from capsmith.safetext import RelativePath, SafeText


def type_words(schema: Mapping[str, Any], *, formats: bool = False) -> str:
    """Describe a schema's type in words, including the items' type, such as ``list of string``.

    If ``formats`` is true, the format is appended: ``integer (int32)``.
    """
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {type_words(schema.get('items', {}), formats=formats)}"
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return f"map of {type_words(values, formats=formats)}"
    return f"{kind} ({schema['format']})" if formats and "format" in schema else kind


_RANGES = {
    "": ("minimum", "maximum"),
    " characters": ("minLength", "maxLength"),
    " items": ("minItems", "maxItems"),
    " entries": ("minProperties", "maxProperties"),
}
"""Keys of the lower and upper limit, by unit."""
_WORDS = {"enum": "one of", "pattern": "pattern", "format": "format", "default": "default"}
_STANDARD = frozenset({"conditions"})
"""Well-known fields, whose nested fields are not listed."""


class FieldRow(NamedTuple):
    """A row for one field: path in the object, type, whether required, limits and description."""

    path: str
    type: str
    required: bool
    limits: str
    description: str


def list_field_rows(resource: Resource) -> tuple[FieldRow, ...]:
    """Return rows for all fields of ``spec`` and ``status`` in the storage version.

    Rows are in schema order.  A template has only status rows, because its other fields are listed
    under its kind.
    """
    version = resource.storage_version
    rows: list[FieldRow] = []
    if not resource.role.is_template:
        rows += _rows("spec", build_spec_schema(resource, version))
    status = build_status_schema(resource, version)
    if status is not None:
        rows += _rows("status", status)
    return tuple(rows)


def list_version_rows(resource: Resource, changes: VersionChanges) -> tuple[FieldRow, ...]:
    """Return rows for fields that the storage version lacks or defines with another type."""
    schemas = {
        "spec": build_spec_schema(resource, changes.version),
        "status": build_status_schema(resource, changes.version) or {},
    }
    rows: list[FieldRow] = []
    for part in changes.parts:
        names = {field.name for field in part.spoke_changes}
        schema = schemas[part.part]
        properties = schema.get("properties", {})
        kept = {name: field for name, field in properties.items() if name in names}
        rows += _rows(part.part, {**schema, "properties": kept})
    return tuple(rows)


def find_missing_fields(changes: VersionChanges) -> tuple[str, ...]:
    """Return the paths of storage version fields that a version lacks or gives another type."""
    return tuple(
        f"{part.part}.{field.name}" for part in changes.parts for field in part.hub_changes
    )


def _rows(path: str, schema: Schema) -> Iterator[FieldRow]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        yield FieldRow(
            path=f"{path}.{name}",
            type=type_words(field),
            required=name in required,
            limits=_limits(field),
            description=str(field.get("description", "")),
        )
        if name not in _STANDARD:
            yield from _rows(*_inner(f"{path}.{name}", field))


def _inner(path: str, schema: Schema) -> tuple[str, Schema]:
    """Return path and schema of the nested fields, which may be in the object, items or values."""
    if schema.get("type") == "array":
        return _inner(f"{path}[]", schema.get("items", {}))
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return _inner(f"{path}.<key>", values)
    return path, schema


def _limits(schema: Schema) -> str:
    parts = []
    for key, words in _WORDS.items():
        if key in schema:
            value = schema[key]
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            parts.append(f"{words} {text}")
    parts += [_range(schema, unit, *keys) for unit, keys in _RANGES.items()]
    rules = schema.get("x-kubernetes-validations", ())
    parts += ["cannot be changed" for rule in rules if rule["rule"] == "self == oldSelf"]
    return "; ".join(part for part in parts if part)


def _range(schema: Schema, unit: str, low: str, high: str) -> str:
    if high == "maxProperties" and "properties" in schema:
        return ""  # the limit on the number of properties adds nothing to the fields themselves
    if low in schema and high in schema:
        return f"{schema[low]} to {schema[high]}{unit}"
    if low in schema:
        return f"at least {schema[low]}{unit}"
    if high in schema:
        return f"at most {schema[high]}{unit}"
    return ""


AUTHOR_API_PATH: Final = RelativePath("docs/author-api.md")
PLACEHOLDER: Final = "<package>"
"""Placeholder on the API page for the name of the provider's Python package."""

_HEADER: Final = "<!-- Code generated by capsmith. DO NOT EDIT. -->\n"
_SECTION: Final = re.compile(r"^(?=## )", re.MULTILINE)
_MODULE: Final = re.compile(r"## .*`capsmith_runtime\.(\w+)`")


def select_author_api(page: str, slices: Collection[str], package: SafeText) -> str:
    """Return the API page without the sections about runtime slices that are not in ``slices``.

    A section's heading names its slice, such as ``capsmith_runtime.ipam``.  Sections without a
    slice are always kept.  ``package`` replaces :data:`PLACEHOLDER`.
    """
    sections = [text for text in _SECTION.split(page) if _slice_of(text) in {None, *slices}]
    text = "".join(sections).rstrip("\n") + "\n"
    return _HEADER + text.replace(PLACEHOLDER, package)


def _slice_of(section: str) -> str | None:
    found = _MODULE.match(section)
    return found.group(1) if found else None
