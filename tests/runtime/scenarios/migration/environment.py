"""An API server that knows in which version each object is stored, and a manager."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Self

from capsmith_runtime.component import Component
from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName, Page, ResourceType, Selection
from capsmith_runtime.migration.controllers import StorageVersionMigration
from capsmith_runtime.testing.environment import TestEnvironment
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests
from capsmith_runtime.testing.provider import ProviderUnderTest

PAGE = 2
CRD = "CustomResourceDefinition"
OBJECTS = 5
"""Of each kind."""


def names_of(component: Component) -> tuple[str, ...]:
    """Return the names of the CRDs that a component migrates."""
    found = [part for part in component.groups if isinstance(part, StorageVersionMigration)]
    return found[0].crds if found else ()


def versions(crd: JSON) -> tuple[str, str]:
    """Return the storage version of a CRD, and another version."""
    (storage,) = (each["name"] for each in crd["spec"]["versions"] if each["storage"])
    other = next(each["name"] for each in crd["spec"]["versions"] if not each["storage"])
    return storage, other


def _with_another(crd: JSON) -> JSON:
    """Return the CRD with at least two served versions, even if the newest release has only one."""
    found = [{**each, "served": True} for each in crd["spec"]["versions"]]
    if len(found) == 1:
        found = [{**found[0], "name": "v1alpha0", "storage": False}, *found]
    return {**crd, "spec": {**crd["spec"], "versions": found}}


class StoredApi(FakeApi):
    """Returns lists in small pages, and stores written objects in the storage version."""

    def __init__(self, core_version: str, manifests: Manifests) -> None:
        super().__init__(core_version, manifests)
        self.stored: dict[tuple[str, NamespacedName], str] = {}
        """The version of objects that are not stored in the storage version."""
        self.left: list[tuple[str, NamespacedName]] = []
        """Objects that had not been rewritten when a CRD was updated."""
        self.expiring = 0
        """The number of continue tokens still to be refused."""
        self.allowed = True
        """Whether the provider's CRDs may be listed."""
        self.looked = 0
        """The number of attempts to list them."""

    def stored_versions(self) -> set[tuple[str, ...]]:
        """Return the stored versions that the CRDs report, without a copy of the CRDs."""
        return {
            tuple(obj["status"]["storedVersions"])
            for (kind, _), obj in self._objects.items()
            if kind == CRD
        }

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return a few objects at a time."""
        if resource.kind == CRD and "cluster.x-k8s.io/provider=" in selection.labels:
            self.looked += 1
            if not self.allowed:
                raise create_api_error(403, "Forbidden", "the role lacks a rule")
        if token and self.expiring:
            self.expiring -= 1
            raise create_api_error(410, "Expired", "the token is too old")
        items, version, _ = await super().list_page(resource, selection)
        begin = int(token or 0)
        end = begin + PAGE if limit else len(items)
        return Page(items[begin:end], version, str(end) if end < len(items) else "")

    def _patch(self, kind: str, key: NamespacedName, body: JSON, version: str) -> JSON:
        answer = super()._patch(kind, key, body, version)
        # Even an empty patch stores the object.
        self.stored.pop((kind, key), None)
        return answer

    def _patch_status(self, kind: str, key: NamespacedName, body: JSON, version: str) -> JSON:
        answer = super()._patch_status(kind, key, body, version)
        self.stored.pop((kind, key), None)
        if kind == CRD:
            migrated = answer["spec"]["names"]["kind"]
            self.left += [found for found in self.stored if found[0] == migrated]
        return answer

    def rewritten(self) -> Counter[NamespacedName]:
        """Count the writes of each object."""
        return Counter(
            key
            for verb, kind, key in self.requests
            if verb in ("patch", "patch_status") and kind != CRD
        )


class MigrationEnvironment(TestEnvironment):
    """One component whose objects are all stored in an older version."""

    api: StoredApi

    def __init__(self, provider: ProviderUnderTest, component: Component) -> None:
        super().__init__(provider, component, provider.manifests.contract)
        self.component = component
        self.api = StoredApi(self.contract, self.manifests)
        names = names_of(self.component)
        self.crds = [
            _with_another(crd) for crd in self.manifests.crds() if crd["metadata"]["name"] in names
        ]
        assert len(self.crds) == len(names)
        for crd in self.crds:
            storage, other = versions(crd)
            self.api.add({**crd, "status": {"storedVersions": [other, storage]}})
            for obj in self._objects(crd, storage):
                key = NamespacedName(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
                self.api.add(obj)
                self.api.stored[(obj["kind"], key)] = other
        self.number = len(self.api.stored)

    async def __aenter__(self) -> Self:
        return self

    def begin(self, **extra: object) -> None:
        """Start a manager that reconciles nothing."""
        self.start(watch_filter="nothing", extra=extra)

    def stored_versions(self) -> set[tuple[str, ...]]:
        """Return the stored versions that the CRDs report."""
        return self.api.stored_versions()

    def done(self) -> bool:
        """Report whether all CRDs report the storage version only."""
        return self.stored_versions() == {(versions(crd)[0],) for crd in self.crds}

    def serve_no_more(self, crd: JSON) -> None:
        """Serve the storage version only, as a later release does."""
        kept = [{**each, "served": each["storage"]} for each in crd["spec"]["versions"]]
        name = NamespacedName("", crd["metadata"]["name"])
        self.api.change(CRD, name, {"spec": {"versions": kept}})

    def owned(self, crd: JSON) -> set[str]:
        """Return the versions in which fields of a kind's objects are owned."""
        return {
            entry["apiVersion"].rpartition("/")[2]
            for obj in self.api.all(crd["spec"]["names"]["kind"])
            for entry in obj["metadata"].get("managedFields", [])
        }

    def contents(self) -> list[Any]:
        """Return all objects except the CRDs."""
        return [obj for obj in self.api.everything() if obj["kind"] != CRD]

    def _objects(self, crd: JSON, version: str) -> Iterator[JSON]:
        kind = crd["spec"]["names"]["kind"]
        place = {"namespace": "default"} if crd["spec"]["scope"] == "Namespaced" else {}
        for number in range(OBJECTS):
            yield {
                "apiVersion": f"{crd['spec']['group']}/{version}",
                "kind": kind,
                "metadata": {"name": f"{kind.lower()}-{number}", **place},
                "spec": self.manifests.sample_spec(kind),
            }
