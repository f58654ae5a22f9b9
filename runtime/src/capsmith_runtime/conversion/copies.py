"""Copies fields between the types of two API versions, for the author's functions."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from capsmith_runtime.api.serialization import DecodingError, decode, encode, has_default, json_name

T = TypeVar("T")


def copy_fields(source: object, cls: type[T]) -> T:
    """Return an instance of the dataclass ``cls`` with the fields that it shares with ``source``.

    ``source`` is an instance of another version's class, or None, which has no fields. Objects in
    fields, lists and maps are copied the same way. Optional fields are left out if ``source`` lacks
    them or has another type. Lists, maps and objects that only ``cls`` requires are empty.

    Raises DecodingError for other required fields that ``source`` lacks or has with another type.
    """
    copy: T = _copy(cls, {} if source is None else encode(source), cls.__name__)
    return copy


def _copy(hint: Any, value: Any, path: str) -> Any:
    if isinstance(hint, type) and is_dataclass(hint) and isinstance(value, Mapping):
        return hint(**_copy_members(hint, value, path))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and isinstance(value, list):
        return tuple(_copy(arguments[0], each, f"{path}[{n}]") for n, each in enumerate(value))
    if origin is Mapping and isinstance(value, Mapping):
        return {key: _copy(arguments[1], each, f"{path}.{key}") for key, each in value.items()}
    if origin is types.UnionType and value is not None:
        members = [each for each in arguments if each is not types.NoneType]
        if len(members) == 1:
            return _copy(members[0], value, path)
    return decode(hint, value, path)


def _copy_members(cls: Any, data: Mapping[str, Any], path: str) -> dict[str, Any]:
    found = {}
    for field in fields(cls):
        key, hint = json_name(field), _read_hints(cls)[field.name]
        value = data.get(key)
        if value is None and has_default(field):
            continue
        try:
            found[field.name] = _copy(
                hint, _empty(hint) if value is None else value, f"{path}.{key}"
            )
        except DecodingError:
            if not has_default(field):
                raise
    return found


@cache
def _read_hints(cls: Any) -> Mapping[str, Any]:
    return typing.get_type_hints(cls)


def _empty(hint: Any) -> Any:
    """Return the empty value, as JSON, of a type that has one, otherwise None."""
    if typing.get_origin(hint) is tuple:
        return []
    return {} if is_dataclass(hint) or typing.get_origin(hint) is Mapping else None
