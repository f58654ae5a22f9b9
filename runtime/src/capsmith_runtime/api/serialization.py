"""Converts Kubernetes JSON objects into the dataclasses of their kinds, and back.

Unknown keys are ignored, because a newer API version may have written them. A value of the wrong
type raises an error that names its path. Optional values that are empty are not written.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar

T = TypeVar("T")
_Decoder = Callable[[Any, str], Any]

_NAMES: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}


class DecodingError(ValueError):
    """Raised for a value of the wrong type; the message names its path and the expected type."""

    path: str
    """Path of the value in the object, such as ``spec.disks[0].size``."""

    def __init__(self, path: str, expected: str, value: object) -> None:
        super().__init__(f"{path}: expected {expected}, found {_shown(value)}")
        self.path = path


def decode(cls: type[T], data: Mapping[str, Any], path: str) -> T:
    """Decode ``data`` as an instance of the dataclass ``cls``.

    ``path`` is the path of ``data`` in the object, such as ``spec``. Raises :class:`DecodingError`
    for a value of the wrong type.
    """
    expected: Any = cls
    value: T = _decoder(expected)(data, path)
    return value


@cache
def _decoder(expected: Any) -> _Decoder:
    if expected is Any:
        return lambda value, path: value
    if isinstance(expected, type) and is_dataclass(expected):
        return _dataclass_decoder(expected)
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if origin is Literal:
        return _literal_decoder(arguments)
    if origin in (types.UnionType, typing.Union):
        return _union_decoder(arguments)
    if origin is tuple:
        return _tuple_decoder(_decoder(arguments[0]))
    if origin is Mapping:
        return _mapping_decoder(_decoder(arguments[1]))
    return _scalar_decoder(expected)


def _scalar_decoder(expected: type) -> _Decoder:
    def decode_scalar(value: Any, path: str) -> Any:
        # In Python a bool is an int; in JSON it is not. A float may be written without a point.
        if isinstance(value, bool) is (expected is bool):
            if isinstance(value, expected):
                return value
            if expected is float and isinstance(value, int):
                return float(value)
            # JSON has one type of numbers: 1.0 is a valid integer, and some tools write it.
            if expected is int and isinstance(value, float) and value.is_integer():
                return int(value)
        raise DecodingError(path, _NAMES[expected], value)

    return decode_scalar


def _literal_decoder(allowed: tuple[Any, ...]) -> _Decoder:
    def decode_literal(value: Any, path: str) -> Any:
        for choice in allowed:
            # The type as well, because in Python True equals 1.
            if value == choice and type(value) is type(choice):
                return choice
        raise DecodingError(path, "one of " + ", ".join(map(repr, allowed)), value)

    return decode_literal


def _union_decoder(members: tuple[Any, ...]) -> _Decoder:
    nullable = types.NoneType in members
    decoders = [_decoder(member) for member in members if member is not types.NoneType]

    def decode_union(value: Any, path: str) -> Any:
        if value is None and nullable:
            return None
        for decoder in decoders[:-1]:
            try:
                return decoder(value, path)
            except DecodingError:
                continue
        return decoders[-1](value, path)

    return decode_union


def _tuple_decoder(item: _Decoder) -> _Decoder:
    def decode_tuple(value: Any, path: str) -> Any:
        if not isinstance(value, list):
            raise DecodingError(path, "a list", value)
        return tuple(item(entry, f"{path}[{index}]") for index, entry in enumerate(value))

    return decode_tuple


def _mapping_decoder(item: _Decoder) -> _Decoder:
    def decode_mapping(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise DecodingError(path, "an object", value)
        return {key: item(entry, f"{path}.{key}") for key, entry in value.items()}

    return decode_mapping


def _dataclass_decoder(cls: type[Any]) -> _Decoder:
    hints = typing.get_type_hints(cls)
    known = [(field, json_name(field), _decoder(hints[field.name])) for field in fields(cls)]

    def decode_dataclass(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise DecodingError(path, "an object", value)
        found = {}
        for field, key, decoder in known:
            # null and an absent key mean the same in Kubernetes objects.
            if value.get(key) is None and has_default(field):
                continue
            found[field.name] = decoder(value.get(key), f"{path}.{key}")
        return cls(**found)

    return decode_dataclass


def json_name(field: Field[Any]) -> str:
    """Return the JSON key of a dataclass field."""
    name: str = field.metadata.get("json", field.name)
    return name


def has_default(field: Field[Any]) -> bool:
    """Return whether a dataclass field has a default, which makes it optional in the JSON."""
    return field.default is not MISSING or field.default_factory is not MISSING


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def encode_status(value: Any) -> dict[str, Any]:
    """Return a Status dataclass's fields as JSON values, keyed by JSON name.

    Empty fields are included as None, so that a merge patch removes them.
    """
    if value is None:
        return {}
    if not is_dataclass(value) or isinstance(value, type):
        found = type(value).__name__
        raise TypeError(f"status must be an instance of a generated Status class, not {found}")
    return {json_name(field): encode(getattr(value, field.name)) for field in fields(value)}


def encode(value: Any) -> Any:
    """Return a dataclass and its nested values as plain JSON.

    Optional fields that are empty are left out.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return _encode_fields(value, fields(value))
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    return value


def encode_differences(before: T, after: T) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two instances of a dataclass as JSON, without the fields that are the same object.

    Both may have fields with a million values, of which a change replaces few.
    """
    known: tuple[Field[Any], ...] = fields(before)  # type: ignore[arg-type]  # T is a dataclass
    changed = [each for each in known if _is_replaced(each, before, after)]
    return _encode_fields(before, changed), _encode_fields(after, changed)


def _is_replaced(field: Field[Any], before: object, after: object) -> bool:
    return getattr(before, field.name) is not getattr(after, field.name)


def _encode_fields(value: Any, known: Iterable[Field[Any]]) -> dict[str, Any]:
    found = ((field, encode(getattr(value, field.name))) for field in known)
    return {
        json_name(field): item
        for field, item in found
        if item is not None and (item not in ([], {}) or not has_default(field))
    }
