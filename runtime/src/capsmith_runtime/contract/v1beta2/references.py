"""References to objects in cluster.x-k8s.io/v1beta2, which contain an API group only."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object, ObjectRef


def read_reference(reference: Object) -> ObjectRef | None:
    """Return a reference; None if it names no object."""
    name = metadata.text(reference, "name")
    if not name:
        return None
    group = metadata.text(reference, "apiGroup")
    return ObjectRef(group, metadata.text(reference, "kind"), name)


def reference_to(obj: Object) -> dict[str, Any]:
    """Return a reference to an object."""
    group = metadata.text(obj, "apiVersion").partition("/")[0]
    return {"apiGroup": group, "kind": obj["kind"], "name": metadata.name(obj)}
