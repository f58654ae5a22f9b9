"""Read ``metadata`` and other paths of objects; missing fields are not an error."""

from collections.abc import Mapping
from typing import Any

from capsmith_runtime.contract.model import Object


def lookup(obj: Object, *path: str) -> Any:
    """Return the value at a path, or None if a step is missing or not an object."""
    value: Any = obj
    for step in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def text(obj: Object, *path: str) -> str:
    """Return the text at a path, or an empty text."""
    value = lookup(obj, *path)
    return value if isinstance(value, str) else ""


def mapping(obj: Object, *path: str) -> Mapping[str, Any]:
    """Return the object at a path, or an empty object."""
    value = lookup(obj, *path)
    return value if isinstance(value, Mapping) else {}


def items(obj: Object, *path: str) -> list[Any]:
    """Return the list at a path, or an empty list."""
    value = lookup(obj, *path)
    return list(value) if isinstance(value, list) else []


def name(obj: Object) -> str:
    """Return ``metadata.name``."""
    return text(obj, "metadata", "name")


def namespace(obj: Object) -> str:
    """Return ``metadata.namespace``; empty for cluster-scoped objects."""
    return text(obj, "metadata", "namespace")


def uid(obj: Object) -> str:
    """Return ``metadata.uid``; ``clusterctl move`` changes it."""
    return text(obj, "metadata", "uid")


def generation(obj: Object) -> int:
    """Return ``metadata.generation``, or 0 if the object has none."""
    value = lookup(obj, "metadata", "generation")
    return value if isinstance(value, int) else 0


def labels(obj: Object) -> Mapping[str, str]:
    """Return ``metadata.labels``."""
    return mapping(obj, "metadata", "labels")


def annotations(obj: Object) -> Mapping[str, str]:
    """Return ``metadata.annotations``."""
    return mapping(obj, "metadata", "annotations")


def finalizers(obj: Object) -> list[str]:
    """Return ``metadata.finalizers``."""
    return items(obj, "metadata", "finalizers")


def deleting(obj: Object) -> bool:
    """Return whether the object is being deleted."""
    return lookup(obj, "metadata", "deletionTimestamp") is not None


def current_owners(obj: Object, owner: Object) -> list[Any]:
    """Return the owner references, with the current API version of ``owner``.

    The garbage collector cannot look up an owner in a version that is no longer served, and then
    does not delete its dependents.
    """
    now = {"apiVersion": owner["apiVersion"]}
    return [
        {**reference, **now} if reference.get("uid") == uid(owner) else reference
        for reference in items(obj, "metadata", "ownerReferences")
    ]


def owner_name(obj: Object, kind: str, group: str) -> str | None:
    """Return the name of the owner of this kind and group.

    The ``controller`` flag is ignored: core sets it only for clusters with a topology
    (IC-17).
    """
    for reference in items(obj, "metadata", "ownerReferences"):
        group_of = text(reference, "apiVersion").partition("/")[0]
        if text(reference, "kind") == kind and group_of == group:
            return text(reference, "name") or None
    return None
