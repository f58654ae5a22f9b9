"""The versions of a CRD, as far as the migration of stored objects needs them (CRD-16)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.kube.client import JSON, ResourceType

CRD: Final = ResourceType(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A CRD as it was read."""

    name: str
    resource_version: str
    state: tuple[str, int]
    """Uid and generation, which change whenever the versions do."""
    storage: str
    """The storage version."""
    stored: tuple[str, ...]
    """The versions in which objects may still be stored."""
    served: frozenset[str]
    """API versions that are served, with their group."""
    resource: ResourceType
    """The kind in a served version: the storage version, if that is served."""
    has_status: bool
    """Whether the status is a subresource in that version."""

    @property
    def is_migrated(self) -> bool:
        """Whether no object is stored in another version."""
        return self.stored == (self.storage,)

    @property
    def storage_api_version(self) -> str:
        """The storage version with its group."""
        return f"{self.resource.group}/{self.storage}"


def read_definition(crd: JSON) -> Definition | None:
    """Read a CRD; return None if it serves no version, so that objects cannot be read."""
    versions = metadata.items(crd, "spec", "versions")
    storage = next((metadata.text(each, "name") for each in versions if each.get("storage")), "")
    served = [each for each in versions if each.get("served")]
    if not served or not storage:
        return None
    version = min(served, key=lambda each: not each.get("storage"))
    group = metadata.text(crd, "spec", "group")
    return Definition(
        name=metadata.name(crd),
        resource_version=metadata.text(crd, "metadata", "resourceVersion"),
        state=(metadata.uid(crd), metadata.generation(crd)),
        storage=storage,
        stored=tuple(metadata.items(crd, "status", "storedVersions")),
        served=frozenset(f"{group}/{metadata.text(each, 'name')}" for each in served),
        resource=_resource(crd, version),
        has_status=metadata.lookup(version, "subresources", "status") is not None,
    )


def _resource(crd: JSON, version: Mapping[str, Any]) -> ResourceType:
    return ResourceType(
        metadata.text(crd, "spec", "group"),
        metadata.text(version, "name"),
        metadata.text(crd, "spec", "names", "kind"),
        metadata.text(crd, "spec", "names", "plural"),
        namespaced=metadata.text(crd, "spec", "scope") == "Namespaced",
    )
