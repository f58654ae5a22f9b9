"""Create a provider's objects, without overwriting what others have changed in a lab."""

from __future__ import annotations

import base64
from typing import Any

from capsmith.clusters.processes.kube import FIELD_MANAGER, JSON, KubeClient, StaleError

_SECRET = "Secret"
_CONFLICT = 409
_OF_CONTROLLERS = frozenset({"f:metadata", "f:status"})
"""Parts of objects that controllers write, such as finalizers and owner references."""


def apply_unless_changed(client: KubeClient, obj: JSON) -> bool:
    """Apply an object, unless it exists and others have changed it; see :func:`is_changed`.

    Returns whether the object now has the content of ``obj``.  Raises ApiError if the API server
    rejects it.
    """
    desired = _encode_text(obj)
    metadata = desired["metadata"]
    found = client.find(
        desired["apiVersion"], desired["kind"], metadata["name"], metadata.get("namespace")
    )
    if found is not None and is_changed(found, desired):
        return _has_content(found, {**desired, "metadata": {}})
    try:
        client.apply(desired, is_forced=False)
    except StaleError as error:
        # Others have changed it since it was read, or one of its labels.
        if error.status == _CONFLICT:
            return False
        raise
    return True


def is_changed(found: JSON, desired: JSON) -> bool:
    """Return whether others than capsmith have written to an object's content.

    A Secret that lacks a key of ``desired`` counts as changed, because the API server does not
    record who removes a field.
    """
    managers = found["metadata"].get("managedFields") or []
    if any(map(_is_by_others, managers)):
        return True
    keys, existing = (set(each.get("data") or {}) for each in (desired, found))
    return desired["kind"] == _SECRET and not keys <= existing


def _is_by_others(entry: JSON) -> bool:
    """Return whether an entry of ``managedFields`` is about content that others have written."""
    # Requests of the lab's page are updates under the same name, and the user's changes.
    is_own = (entry.get("manager"), entry.get("operation")) == (FIELD_MANAGER, "Apply")
    return not is_own and bool(set(entry.get("fieldsV1") or {}) - _OF_CONTROLLERS)


def _encode_text(obj: JSON) -> JSON:
    """Return a Secret whose ``stringData`` is in ``data``, and other objects unchanged.

    The API server does not keep ``stringData``, and therefore would not notice that it overwrites
    the changes of others.
    """
    if obj["kind"] != _SECRET or not obj.get("stringData"):
        return obj
    encoded = {
        key: base64.b64encode(str(text).encode()).decode()
        for key, text in obj["stringData"].items()
    }
    rest = {key: value for key, value in obj.items() if key != "stringData"}
    return {**rest, "data": {**(obj.get("data") or {}), **encoded}}


def _has_content(found: Any, desired: Any) -> bool:
    """Return whether an object has all the values of another one."""
    if isinstance(desired, dict):
        return isinstance(found, dict) and all(
            _has_content(found.get(key), value) for key, value in desired.items()
        )
    return bool(found == desired)
