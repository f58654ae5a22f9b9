"""JSON patches (RFC 6902) in responses; the same values always give the same patch (RX-06)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

Operation = dict[str, Any]


def json_patch(old: Any, new: Any, path: str = "") -> list[Operation]:
    """Return the operations that turn ``old`` into ``new``; lists are replaced as a whole."""
    if old is new:
        return []
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        # As JSON: in Python, 1 equals True and 1.0, but the patch has to tell them apart.
        if canonical_json(old) == canonical_json(new):
            return []
        return [{"op": "replace", "path": path, "value": new}]
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


def canonical_json(value: Any) -> bytes:
    """Return the value as JSON with sorted keys."""
    return msgspec.json.encode(value, order="deterministic")


def _escaped(key: str) -> str:
    # The tilde first: otherwise those of escaped slashes would be escaped again (RFC 6901).
    return key.replace("~", "~0").replace("/", "~1")
