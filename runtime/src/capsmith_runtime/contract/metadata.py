"""Functions that read ``metadata`` and other paths in objects, and match labels.

No function raises for missing fields.
"""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from capsmith_runtime.contract.model import Object

# Nearly all objects are dictionaries, and a check for an abstract class takes ten times as long:
# half of the time of the first lists.
_MAPPINGS: Final = (dict, Mapping)


def lookup(obj: Object, *path: str) -> Any:
    """Return the value at ``path``, or None if it does not exist."""
    value: Any = obj
    for step in path:
        if not isinstance(value, _MAPPINGS):
            return None
        value = value.get(step)
    return value


def text(obj: Object, *path: str) -> str:
    """Return the string at ``path``, or an empty string if there is none."""
    value = lookup(obj, *path)
    return value if isinstance(value, str) else ""


def mapping(obj: Object, *path: str) -> Mapping[str, Any]:
    """Return the object at ``path``, or an empty mapping if there is none."""
    value = lookup(obj, *path)
    return value if isinstance(value, _MAPPINGS) else {}


def items(obj: Object, *path: str) -> list[Any]:
    """Return the list at ``path``, or an empty list if there is none."""
    value = lookup(obj, *path)
    return list(value) if isinstance(value, list) else []


def parse_object(text: object) -> dict[str, Any] | None:
    """Return the object that JSON text denotes, or None if the text denotes none.

    The text may come from a user: it may have any content, such as a million opening brackets.
    """
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def name(obj: Object) -> str:
    """Return ``metadata.name``, or an empty string if the object has none."""
    return text(obj, "metadata", "name")


def namespace(obj: Object) -> str:
    """Return ``metadata.namespace``, or an empty string for cluster-scoped objects."""
    return text(obj, "metadata", "namespace")


def uid(obj: Object) -> str:
    """Return ``metadata.uid``, which ``clusterctl move`` changes, or an empty string."""
    return text(obj, "metadata", "uid")


def generation(obj: Object) -> int:
    """Return ``metadata.generation``, or 0 if the object has none."""
    value = lookup(obj, "metadata", "generation")
    return value if isinstance(value, int) else 0


def labels(obj: Object) -> Mapping[str, str]:
    """Return ``metadata.labels``, or an empty mapping if the object has none."""
    return mapping(obj, "metadata", "labels")


def annotations(obj: Object) -> Mapping[str, str]:
    """Return ``metadata.annotations``, or an empty mapping if the object has none."""
    return mapping(obj, "metadata", "annotations")


def finalizers(obj: Object) -> list[str]:
    """Return ``metadata.finalizers``, or an empty list if the object has none."""
    return items(obj, "metadata", "finalizers")


def is_deleting(obj: Object) -> bool:
    """Return whether the object is being deleted."""
    return lookup(obj, "metadata", "deletionTimestamp") is not None


def current_owners(obj: Object, owner: Object) -> list[Any]:
    """Return the owner references, with the current API version in those that refer to ``owner``.

    If an owner's version is no longer served, the garbage collector cannot look up the owner, and
    does not delete its dependents.
    """
    now = {"apiVersion": owner["apiVersion"]}
    return [
        # By UID, because a reference to another object of the same name must not change.
        {**reference, **now} if reference.get("uid") == uid(owner) else reference
        for reference in items(obj, "metadata", "ownerReferences")
    ]


def has_controller(obj: Object) -> bool:
    """Return whether one of the object's owner references is a controller reference."""
    return any(owner.get("controller") for owner in items(obj, "metadata", "ownerReferences"))


def owner_name(obj: Object, kind: str, group: str) -> str | None:
    """Return the name of the owner with this kind and group, or None if there is none.

    The ``controller`` flag is ignored: core sets it only for clusters with a topology (IC-17).
    """
    for reference in items(obj, "metadata", "ownerReferences"):
        group_of = text(reference, "apiVersion").partition("/")[0]
        if text(reference, "kind") == kind and group_of == group:
            return text(reference, "name") or None
    return None


_NAME: Final = "[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_LABEL_VALUE: Final = re.compile(f"({_NAME})?")
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_KEY: Final = re.compile(rf"((?=.{{1,253}}/){_DNS_LABEL}(\.{_DNS_LABEL})*/)?{_NAME}")
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193


def label_value(name: str) -> str:
    """Return ``name`` if it is a valid label value, otherwise ``hash_<base64>_z`` (MP-08).

    The hash is fnv32a, as in core, so that core finds objects by the label.
    """
    if _LABEL_VALUE.fullmatch(name):
        return name
    digest = base64.urlsafe_b64encode(_fnv32a(name.encode()).to_bytes(4, "big"))
    return f"hash_{digest.decode().rstrip('=')}_z"


def _fnv32a(data: bytes) -> int:
    value = _FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return value


def is_selected(selector: Object, labels: Mapping[str, str]) -> bool:
    """Return whether the labels match the selector; an empty selector matches everything.

    A selector that Kubernetes cannot parse matches nothing: it must not allow more than intended.
    """
    match_labels = mapping(selector, "matchLabels")
    if any(labels.get(key) != value for key, value in match_labels.items()):
        return False
    return all(_holds(item, labels) for item in items(selector, "matchExpressions"))


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    key, operator = text(expression, "key"), text(expression, "operator")
    values = items(expression, "values")
    if not _LABEL_KEY.fullmatch(key):
        return False
    if operator in ("In", "NotIn"):
        if not values or not all(map(_LABEL_VALUE.fullmatch, values)):
            return False
        # As in Kubernetes, NotIn also selects objects without the label.
        return (labels.get(key) in values) is (operator == "In")
    if values or operator not in ("Exists", "DoesNotExist"):
        return False
    return (key in labels) is (operator == "Exists")
