"""An API server whose test decides which requests arrive, and when responses and events follow.

Each request waits twice: until the test lets the server do it, and until the test lets the answer
through.  Between the two, and after its manager is dead, it is in flight.  Watches lag behind as
long as the test likes.  Time passes only when no task has anything else to do.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from capsmith_runtime.errors import ApiError, create_api_error
from capsmith_runtime.kube.client import (
    JSON,
    NamespacedName,
    Page,
    ResourceType,
    Selection,
    WatchEvent,
    key_of,
)

T = TypeVar("T")


@dataclass(eq=False)
class Request:
    """One request of a client."""

    client: Client
    words: str
    do: Callable[[], Any]
    answer: asyncio.Future[Any]
    done: bool = False
    result: Any = None

    def arrive(self) -> None:
        """Let the server process the request."""
        self.done = True
        try:
            self.result = self.do()
        except ApiError as error:
            self.result = error

    def get_through(self) -> None:
        """Let the client receive the response, if the client is still alive."""
        if self.answer.done():
            return
        if isinstance(self.result, Exception):
            self.answer.set_exception(self.result)
        else:
            self.answer.set_result(self.result)

    def get_lost(self) -> None:
        """Break the connection.

        The server has processed the request, will do so later, or never does.
        """
        if not self.answer.done():
            self.answer.set_exception(create_api_error(0, "Lost", self.words))


@dataclass(eq=False)
class Server:
    """The objects, and the history of their changes."""

    objects: dict[tuple[str, NamespacedName], JSON] = field(default_factory=dict)
    log: list[tuple[int, str, WatchEvent]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    version: int = 0
    _uids: Any = field(default_factory=lambda: itertools.count(1))

    def create(self, obj: JSON) -> JSON:
        new = copy.deepcopy(obj)
        if (new["kind"], key_of(new)) in self.objects:
            raise create_api_error(409, "AlreadyExists", str(key_of(new)))
        new["metadata"] |= {"uid": f"uid-{next(self._uids)}", "generation": 1}
        return self._store("ADDED", new)

    def get(self, kind: str, key: NamespacedName) -> JSON:
        if (kind, key) not in self.objects:
            raise create_api_error(404, "NotFound", f"{kind} {key}")
        return copy.deepcopy(self.objects[kind, key])

    def patch(self, kind: str, key: NamespacedName, body: JSON, version: str = "") -> JSON:
        old = self.get(kind, key)
        if version and version != old["metadata"]["resourceVersion"]:
            raise create_api_error(409, "Conflict", f"{kind} {key}")
        new = _merged(old, body)
        return old if new == old else self._store("MODIFIED", new)

    def update(self, obj: JSON) -> JSON:
        old = self.get(obj["kind"], key_of(obj))
        if obj["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]:
            raise create_api_error(409, "Conflict", f"{obj['kind']} {key_of(obj)}")
        return old if obj == old else self._store("MODIFIED", copy.deepcopy(obj))

    def delete(self, kind: str, key: NamespacedName, uid: str = "") -> None:
        old = self.get(kind, key)
        if uid and uid != old["metadata"]["uid"]:
            raise create_api_error(409, "Conflict", f"{kind} {key}")
        old["metadata"].setdefault("deletionTimestamp", "2030-01-01T00:00:00Z")
        self._store("MODIFIED", old)

    def all(self, kind: str) -> list[JSON]:
        return [copy.deepcopy(obj) for (of, _), obj in self.objects.items() if of == kind]

    def _store(self, event: str, new: JSON) -> JSON:
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        place = new["kind"], key_of(new)
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            self.objects.pop(place, None)
            event = "DELETED"
        else:
            self.objects[place] = new
        self.log.append((self.version, new["kind"], WatchEvent(event, copy.deepcopy(new))))
        return copy.deepcopy(new)


class Client:
    """The client port of one manager."""

    def __init__(self, server: Server) -> None:
        self.heard: dict[str, int] = {}
        """Kind -> how much of the log a watch may tell."""
        self._server = server
        self._news = asyncio.Event()

    def hears(self, kind: str, count: int) -> None:
        """Let a watch deliver this many more events."""
        self.heard[kind] = min(self.heard.get(kind, 0) + count, len(self._server.log))
        self._news.set()
        self._news = asyncio.Event()

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        def read() -> Page:
            found = [obj for obj in self._server.all(resource.kind) if _is_in(obj, selection)]
            return Page(found, str(self._server.version), "")

        return await self._ask(f"list {resource.kind}", read)

    async def watch(
        self, resource: ResourceType, selection: Selection, *, resource_version: str
    ) -> AsyncGenerator[WatchEvent, None]:
        position = 0
        while True:
            while position < self.heard.get(resource.kind, 0):
                version, kind, event = self._server.log[position]
                position += 1
                wanted = kind == resource.kind and _is_in(event.object, selection)
                if wanted and version > int(resource_version):
                    yield copy.deepcopy(event)
            await self._news.wait()

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        found = await self._ask(
            f"get {resource.kind} {key}", lambda: self._server.get(resource.kind, key)
        )
        return dict(found)

    async def create(self, resource: ResourceType, obj: JSON) -> JSON:
        made = await self._ask(f"create {resource.kind}", lambda: self._server.create(obj))
        return dict(made)

    async def update(self, resource: ResourceType, obj: JSON) -> JSON:
        changed = await self._ask(f"update {resource.kind}", lambda: self._server.update(obj))
        return dict(changed)

    async def patch(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        return await self._patch(resource, key, body, resource_version)

    async def patch_status(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        return await self._patch(resource, key, body, resource_version)

    async def delete(self, resource: ResourceType, key: NamespacedName, *, uid: str = "") -> None:
        words = f"delete {resource.kind} {key}"
        await self._ask(words, lambda: self._server.delete(resource.kind, key, uid))

    async def _patch(
        self, resource: ResourceType, key: NamespacedName, body: JSON, version: str
    ) -> JSON:
        changed = await self._ask(
            f"patch {resource.kind} {key} {body}",
            lambda: self._server.patch(resource.kind, key, body, version),
        )
        return dict(changed)

    async def _ask(self, words: str, do: Callable[[], T]) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._server.requests.append(Request(self, words, do, answer))
        return await answer


def _is_in(obj: JSON, selection: Selection) -> bool:
    return selection.namespace in ("", obj["metadata"].get("namespace"))


def _merged(value: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(value) if isinstance(value, dict) else {}
    for key, item in patch.items():
        if item is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), item)
    return result
