"""An in-memory API server with the interface of the provider's client."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import (
    JSON,
    NamespacedName,
    Page,
    ResourceType,
    Selection,
    WatchEvent,
)
from capsmith_runtime.testing.manifests import Manifests
from capsmith_runtime.testing.schema_check import complaints, with_defaults

T = TypeVar("T")


def copy_object(value: T) -> T:
    """Return a deep copy of JSON data; several times faster than copy.deepcopy."""
    result: Any = value
    if isinstance(value, dict):
        result = {key: copy_object(item) for key, item in value.items()}
    elif isinstance(value, list):
        result = [copy_object(item) for item in value]
    return cast(T, result)


def merged(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch to a value, and return the result.

    As in Kubernetes, whose library removes more than RFC 7386 says, fields that are null in items
    of a list are removed, unless the list replaces an object.
    """
    if not isinstance(patch, dict):
        return patch if isinstance(value, dict) else _without_nulls(patch)
    result = dict(value) if isinstance(value, dict) else {}
    for key, item in patch.items():
        if item is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), item)
    return result


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def removal(applied: JSON, obj: JSON) -> JSON:
    """Return the merge patch that removes previously applied fields that ``obj`` lacks."""
    patch: JSON = {}
    for name, value in applied.items():
        if name not in obj:
            patch[name] = None
        elif isinstance(value, dict) and isinstance(obj[name], dict):
            patch[name] = removal(value, obj[name])
    return patch


TRAVEL_SECONDS: Final = 0.001
"""Seconds that a request takes to arrive, and that its response takes to return.

A test can therefore check the state between two requests, and watches report a write before its
response arrives.
"""

Fault = Callable[[str, str, JSON], None]
"""Function that receives the verb, kind and body of each write, and may raise an error instead."""


class WriteLimit:
    """A fault that accepts a number of writes and rejects all later ones.

    The effect is the same as that of a crash between two requests: no later write happens.
    """

    def __init__(self, writes: int) -> None:
        self._left = writes
        self.is_exceeded = False

    def __call__(self, verb: str, kind: str, body: JSON) -> None:
        """Count a write, and raise ApiError if it exceeds the limit."""
        self._left -= 1
        if self._left < 0:
            self.is_exceeded = True
            raise create_api_error(503, "ServiceUnavailable", "crash")


_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "foregroundDeletion", "orphan"})


def _check_finalizers(obj: JSON) -> None:
    """Reject the finalizers that the API server rejects on built-in kinds only."""
    if "." in obj.get("apiVersion", ".").partition("/")[0]:
        return
    for name in obj["metadata"].get("finalizers") or ():
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            raise create_api_error(422, "Invalid", f"{obj['kind']}: {name} is not fully qualified")


class FakeApi:
    """An in-memory implementation of the client; its additional methods are for tests."""

    def __init__(self, core_version: str, manifests: Manifests) -> None:
        self.core_version = core_version
        self._manifests = manifests
        self._own_kinds = {crd["spec"]["names"]["kind"] for crd in manifests.crds()}
        self.requests: list[tuple[str, str, NamespacedName]] = []
        """Verb, kind and key of each of the provider's requests, except watches and lists."""
        self.lists: Counter[str] = Counter()
        """Number of lists for each kind."""
        self.fault: Fault | None = None
        self.admission: Callable[[JSON], JSON] | None = None
        """Function that changes objects when the provider creates them, like webhooks and policies.
        """
        self.field_manager = "capsmith"
        """Field manager of the provider in the ``managedFields`` of applied objects."""
        self._objects: dict[tuple[str, NamespacedName], JSON] = {}
        self._applied: dict[tuple[str, NamespacedName], JSON] = {}
        self.lags: dict[str, float] = {}
        """Seconds by which watches of a kind are late, as those of an API server that lags."""
        self._log: list[tuple[int, str, WatchEvent]] = []
        self._logged_at: list[float] = []
        self._news = asyncio.Event()
        self._versions, self._uids = itertools.count(1), itertools.count(1)
        self._version = 0

    # Methods of the client port

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return all selected objects on one page."""
        async with _travel():
            self.lists[resource.kind] += 1
            found = [obj for obj in self.all(resource.kind) if is_selected(obj, selection)]
            return Page([_sent(obj, selection) for obj in found], str(self._version), "")

    async def watch(
        self, resource: ResourceType, selection: Selection, *, resource_version: str
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield all events after ``resource_version``; the watch never ends."""
        # From the start of the log, because the requested version may be older than the watch.
        position = 0
        while True:
            while position < len(self._log):
                version, kind, event = self._log[position]
                position += 1
                is_newer = kind == resource.kind and version > int(resource_version)
                if is_newer and is_selected(event.object, selection):
                    if lag := self.lags.get(kind, 0.0):
                        await asyncio.sleep(self._logged_at[position - 1] + lag - _loop_time())
                    # Copied, because the provider may keep the object while later events share the
                    # original.
                    yield WatchEvent(event.type, _sent(copy_object(event.object), selection))
            await self._news.wait()

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        """Return an object.

        Raises NotFoundError if it does not exist.
        """
        async with _travel():
            self.requests.append(("get", resource.kind, key))
            return self._found(resource.kind, key)

    async def create(self, resource: ResourceType, obj: JSON) -> JSON:
        """Create an object with the changes that ``admission`` makes, and return it.

        Raises AlreadyExistsError if the name is in use.
        """
        key = NamespacedName(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        async with _travel():
            self._count("create", resource.kind, key, obj)
            return self.add(obj if self.admission is None else self.admission(copy_object(obj)))

    async def update(self, resource: ResourceType, obj: JSON) -> JSON:
        """Replace an object except for its status, and return it.

        Raises NotFoundError if the object does not exist, and ConflictError if ``obj`` has an
        outdated resource version.
        """
        metadata = obj["metadata"]
        key = NamespacedName(metadata.get("namespace", ""), metadata["name"])
        async with _travel():
            self._count("update", resource.kind, key, obj)
            old = self._checked(resource.kind, key, metadata.get("resourceVersion", ""))
            kept = {"status": old["status"]} if "status" in old else {}
            return self._store(old, {**copy_object(obj), **kept})

    async def patch(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        """Apply a merge patch to everything except the status, and return the object."""
        async with _travel():
            return self._patch(resource.kind, key, body, resource_version)

    async def patch_status(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        """Apply a merge patch to the status, and return the object."""
        async with _travel():
            return self._patch_status(resource.kind, key, body, resource_version)

    async def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> JSON:
        """Create an object, or change it and remove fields that are no longer applied; return it.

        All fields belong to the provider, so the only conflict is a UID in ``obj`` that differs
        from the existing object's.  It raises ConflictError.
        """
        key = NamespacedName(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        async with _travel():
            self._count("apply", resource.kind, key, obj)
            applied = self._applied.get((resource.kind, key), {})
            old, uid = self.find(resource.kind, key), obj["metadata"].get("uid")
            # A UID in the object to apply is a precondition, as for the API server.
            if uid is not None and uid != (old or {"metadata": {}})["metadata"].get("uid"):
                raise create_api_error(409, "Conflict", f"{resource.kind} {key} is another one")
            obj = merged(obj, {"metadata": {"uid": None}})
            self._applied[(resource.kind, key)] = copy_object(obj)
            managers = [{"manager": self.field_manager, "operation": "Apply"}]
            sent = merged(obj, {"metadata": {"managedFields": managers}})
            if old is None:
                return self.add(sent)
            return self._store(old, merged(merged(old, removal(applied, obj)), sent))

    async def delete(self, resource: ResourceType, key: NamespacedName, *, uid: str = "") -> None:
        """Delete an object, or mark it as being deleted if it has finalizers.

        Raises NotFoundError if it does not exist, and ConflictError if ``uid`` is set and differs.
        """
        async with _travel():
            self._count("delete", resource.kind, key, {})
            if uid and self._found(resource.kind, key)["metadata"]["uid"] != uid:
                raise create_api_error(409, "Conflict", f"{resource.kind} {key} is another one")
            self.remove(resource.kind, key)

    async def served_versions(self, group: str) -> tuple[str, ...]:
        """Return the served versions of core's groups."""
        return (self.core_version,)

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    # Methods for tests

    @property
    def version(self) -> int:
        """Return the resource version of the latest change to any object."""
        return self._version

    async def wait_for_change(self) -> None:
        """Wait until any object is created, changed or deleted, or ``announce`` is called."""
        await self._news.wait()

    def announce(self) -> None:
        """Wake everything that waits for a change, even though no object has changed."""
        self._news.set()
        self._news = asyncio.Event()

    def all(self, kind: str) -> list[JSON]:
        """Return all objects of a kind."""
        return [copy_object(obj) for (of, _), obj in self._objects.items() if of == kind]

    def everything(self) -> list[JSON]:
        """Return the objects of all kinds."""
        return [copy_object(obj) for obj in self._objects.values()]

    def all_states(self) -> Iterator[JSON]:
        """Yield each state of each object since the start, in the order of writes; not copied."""
        for _, _, event in self._log:
            yield event.object

    def find(self, kind: str, key: NamespacedName) -> JSON | None:
        """Return an object, or None if it does not exist."""
        obj = self._objects.get((kind, key))
        return None if obj is None else copy_object(obj)

    def add(self, obj: JSON) -> JSON:
        """Create an object as another client, and return it; the object may have a status.

        Raises AlreadyExistsError if the name is in use.
        """
        new = copy_object(obj)
        metadata = new["metadata"]
        key = NamespacedName(metadata.get("namespace", ""), metadata["name"])
        if (new["kind"], key) in self._objects:
            raise create_api_error(409, "AlreadyExists", str(key))
        metadata |= {"uid": f"uid-{next(self._uids)}", "generation": 1, "creationTimestamp": _now()}
        return self._store({}, new)

    def change(self, kind: str, key: NamespacedName, body: JSON) -> JSON:
        """Apply a merge patch as another client, and return the object.

        The patch may also change the status.  Raises NotFoundError if the object does not exist.
        """
        old = self._found(kind, key)
        return self._store(old, merged(old, body))

    def remove(self, kind: str, key: NamespacedName) -> None:
        """Delete an object as another client; finalizers delay the deletion.

        Raises NotFoundError if the object does not exist.
        """
        old = self._found(kind, key)
        if old["metadata"].get("finalizers"):
            # A fixed time, so that failures do not depend on when the tests run.
            stamp = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
            self._store(old, merged(old, {"metadata": stamp}))
        else:
            self._drop(old)

    def written(self, kind: str, key: NamespacedName) -> list[str]:
        """Return the verbs of the provider's writes to an object, oldest first."""
        return [verb for verb, of, on in self.requests if (of, on) == (kind, key) and verb != "get"]

    def _patch(self, kind: str, key: NamespacedName, body: JSON, version: str) -> JSON:
        self._count("patch", kind, key, body)
        old = self._checked(
            kind, key, version or body.get("metadata", {}).get("resourceVersion", "")
        )
        # A real API server would silently ignore the status in such a patch.
        assert "status" not in body, "the status is a separate subresource"
        return self._store(old, merged(old, body))

    def _patch_status(self, kind: str, key: NamespacedName, body: JSON, version: str) -> JSON:
        self._count("patch_status", kind, key, body)
        old = self._checked(kind, key, version)
        return self._store(old, merged(old, {"status": body.get("status", {})} if body else {}))

    def _count(self, verb: str, kind: str, key: NamespacedName, body: JSON) -> None:
        self.requests.append((verb, kind, key))
        if self.fault is not None:
            self.fault(verb, kind, body)

    def _found(self, kind: str, key: NamespacedName) -> JSON:
        obj = self.find(kind, key)
        if obj is None:
            raise create_api_error(404, "NotFound", f"{kind} {key}")
        return obj

    def _checked(self, kind: str, key: NamespacedName, version: str) -> JSON:
        old = self._found(kind, key)
        if version and version != old["metadata"]["resourceVersion"]:
            raise create_api_error(409, "Conflict", f"{kind} {key} is at another version")
        return old

    def _store(self, old: JSON, new: JSON) -> JSON:
        # Like on the API server, a write that changes nothing has no new version and no event.
        if old == new:
            return new
        _check_finalizers(new)
        new = self._with_schema(new)
        metadata = new["metadata"]
        # Only the spec counts for the generation, as with a CRD that has the status subresource.
        if old and old.get("spec") != new.get("spec"):
            metadata["generation"] += 1
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._drop(new)
            return copy_object(new)
        key = NamespacedName(metadata.get("namespace", ""), metadata["name"])
        self._objects[(new["kind"], key)] = new
        self._tell("MODIFIED" if old else "ADDED", new)
        return copy_object(new)

    def _with_schema(self, obj: JSON) -> JSON:
        if obj["kind"] not in self._own_kinds:
            return obj
        rules = self._manifests.schema(obj["kind"], obj["apiVersion"].rpartition("/")[2])[
            "properties"
        ]
        full = dict(obj)
        found: list[str] = []
        for part in ("spec", "status"):
            if part in full:
                full[part] = with_defaults(rules[part], full[part])
                found += complaints(rules[part], full[part], part)
        if found:
            raise create_api_error(422, "Invalid", f"{obj['kind']}: {'; '.join(found)}")
        return full

    def _drop(self, obj: JSON) -> None:
        metadata = obj["metadata"]
        del self._objects[
            (obj["kind"], NamespacedName(metadata.get("namespace", ""), metadata["name"]))
        ]
        self._tell("DELETED", obj)

    def _tell(self, event: str, obj: JSON) -> None:
        self._version = next(self._versions)
        obj["metadata"]["resourceVersion"] = str(self._version)
        self._log.append((self._version, obj["kind"], WatchEvent(event, copy_object(obj))))
        self._logged_at.append(_loop_time())
        self.announce()


@asynccontextmanager
async def _travel() -> AsyncIterator[None]:
    await asyncio.sleep(TRAVEL_SECONDS)
    yield
    await asyncio.sleep(TRAVEL_SECONDS)


def _loop_time() -> float:
    """Return the time of the event loop, or 0 before one runs."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sent(obj: JSON, selection: Selection) -> JSON:
    kept = ("apiVersion", "kind", "metadata") if selection.metadata_only else obj
    sent = {name: obj[name] for name in kept}
    if not selection.managed_fields:
        metadata = obj["metadata"].items()
        sent["metadata"] = {name: value for name, value in metadata if name != "managedFields"}
    return sent


def is_selected(obj: JSON, selection: Selection) -> bool:
    """Return whether a list or watch with this selection contains an object."""
    metadata = obj["metadata"]
    if selection.namespace and metadata.get("namespace") != selection.namespace:
        return False
    excluded = (each.partition("!=") for each in selection.fields.split(",") if "!=" in each)
    if any(metadata.get("namespace") == name for _, _, name in excluded):
        return False
    labels = metadata.get("labels") or {}
    required = (each.partition("=") for each in selection.labels.split(",") if each)
    return all(labels.get(key) == value if sign else key in labels for key, sign, value in required)
