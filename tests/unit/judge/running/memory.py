"""An API server in memory, for checks of running providers without etcd, core and Go.

All reactions to a write happen before the write returns, so nothing waits, and the history of a
session is complete at any time.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from capsmith.clusters.processes.kube import (
    APPLY_PATCH,
    JSON,
    ApiError,
    KubeClient,
    ServedKind,
    StaleError,
)
from capsmith.judge.running.base_session import BaseSession
from capsmith.judge.running.history import History, WatchedKind
from capsmith.judge.running.model import Timing

AT_ONCE = Timing(patience=0.0, quiet=0.0, cleanup=0.0)
NAMESPACE = "test"
_CLUSTER_SCOPED = ("Namespace", "Node", "CustomResourceDefinition")
_ROUNDS = 100

Key = tuple[str, str, str]
Listener = Callable[[str, JSON, bool], None]


class Memory:
    """Objects by kind, namespace and name, and the controllers that react to changes."""

    def __init__(self) -> None:
        self.objects: dict[Key, JSON] = {}
        self.controllers: list[Callable[[], None]] = []
        """Each is called until nothing changes."""
        self.listeners: list[Listener] = []
        self.admit: Callable[[JSON | None, JSON, bool], str] = lambda old, new, dry_run: ""
        """Returns why a write is refused; empty if it is not."""
        self._version = 0
        self._is_reacting = False

    def find(self, kind: str, name: str) -> JSON | None:
        """Return a copy of an object in the namespace of the run."""
        found = self.objects.get((kind, NAMESPACE, name))
        return copy.deepcopy(found)

    def all(self, kind: str) -> list[JSON]:
        """Return copies of the objects of a kind."""
        return [copy.deepcopy(obj) for key, obj in self.objects.items() if key[0] == kind]

    def write(self, obj: JSON) -> JSON:
        """Store an object, or remove it once it is deleted and has no finalizer."""
        key = _key(obj)
        old = self.objects.get(key)
        metadata = obj.setdefault("metadata", {})
        if old is not None and _content(old) == _content(obj):
            return copy.deepcopy(old)
        self._version += 1
        metadata.setdefault("uid", f"uid-{self._version}")
        metadata["resourceVersion"] = str(self._version)
        changed = old is None or old.get("spec") != obj.get("spec")
        metadata["generation"] = metadata.get("generation", 0) + changed
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self.objects.pop(key, None)
            self._tell(obj, is_deleted=True)
        else:
            self.objects[key] = copy.deepcopy(obj)
            self._tell(obj, is_deleted=False)
        self.react()
        return copy.deepcopy(self.objects.get(key, obj))

    def delete(self, key: Key) -> None:
        """Delete an object; with finalizers it is only marked."""
        obj = copy.deepcopy(self.objects[key])
        obj["metadata"].setdefault("deletionTimestamp", "2030-01-01T00:00:00Z")
        self.write(obj)

    def react(self) -> None:
        """Let the controllers act until nothing changes."""
        if self._is_reacting:
            return
        self._is_reacting = True
        try:
            for _ in range(_ROUNDS):
                before = self._version
                for controller in self.controllers:
                    controller()
                if before == self._version:
                    return
            raise AssertionError("the controllers never end")
        finally:
            self._is_reacting = False

    def _tell(self, obj: JSON, *, is_deleted: bool) -> None:
        for listener in self.listeners:
            listener(obj["kind"], copy.deepcopy(obj), is_deleted)


class MemoryClient(KubeClient):
    """The real client, whose requests go to objects in memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._kinds = {}
        self._by_plural: dict[tuple[str, str], str] = {}

    def resolve(self, api_version: str, kind: str) -> ServedKind:
        """Return the place of any kind: nothing has to be installed."""
        plural = f"{kind.lower()}s"
        self._by_plural[api_version, plural] = kind
        return ServedKind(api_version, plural, kind not in _CLUSTER_SCOPED)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: JSON | None = None,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> JSON:
        """Process a request as an API server does, as far as the checks need it."""
        kind, namespace, name = self._place(path)
        key = (kind, namespace, name)
        memory, dry_run = self.memory, "dryRun" in (query or {})
        old = copy.deepcopy(memory.objects.get(key))
        if not name and method == "GET":
            found = [obj for obj in memory.all(kind) if _namespace(obj) == namespace]
            label, _, value = (query or {}).get("labelSelector", "").partition("=")
            return {
                "items": [
                    obj
                    for obj in found
                    if not label or (obj["metadata"].get("labels") or {}).get(label) == value
                ],
                "metadata": {"resourceVersion": "1"},
            }
        if method == "POST":
            assert body is not None
            if _key(body) in memory.objects:
                raise StaleError(method, path, 409, "it exists")
            return self._admitted(None, copy.deepcopy(body), path, dry_run)
        if old is None and content_type != APPLY_PATCH:
            raise StaleError(method, path, 404, "not found")
        if method == "DELETE":
            memory.delete(key)
            return {}
        if method == "PATCH":
            assert body is not None
            new = _merged(copy.deepcopy(old or {}), body)
            return self._admitted(old, new, path, dry_run)
        assert old is not None
        return old

    def _admitted(self, old: JSON | None, new: JSON, path: str, dry_run: bool) -> JSON:
        refusal = self.memory.admit(old, new, dry_run)
        if refusal:
            raise ApiError("PATCH", path, 422, json.dumps({"message": refusal}))
        return new if dry_run else self.memory.write(new)

    def _place(self, path: str) -> Key:
        parts = path.strip("/").split("/")
        count = 2 if parts[0] == "api" else 3
        api_version, rest = "/".join(parts[1:count]), parts[count:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        name = rest[1] if len(rest) > 1 else ""
        return self._by_plural[api_version, rest[0]], namespace, name


class DirectHistory(History):
    """A history that gets each state from the memory, without watches."""

    def __init__(self, memory: Memory, kinds: list[WatchedKind]) -> None:
        super().__init__(MemoryClient(memory), NAMESPACE, ())
        self._memory = memory
        self._watched = {each.kind: each for each in kinds}

    def start(self) -> None:
        """Record what is there, and what follows."""
        for obj in list(self._memory.objects.values()):
            self.record(obj["kind"], copy.deepcopy(obj), False)
        self._memory.listeners.append(self.record)

    def record(self, kind: str, obj: JSON, is_deleted: bool) -> None:
        """Record a state of an object."""
        if kind in self._watched:
            self._add(self._watched[kind], obj, is_deleted=is_deleted)

    def forget(self, kind: str, name: str) -> None:
        """Drop all recorded states of an object, as if its watch had not begun."""
        del self._states[kind, name]


class MemoryManager:
    """A manager that can crash; the test decides which state it loses."""

    def __init__(self, restarted: Callable[[], None] = lambda: None) -> None:
        self.kills = 0
        self._restarted = restarted

    def kill(self) -> None:
        """Count the crash."""
        self.kills += 1

    def start(self) -> None:
        """Restart the manager."""
        self._restarted()


def begin(session: BaseSession, memory: Memory) -> None:
    """Start a session whose client is one of the memory."""
    session.history = DirectHistory(memory, session.kinds())
    session.create_namespace()
    session.start()


def is_paused(memory: Memory, obj: JSON, cluster: JSON | None) -> bool:
    """Return whether an object is paused by itself or by its Cluster."""
    annotations = obj["metadata"].get("annotations") or {}
    spec = (cluster or {}).get("spec") or {}
    return "cluster.x-k8s.io/paused" in annotations or bool(spec.get("paused"))


def condition(kind: str, status: str, reason: str = "Reported", message: str = "") -> JSON:
    """Return a condition with all that contract v1beta2 demands."""
    time = "2030-01-01T00:00:00Z"
    names = {"type": kind, "status": status, "reason": reason, "message": message}
    return {**names, "lastTransitionTime": time}


def with_condition(obj: JSON, new: JSON) -> list[JSON]:
    """Return the conditions of an object with one of them replaced, or added at the end."""
    found = list((obj.get("status") or {}).get("conditions") or [])
    types = [each["type"] for each in found]
    if new["type"] not in types:
        return [*found, new]
    return [new if each["type"] == new["type"] else each for each in found]


def owners(obj: JSON, kind: str) -> Iterator[JSON]:
    """Yield the owner references of a kind."""
    for each in obj["metadata"].get("ownerReferences") or []:
        if each["kind"] == kind:
            yield each


def owned(owner: JSON, *, controller: bool = False) -> JSON:
    """Return a reference to an owner."""
    names = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    metadata = owner["metadata"]
    return {**names, "name": metadata["name"], "uid": metadata["uid"], "controller": controller}


def _merged(base: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def _content(obj: JSON) -> JSON:
    metadata = {
        k: v for k, v in obj["metadata"].items() if k not in ("resourceVersion", "generation")
    }
    return {**obj, "metadata": metadata}


def _namespace(obj: JSON) -> str:
    return "" if obj["kind"] in _CLUSTER_SCOPED else str(obj["metadata"].get("namespace", ""))


def _key(obj: JSON) -> Key:
    return str(obj["kind"]), _namespace(obj), str(obj["metadata"]["name"])
