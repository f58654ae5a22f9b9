"""Scope builders for unit tests of add-on providers; they need no API server."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, TypeVar

from capsmith_runtime.addon.api import AddonDeleteScope, AddonScope, Workload
from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName, Page, ResourceType, Selection
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.sessions import ScopeSession
from capsmith_runtime.testing.core import NAMESPACE, core_cluster, given_credentials, spec_from

__all__ = [
    "WorkloadObjects",
    "addon",
    "addon_deletion",
    "core_cluster",
    "spec_from",
    "workload",
]


Spec = TypeVar("Spec")


class WorkloadObjects:
    """A workload cluster's objects in memory, which add-ons can read and write."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, NamespacedName], JSON] = {}

    def find(self, kind: str, name: str, namespace: str = "") -> JSON | None:
        """Return an object, or None if it does not exist."""
        return copy.deepcopy(self._objects.get((kind, NamespacedName(namespace, name))))

    def add(self, obj: JSON) -> None:
        """Create an object as another field manager, not the add-on."""
        metadata = obj["metadata"]
        key = NamespacedName(metadata.get("namespace", ""), metadata["name"])
        self._objects[(obj["kind"], key)] = copy.deepcopy(obj)

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
        """Return all objects of a kind in a namespace on one page; label selectors are ignored."""
        found = [
            copy.deepcopy(obj)
            for (kind, key), obj in self._objects.items()
            if kind == resource.kind and selection.namespace in ("", key.namespace)
        ]
        return Page(found, "1", "")

    async def delete(self, resource: ResourceType, key: NamespacedName, *, uid: str = "") -> None:
        """Delete an object.

        Raises NotFoundError if it does not exist.
        """
        await self.get(resource, key)
        del self._objects[(resource.kind, key)]


def workload(objects: WorkloadObjects) -> Workload:
    """Create a client for a fake workload cluster that contains these objects."""

    async def kubeconfig() -> bytes:
        return b"apiVersion: v1\nkind: Config\n"

    api: Any = objects
    return Workload(api, kubeconfig)


def addon(
    spec: Spec,
    name: str = "addon",
    *,
    credentials: Mapping[str, str] | None = None,
    session: object = None,
) -> AddonScope[Spec]:
    """Create the scope to pass to ``reconcile_normal`` for an add-on with this spec."""
    return AddonScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        credentials=given_credentials(credentials),
        _session=ScopeSession(session),
    )


def addon_deletion(
    spec: Spec,
    name: str = "addon",
    *,
    credentials: Mapping[str, str] | None = None,
    session: object = None,
) -> AddonDeleteScope[Spec]:
    """Create the scope to pass to ``reconcile_delete`` for an add-on with this spec."""
    return AddonDeleteScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        _spec=spec,
        _credentials=given_credentials(credentials),
        _session=ScopeSession(session),
    )


def _merged(value: Any, patch: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(patch, dict):
        return copy.deepcopy(patch)
    return {**value, **{key: _merged(value.get(key), item) for key, item in patch.items()}}
