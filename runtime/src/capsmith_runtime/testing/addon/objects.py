"""Workload clusters' objects in memory, which add-ons can read and write."""

from __future__ import annotations

import copy
from typing import Any, Final

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName, Page, ResourceType, Selection
from capsmith_runtime.testing.fake_api import is_selected

_DELETED: Final = "2026-01-01T00:00:00Z"
_KEEPER: Final = "capsmith.example.com/keep"
"""Finalizer of a controller that takes its time."""


class WorkloadObjects:
    """A workload cluster's objects in memory, which add-ons can read and write.

    As in a real cluster, an object with finalizers is only marked by a deletion, and a Namespace
    is deleted with its content.
    """

    def __init__(self) -> None:
        self._objects: dict[tuple[str, NamespacedName], JSON] = {}

    def find(self, kind: str, name: str, namespace: str = "") -> JSON | None:
        """Return an object, or None if it does not exist."""
        return copy.deepcopy(self._objects.get((kind, NamespacedName(namespace, name))))

    def all(self, kind: str = "") -> list[JSON]:
        """Return all objects, or those of one kind, in the order of their kinds and names."""
        found = (self._objects[key] for key in sorted(self._objects))
        return [copy.deepcopy(obj) for obj in found if kind in ("", obj["kind"])]

    def add(self, obj: JSON) -> None:
        """Create an object as another field manager, not the add-on."""
        metadata = obj["metadata"]
        key = NamespacedName(metadata.get("namespace", ""), metadata["name"])
        self._objects[(obj["kind"], key)] = copy.deepcopy(obj)

    def keep_deleted(self) -> None:
        """Let deletions of the current objects last until :meth:`finish_deletions`."""
        for obj in self._objects.values():
            obj["metadata"].setdefault("finalizers", []).append(_KEEPER)

    def finish_deletions(self) -> None:
        """Remove the objects whose deletions last because of :meth:`keep_deleted`."""
        for (kind, key), obj in list(self._objects.items()):
            finalizers = obj["metadata"].get("finalizers", [])
            if _KEEPER in finalizers:
                finalizers.remove(_KEEPER)
            if not finalizers and "deletionTimestamp" in obj["metadata"]:
                self._remove(kind, key)

    async def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> JSON:
        """Merge ``obj`` into the stored object; fields that ``obj`` omits are kept."""
        metadata = obj["metadata"]
        key = NamespacedName(metadata.get("namespace", ""), metadata["name"])
        merged = _merged(self._objects.get((resource.kind, key), {}), obj)
        self._objects[(resource.kind, key)] = merged
        return copy.deepcopy(merged)

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        """Return an object.

        Raises NotFoundError if it does not exist.
        """
        found = self._objects.get((resource.kind, key))
        if found is None:
            raise create_api_error(404, "NotFound", f"{resource.kind} {key}")
        return copy.deepcopy(found)

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return the selected objects of a kind on one page.

        Of label selectors, ``key`` and ``key=value`` are supported.
        """
        found = [obj for obj in self.all(resource.kind) if is_selected(obj, selection)]
        return Page(found, "1", "")

    async def delete(self, resource: ResourceType, key: NamespacedName, *, uid: str = "") -> None:
        """Delete an object, or mark it as deleted if it has finalizers.

        Raises NotFoundError if it does not exist.
        """
        await self.get(resource, key)
        metadata = self._objects[(resource.kind, key)]["metadata"]
        if metadata.get("finalizers"):
            metadata["deletionTimestamp"] = _DELETED
        else:
            self._remove(resource.kind, key)

    def _remove(self, kind: str, key: NamespacedName) -> None:
        self._objects.pop((kind, key), None)
        if kind == "Namespace":
            for each in [each for each in self._objects if each[1].namespace == key.name]:
                self._remove(*each)


def _merged(value: Any, patch: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(patch, dict):
        return copy.deepcopy(patch)
    return {**value, **{key: _merged(value.get(key), item) for key, item in patch.items()}}
