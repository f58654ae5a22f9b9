"""JSON merge patches, as the fake API server applies them."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from capsmith_runtime.kube.client import JSON

T = TypeVar("T")


def copied(value: T) -> T:
    """Return a deep copy of JSON; several times as fast as copy.deepcopy."""
    result: Any = value
    if isinstance(value, dict):
        result = {key: copied(item) for key, item in value.items()}
    elif isinstance(value, list):
        result = [copied(item) for item in value]
    return cast(T, result)


def merged(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, item in patch.items():
        if item is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), item)
    return result


def removal(applied: JSON, obj: JSON) -> JSON:
    """Return the merge patch that removes what was applied before and is not in ``obj``."""
    patch: JSON = {}
    for name, value in applied.items():
        if name not in obj:
            patch[name] = None
        elif isinstance(value, dict) and isinstance(obj[name], dict):
            patch[name] = removal(value, obj[name])
    return patch
