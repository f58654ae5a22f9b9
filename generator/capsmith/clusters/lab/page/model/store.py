"""A management cluster's watched objects, each with its previous version."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from capsmith.clusters.conditions import JSON, get_mapping, get_sequence
from capsmith.clusters.lab.objects import CLUSTER_NAME
from capsmith.clusters.lab.page.model.calls import CallHistory
from capsmith.clusters.lab.page.model.summary import Summary, summarize

_CORE = "cluster.x-k8s.io"
_REFERENCES = (
    (("infrastructureRef",), "Infrastructure"),
    (("controlPlaneRef",), "Control plane"),
    (("bootstrap", "configRef"), "Bootstrap"),
)
_MAX_EVENTS = 50
"""Maximum number of Kubernetes events kept for each object."""
_MAX_EARLY = 10_000
"""Maximum number of objects for which events are kept before the objects are listed."""


class ObjectKey(NamedTuple):
    """An object's identity, independent of the API version in which it is read."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def id(self) -> str:
        """Return the key as one string, for use in URLs and as a row id."""
        return "/".join(self)


@dataclass
class StoredObject:
    """An object, its previous version, and data derived from it once."""

    key: ObjectKey
    data: JSON
    previous: JSON | None
    """The object before its last change; None if the page has seen only one version."""
    summary: Summary
    revision: int
    """Number that grows with each change to the object and with each of its events."""


@dataclass(frozen=True)
class ServedType:
    """A kind that the page shows, as described in its CRD."""

    group: str
    kind: str
    version: str
    """Version in which the page reads the objects."""
    stored: str
    """Version in which new objects are stored; empty if the CRDs cannot be read."""
    contracts: tuple[str, ...] = ()
    """The CRD's contract labels, such as ``v1beta2: v1alpha1``."""


class SimulatedServer(NamedTuple):
    """A server in a lab's simulated cloud, as the lab's page shows it."""

    id: str
    name: str
    provider_id: str
    file: str = ""
    """Name of the server's file; empty if the file does not exist."""


class ObjectStore:
    """Objects by key, indexed by uid and by owner.

    Not thread-safe: callers must hold a lock.
    """

    def __init__(self) -> None:
        self.types: dict[tuple[str, str], ServedType] = {}
        self.problems: dict[str, str] = {}
        """What cannot be watched, by source, with the reason."""
        self.progress: dict[str, tuple[int, int]] = {}
        """Numbers of objects read so far and in total, by source, for incomplete lists."""
        self.servers: tuple[SimulatedServer, ...] | None = None
        """Servers of the simulated cloud; None if no cloud is simulated."""
        self.calls = CallHistory()
        """The author's calls, with their own revision."""
        self.revision = 0
        self._objects: dict[ObjectKey, StoredObject] = {}
        self._uids: dict[str, ObjectKey] = {}
        self._events: dict[str, dict[str, JSON]] = {}
        self._early: dict[str, dict[str, JSON]] = {}
        """Events of objects that are not listed yet: each kind is watched on its own."""

    def __iter__(self) -> Iterator[StoredObject]:
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def apply(self, obj: JSON) -> None:
        """Add an object, or replace it and keep its former state as the previous version.

        If an object with another uid is replaced, there is no previous version.
        """
        key, former = get_key(obj), self._objects.get(get_key(obj))
        if former is not None and _version(former.data) == _version(obj):
            return
        self.revision += 1
        # A new uid means another object with the same name, not a change.
        is_same = former is not None and _uid(former.data) == _uid(obj)
        previous = former.data if former is not None and is_same else None
        if former is not None:
            self._uids.pop(_uid(former.data), None)
            if not is_same:
                self._events.pop(_uid(former.data), None)
        self._objects[key] = StoredObject(key, obj, previous, summarize(obj), self.revision)
        self._uids[_uid(obj)] = key
        if _uid(obj) in self._early:
            self._events[_uid(obj)] = self._early.pop(_uid(obj))

    def remove(self, key: ObjectKey) -> None:
        """Remove an object. It is not an error if the object is missing."""
        former = self._objects.pop(key, None)
        if former is not None:
            self.revision += 1
            self._uids.pop(_uid(former.data), None)
            self._events.pop(_uid(former.data), None)

    def keep_only(self, group: str, kind: str, keys: Collection[ObjectKey]) -> None:
        """Remove all objects of a kind except those with the given keys, as after a new list."""
        for key in [key for key in self._objects if key[:2] == (group, kind)]:
            if key not in keys:
                self.remove(key)

    def add_event(self, event: JSON) -> None:
        """Add a Kubernetes event. It is kept even if its object has not been listed yet.

        Events of kinds that the page does not show are ignored.
        """
        involved = get_mapping(event.get("involvedObject"))
        uid = str(involved.get("uid") or "")
        key = self._uids.get(uid)
        if key is None and get_key(involved)[:2] not in self.types:
            return
        _keep_event((self._events if key is not None else self._early).setdefault(uid, {}), event)
        while len(self._early) > _MAX_EARLY:
            del self._early[next(iter(self._early))]
        if key is not None:
            self.revision += 1
            self._objects[key].revision = self.revision

    def set_problem(self, source: str, message: str) -> None:
        """Record why a source cannot be watched. An empty message removes the record."""
        if self.problems.get(source, "") == message:
            return
        self.revision += 1
        self.problems.pop(source, None)
        if message:
            self.problems[source] = message

    def set_progress(self, source: str, progress: tuple[int, int] | None) -> None:
        """Record how much of a source's list has been read. None means that it is complete."""
        if self.progress.get(source) == progress:
            return
        self.revision += 1
        self.progress.pop(source, None)
        if progress is not None:
            self.progress[source] = progress

    def set_servers(self, servers: tuple[SimulatedServer, ...] | None) -> None:
        """Replace the simulated cloud's servers. None means that there is no simulated cloud."""
        if servers != self.servers:
            self.revision += 1
            self.servers = servers

    def find(self, id: str) -> StoredObject | None:
        """Return the object with this id, or None if there is none."""
        parts = id.split("/")
        return self._objects.get(ObjectKey(*parts)) if len(parts) == 4 else None

    def find_cluster(self, found: StoredObject) -> StoredObject | None:
        """Return the Cluster that an object's label names, or None if the store has none."""
        labels = get_mapping(get_mapping(found.data.get("metadata")).get("labels"))
        name = str(labels.get(CLUSTER_NAME) or "")
        return self.find(ObjectKey(_CORE, "Cluster", found.key.namespace, name).id)

    def find_uid(self, uid: str) -> StoredObject | None:
        """Return the object with this uid, or None if the store has none."""
        key = self._uids.get(uid)
        return self._objects[key] if key is not None else None

    def list_events(self, found: StoredObject) -> list[JSON]:
        """Return an object's Kubernetes events, latest first."""
        events = self._events.get(_uid(found.data), {}).values()
        return sorted(events, key=get_event_time, reverse=True)


def get_key(obj: JSON) -> ObjectKey:
    """Return the key of an API object: its group, kind, namespace and name."""
    metadata = get_mapping(obj.get("metadata"))
    group, slash, _ = str(obj.get("apiVersion") or "").partition("/")
    return ObjectKey(
        group if slash else "",
        str(obj.get("kind") or ""),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
    )


def get_event_time(event: JSON) -> str:
    """Return when a Kubernetes event was last seen; empty if unknown."""
    series = get_mapping(event.get("series")).get("lastObservedTime")
    return str(
        series
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or get_mapping(event.get("metadata")).get("creationTimestamp")
        or ""
    )


def _keep_event(events: dict[str, JSON], event: JSON) -> None:
    """Add an event to those of one object by name, of which the latest remain."""
    events[str(get_mapping(event.get("metadata")).get("name"))] = event
    while len(events) > _MAX_EVENTS:
        del events[min(events, key=lambda name: get_event_time(events[name]))]


def list_owners(obj: JSON) -> list[JSON]:
    """Return an object's owner references, the controller's first."""
    owners = map(get_mapping, get_sequence(get_mapping(obj.get("metadata")).get("ownerReferences")))
    return sorted(owners, key=lambda owner: not owner.get("controller"))


def list_references(found: StoredObject) -> Iterator[tuple[ObjectKey, str]]:
    """Yield (key, role) for each object that a core object refers to."""
    if found.key.group != _CORE or found.key.kind not in ("Cluster", "Machine", "MachinePool"):
        return
    spec = get_mapping(found.data.get("spec"))
    spec = get_mapping(get_mapping(spec.get("template")).get("spec")) or spec
    for path, role in _REFERENCES:
        value: object = spec
        for part in path:
            value = get_mapping(value).get(part)
        reference = get_mapping(value)
        if reference.get("name"):
            group = reference.get("apiGroup") or str(reference.get("apiVersion")).split("/")[0]
            kind, name = str(reference.get("kind")), str(reference["name"])
            yield ObjectKey(str(group), kind, found.key.namespace, name), role


def find_referenced(store: ObjectStore, found: StoredObject) -> list[StoredObject]:
    """Return the existing objects that a core object refers to."""
    objects = (store.find(key.id) for key, _ in list_references(found))
    return [each for each in objects if each is not None]


def _uid(obj: JSON) -> str:
    return str(get_mapping(obj.get("metadata")).get("uid") or get_key(obj).id)


def _version(obj: JSON) -> tuple[str, str]:
    return _uid(obj), str(get_mapping(obj.get("metadata")).get("resourceVersion") or "")
