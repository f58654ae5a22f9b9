"""JSON patches (RFC 6902); the same two values always give the same patch (RX-06)."""

from __future__ import annotations

import base64
from collections.abc import Mapping, MutableMapping
from typing import Any

import msgspec

Operation = dict[str, Any]


def json_patch(old: Any, new: Any, path: str = "") -> list[Operation]:
    """Return the operations that turn ``old`` into ``new``; lists are replaced as a whole."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return [] if _text(old) == _text(new) else [{"op": "replace", "path": path, "value": new}]
    operations: list[Operation] = []
    for key in sorted(old.keys() | new.keys()):
        pointer = f"{path}/{_escaped(key)}"
        if key not in new:
            operations.append({"op": "remove", "path": pointer})
        elif key not in old:
            operations.append({"op": "add", "path": pointer, "value": new[key]})
        else:
            operations += json_patch(old[key], new[key], pointer)
    return operations


def encode_patch(operations: list[Operation]) -> dict[str, str]:
    """Return the fields of a response that hold a patch; JSON holds bytes as base64."""
    patch = base64.b64encode(_text(operations)).decode()
    return {"patchType": "JSONPatch", "patch": patch}


def pointer_keys(pointer: str) -> list[str]:
    """Return the keys of a JSON pointer (RFC 6901).

    Raise ValueError if it does not begin with a slash.
    """
    root, *parts = pointer.split("/")
    if root or not parts:
        raise ValueError(f"a JSON pointer begins with a slash: {pointer!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def copy_value(pointer: str, source: Mapping[str, Any], target: MutableMapping[str, Any]) -> None:
    """Copy the value at the pointer; remove it from ``target`` if ``source`` has none.

    Raise ValueError if the pointer leads through a value that is not an object.
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
            raise ValueError(f"{pointer}: {key} is no object")
    inner[last] = source_parent[last]


def _parent(keys: list[str], value: Any) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else None


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _text(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")
