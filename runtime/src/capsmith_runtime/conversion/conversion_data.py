"""An annotation keeps the fields that another shape cannot express (CRD-15).

When the object is converted back, each field gets its original value, unless it was changed in the
meantime: where a field still has the value that the annotation's data have in the other shape, the
annotation's data are restored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from capsmith_runtime.conversion.paths import MISSING, Data

ANNOTATION: Final = "cluster.x-k8s.io/conversion-data"
PARTS: Final[tuple[str, ...]] = ("spec", "status")
_OTHERS: Final = "others"


def restore(original: Any, expected: Any, current: Any) -> Any:
    """Return ``current``, with the values of ``original`` wherever it equals ``expected``.

    ``expected`` is ``original`` after a conversion there and back.
    """
    if equal(current, expected):
        return original
    if all(isinstance(each, dict) for each in (original, expected, current)):
        return _restore_object(original, expected, current)
    by_type = [_by_type(each) for each in (original, expected, current)]
    if all(each is not None for each in by_type):
        merged = _restore_object(*by_type)
        return list(merged.values())
    return current


def _restore_object(original: Any, expected: Any, current: Any) -> Data:
    merged = {}
    for key in (*current, *(key for key in original if key not in current)):
        values = (each.get(key, MISSING) for each in (original, expected, current))
        value = restore(*values)
        if value is not MISSING:
            merged[key] = value
    return merged


def _by_type(value: Any) -> Data | None:
    """Return conditions by type, or None if the value is no list of conditions."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return None
    by_type = {each["type"]: each for each in value if isinstance(each.get("type"), str)}
    conditions = all("status" in each for each in value)
    return by_type if conditions and len(by_type) == len(value) else None


def lost_fields(original: Data, converted: Data) -> Data:
    """Return the fields of spec and status whose values ``converted`` does not have."""
    lost: Data = {}
    for part in PARTS:
        before, after = original.get(part, MISSING), converted.get(part, MISSING)
        if equal(before, after) or before is MISSING:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            lost[part] = {
                key: value
                for key, value in before.items()
                if not equal(value, after.get(key, MISSING))
            }
        else:
            lost[part] = before
    return lost


@dataclass(frozen=True, slots=True)
class StoredData:
    """Fields of an object in one API version, which other versions cannot express."""

    api_version: str
    """``group/version``."""
    data: Data


def encode(stored: Sequence[StoredData]) -> str:
    """Return the value of the annotation: the first data at the top, any further ones below."""
    first, *others = ({"apiVersion": each.api_version, **each.data} for each in stored)
    if others:
        first[_OTHERS] = others
    return json.dumps(first, separators=(",", ":"), sort_keys=True)


def decode(text: Any) -> tuple[StoredData, ...]:
    """Return the data of an annotation; none if it has another format."""
    try:
        first = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return ()
    others = first.get(_OTHERS, []) if isinstance(first, dict) else []
    entries = [first, *others] if isinstance(others, list) else [first]
    if not all(isinstance(e, dict) and isinstance(e.get("apiVersion"), str) for e in entries):
        return ()
    return tuple(
        StoredData(entry["apiVersion"], {part: entry[part] for part in PARTS if part in entry})
        for entry in entries
    )


def equal(one: Any, other: Any) -> bool:
    """Compare two JSON values: unlike in Python, true is not 1 and 1 is not 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return type(one) is type(other) and bool(one == other)
