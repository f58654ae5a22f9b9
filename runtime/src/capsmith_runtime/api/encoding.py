"""Encode the dataclass of a spec or status as JSON, without optional values that are empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from capsmith_runtime.api.decoding import has_default, json_name


def status_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a Status dataclass by JSON key; None marks an empty field."""
    if value is None:
        return {}
    if not is_dataclass(value) or isinstance(value, type):
        found = type(value).__name__
        raise TypeError(f"status must be an instance of a generated Status class, not {found}")
    return {json_name(field): encode(getattr(value, field.name)) for field in fields(value)}


def encode(value: Any) -> Any:
    """Return plain JSON for a dataclass and its contents."""
    if is_dataclass(value) and not isinstance(value, type):
        found = ((field, encode(getattr(value, field.name))) for field in fields(value))
        return {
            json_name(field): item
            for field, item in found
            if item is not None and (item not in ([], {}) or not has_default(field))
        }
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    return value
