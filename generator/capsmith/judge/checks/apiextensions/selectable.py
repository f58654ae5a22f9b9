"""Check a CRD's selectable fields, which can be used in field selectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from capsmith.judge.checks.apiextensions.model import Schema
from capsmith.manifests.parse import mapping_of, text_of
from capsmith.provider_yaml.rules import find_unknown_field, is_field_path
from capsmith.yamldoc.quote import quote


def find_selectable_faults(
    fields: Sequence[Any], schema: Schema, types: Sequence[str], most: int
) -> Iterator[str]:
    """Yield the reasons why the API server would reject a version's ``selectableFields``.

    ``types`` lists the allowed field types, and ``most`` is the maximum number of fields.
    """
    paths = [text_of(field, "jsonPath") for field in fields]
    if len(set(paths)) != len(paths):
        yield "selectableFields has duplicate paths"
    if len(set(paths)) > most:
        yield f"selectableFields has more than {most} paths"
    for path in paths:
        if not is_field_path(path) or find_unknown_field(path, schema):
            yield f"selectableFields: {quote(path)} is not a field of the schema"
        elif path.startswith(".metadata") or _type(schema, path) not in types:
            yield f"selectableFields: {quote(path)} must be of type {', '.join(types)}"


def _type(schema: Schema, path: str) -> str:
    current: Any = schema
    for name in path.removeprefix(".").split("."):
        current = mapping_of(current, "properties").get(name)
    return text_of(current, "type")
