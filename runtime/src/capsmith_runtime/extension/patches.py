"""JSON patches (RFC 6902); the same values always give the same patch (RX-06)."""

from __future__ import annotations

import base64
from collections.abc import Mapping, MutableMapping
from typing import Any

from capsmith_runtime.webhook.json_patch import Operation, canonical_json, json_patch

__all__ = ["copy_value", "encode_patch", "json_patch", "pointer_keys"]


def encode_patch(operations: list[Operation]) -> dict[str, str]:
    """Return the response fields for a patch, which is encoded in base64."""
    patch = base64.b64encode(canonical_json(operations)).decode()
    return {"patchType": "JSONPatch", "patch": patch}


def pointer_keys(pointer: str) -> list[str]:
    """Return the keys in a JSON pointer (RFC 6901).

    Raises ValueError if the pointer does not start with a slash.
    """
    root, *parts = pointer.split("/")
    if root or not parts:
        raise ValueError(f"a JSON pointer must start with a slash: {pointer!r}")
    # In this order, as RFC 6901 requires: the other way round, `~01` would become a slash.
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def copy_value(pointer: str, source: Mapping[str, Any], target: MutableMapping[str, Any]) -> None:
    """Copy the value at ``pointer``, or remove it from ``target`` if ``source`` has none.

    Raises ValueError if the pointer leads through a value that is not an object.
    """
    *parents, last = pointer_keys(pointer)
    source_parent = _parent(parents, source)
    if source_parent is None or last not in source_parent:
        target_parent = _parent(parents, target)
        if target_parent is not None:
            target_parent.pop(last, None)
        return
    inner: Any = target
    for key in parents:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ValueError(f"{pointer}: {key} is not an object")
    inner[last] = source_parent[last]


def _parent(keys: list[str], value: Any) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else None
