"""The interface to the Kubernetes API that the rest of the runtime uses.

Objects are plain dictionaries.  Objects from a cache are shared: copy them before you change
anything.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote

from capsmith_runtime.errors import create_api_error

JSON = dict[str, Any]

_NO_SEGMENT: Final = re.compile(r"\.\.?|.*[/%].*", re.DOTALL)
"""Pattern of the names that the API server rejects for all kinds."""


class NamespacedName(NamedTuple):
    """Namespace and name of an object; the namespace is empty for cluster-scoped objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A kind in the REST API; `group` is empty for the core group."""

    group: str
    version: str
    """API version of the kind, such as ``v1``."""
    kind: str
    plural: str
    """Name of the kind in URLs, such as ``configmaps``."""
    namespaced: bool = True
    """Whether the kind is namespaced rather than cluster-scoped."""
    required_status: tuple[tuple[str, str], ...] = ()
    """Paths and JSON types of the fields that the API server requires in a status.

    An object comes before the fields that it requires, such as ``ref`` before ``ref.name``.
    """
    needs_messages: bool = False
    """Whether the API server rejects conditions with an empty message.

    In that case, the reason is also written as the message.
    """
    required_in_conditions: tuple[str, ...] = ()
    """Which of the fields ``reason`` and ``message`` the API server requires in conditions.

    A missing reason is written as the condition's type, and a missing message as an empty string.
    """
    absent_fields: tuple[str, ...] = ()
    """Paths of contract fields that the CRD lacks, such as ``status.conditions.severity``.

    These fields are never written.  A path that leads through a list applies to each of its items.
    """

    @property
    def api_version(self) -> str:
        """Return the `apiVersion` of objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, or of the named object or subresource."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        rest = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{scope}/{self.plural}{rest}"

    def object_path(self, key: NamespacedName, subresource: str = "") -> str:
        """Return the URL path of an object, or of its subresource.

        Raises NotFoundError for a name that no object can have. Users may write any text into owner
        references and annotations: as part of a URL it could lead to a list of all objects, which
        takes all memory, or to a watch, which never ends.
        """
        namespace, name = (quote(each, safe=":") for each in key)
        if not name or any(_NO_SEGMENT.fullmatch(each) for each in key):
            message = f"no {self.kind} can have the name {str(key)!r}"
            raise create_api_error(404, "NotFound", message)
        return self.path(namespace, name, subresource)


@dataclass(frozen=True, slots=True)
class Selection:
    """Objects of a kind to list or watch; an empty string does not filter."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    """Whether to request only metadata, because the rest is large or must not be kept in memory."""
    managed_fields: bool = True
    """Whether the objects have ``metadata.managedFields``, which take longest to decode."""


EVERYTHING = Selection()

Selections = tuple[Selection, ...]
"""Selections of one kind, each listed and watched separately, such as one for each namespace."""


class Page(NamedTuple):
    """One page of a list; `token` requests the next page and is empty on the last page."""

    items: list[JSON]
    resource_version: str
    token: str


class WatchEvent(NamedTuple):
    """An event from a watch; `type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: JSON


class KubeClient(Protocol):
    """A client for the Kubernetes API.

    Methods raise `ApiError` on failure; all requests have a time limit.
    """

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return one page of a list; if `limit` is 0, the page contains the whole list.

        `token` comes from the previous page, and is empty for the first page.
        """

    def watch(
        self, resource: ResourceType, selection: Selection, *, resource_version: str
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield events and bookmarks until the server ends the watch.

        Raises `ApiError` if the connection breaks or stays silent for too long.
        """

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        """Return an object from the server, not from a cache.

        Raises `NotFoundError` if the object does not exist.
        """

    async def create(self, resource: ResourceType, obj: JSON) -> JSON:
        """Create `obj` in the namespace that its metadata names, and return the created object.

        Raises `AlreadyExistsError` if an object with this name exists.
        """

    async def update(self, resource: ResourceType, obj: JSON) -> JSON:
        """Replace the object that `obj` names, except for its status, and return the result.

        Raises `ConflictError` if `obj` has a `resourceVersion` that is outdated.
        """

    async def patch(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        """Apply the JSON merge patch `body`, and return the resulting object.

        Raises `ConflictError` if `resource_version` is set and outdated.
        """

    async def patch_status(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        """Apply a JSON merge patch to the status subresource, and return the resulting object.

        `body` has the single key `status`. Raises `ConflictError` if `resource_version` is set and
        outdated.
        """

    async def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> JSON:
        """Apply `obj` with server-side apply and this process's field manager; return the result.

        Raises `ConflictError` if another manager owns one of the fields, unless `force` is set.
        """

    async def delete(self, resource: ResourceType, key: NamespacedName, *, uid: str = "") -> None:
        """Request the deletion of an object, without waiting until it is gone.

        Raises `ConflictError` if `uid` is set and the object has a different UID.
        """

    async def served_versions(self, group: str) -> tuple[str, ...]:
        """Return the served versions of an API group, preferred first, or an empty tuple."""

    async def close(self) -> None:
        """Close all connections to the API server."""


def key_of(obj: JSON) -> NamespacedName:
    """Return an object's namespace and name; the namespace is empty for cluster-scoped objects."""
    metadata = obj["metadata"]
    return NamespacedName(metadata.get("namespace", ""), metadata["name"])


def version_of(obj: JSON) -> int:
    """Return an object's resource version as a number, or 0 if it has none.

    A higher number is a later state.  Resource versions are comparable only within a kind.
    """
    version = obj["metadata"].get("resourceVersion", "")
    return int(version) if version.isdigit() else 0


def is_gone(obj: JSON) -> bool:
    """Return whether this is the object's last state: being deleted, with no finalizers left."""
    metadata = obj["metadata"]
    return bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")
