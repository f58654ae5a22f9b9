"""The patch with which a defaulter changes an object; a user's other fields stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capsmith_runtime.api.serialization import encode_differences
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.webhook.json_patch import Operation, json_patch


def build_spec_patch(obj: JSON, keys: tuple[str, ...], before: Any, after: Any) -> list[Operation]:
    """Return the JSON patch for a typed spec that changed; ``keys`` lead to the spec in ``obj``.

    Fields that did not change stay as the user wrote them, as do fields that the type does not
    have.
    """
    return json_patch(obj, _changed(obj, keys, *encode_differences(before, after)))


def _changed(obj: Any, keys: tuple[str, ...], before: JSON, after: JSON) -> JSON:
    known = obj if isinstance(obj, Mapping) else {}
    if not keys:
        return _with_changes(known, before, after)
    if before == after:
        return dict(known)
    return {**known, keys[0]: _changed(known.get(keys[0]), keys[1:], before, after)}


def _with_changes(
    raw: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> JSON:
    result = dict(raw)
    # Only fields that the author's type has are compared: others stay as the user wrote them.
    for key in before.keys() | after.keys():
        if key not in after:
            result.pop(key, None)
        elif key not in before or before[key] != after[key]:
            values: list[Any] = [raw.get(key), before.get(key), after[key]]
            nested = all(isinstance(value, Mapping) for value in values)
            result[key] = _with_changes(*values) if nested else after[key]
    return result
