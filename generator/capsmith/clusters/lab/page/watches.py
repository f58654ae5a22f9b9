"""Watch a management cluster's Cluster API objects and their events, with read requests only."""

from __future__ import annotations

import gc
import re
import threading
import time
from collections.abc import Callable
from http.client import HTTPException

from capsmith.clusters.conditions import JSON, get_mapping, get_sequence
from capsmith.clusters.lab.page.cluster import WatchedCluster
from capsmith.clusters.lab.page.model.store import ObjectKey, ServedType, get_key
from capsmith.clusters.processes.kube import ApiError, KubeClient

_SUFFIX = "cluster.x-k8s.io"
_PROVIDER = "cluster.x-k8s.io/provider"
_CONTRACT = "cluster.x-k8s.io/v"
_CRDS = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_EVENTS = ("v1", "Event")
_RETRY_SECONDS = 2.0
_FORBIDDEN_RETRY_SECONDS = 60.0
_STOP_SECONDS = 5.0
_STEP_SECONDS = 0.1
_CHUNK = 500
"""Number of objects in one response to a list request. The page shows each chunk while the next is
read."""
_GONE = 410
_FORBIDDEN = 403
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


class ClusterWatch:
    """Keeps a WatchedCluster up to date with watches, using one thread per kind.

    The kinds are those of CRDs whose group ends with ``cluster.x-k8s.io`` or that have a provider
    label, including CRDs installed later.  Secrets are never requested.
    """

    def __init__(self, client: KubeClient, cluster: WatchedCluster) -> None:
        self._client = client
        self._cluster = cluster
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._watched: set[tuple[str, str]] = set()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start background threads that watch the cluster's Cluster API objects and events."""
        self._spawn("the kinds", self._watch_types)

    def stop(self) -> None:
        """Stop all watches and join their threads, except those still waiting for a response."""
        self._ending.set()
        deadline = time.monotonic() + _STOP_SECONDS
        while self._threads and time.monotonic() < deadline:
            # Repeated, because a thread may be about to begin its watch.
            self._client.end_watches()
            self._threads[-1].join(_STEP_SECONDS)
            if not self._threads[-1].is_alive():
                self._threads.pop()

    def _spawn(self, source: str, follow: Callable[[], None]) -> None:
        thread = threading.Thread(
            target=self._keep, args=(source, follow), name=f"watch {source}", daemon=True
        )
        thread.start()
        with self._lock:
            self._threads.append(thread)

    def _keep(self, source: str, follow: Callable[[], None]) -> None:
        """Call ``follow`` again and again, and record why it fails."""
        while not self._ending.is_set():
            pause = _RETRY_SECONDS
            try:
                follow()
                pause = 0.0
            except ApiError as error:
                if error.status == _GONE:
                    continue
                if error.status == _FORBIDDEN:
                    pause = _FORBIDDEN_RETRY_SECONDS
                self._report(source, error.message)
            except (OSError, HTTPException, ValueError, LookupError) as error:
                self._report(source, f"the API server does not respond: {error}")
            self._ending.wait(pause)

    def _report(self, source: str, message: str) -> None:
        if not self._ending.is_set():
            with self._cluster.change() as store:
                store.set_problem(source, message)
                store.set_progress(source, None)

    def _watch_types(self) -> None:
        """Follow the CRDs; without permission for that, look once at the API groups."""
        try:
            self._follow(*_CRDS, "the kinds", self._add_crds, self._change_crd, self._add_events)
        except ApiError as error:
            if error.status != _FORBIDDEN:
                raise
            for served in self._discover():
                self._add_type(served)
            self._add_events()
            self._ending.wait(_FORBIDDEN_RETRY_SECONDS)

    def _add_crds(self, crds: list[JSON]) -> None:
        for crd in crds:
            self._add_crd(crd)

    def _change_crd(self, event: JSON) -> None:
        if event["type"] != "DELETED":
            self._add_crd(get_mapping(event["object"]))

    def _add_crd(self, crd: JSON) -> None:
        served = read_type(crd)
        if served is not None:
            self._add_type(served)

    def _add_type(self, served: ServedType) -> None:
        """Record a kind, and begin to watch it if it is new."""
        id = (served.group, served.kind)
        with self._cluster.change() as store:
            store.types[id] = served
        with self._lock:
            is_new = id not in self._watched
            self._watched.add(id)
        if is_new:
            self._spawn(".".join((served.kind, served.group)), lambda: self._watch_kind(id))

    def _add_events(self) -> None:
        with self._lock:
            is_new = _EVENTS not in self._watched
            self._watched.add(_EVENTS)
        if is_new:
            self._spawn("events", self._watch_events)

    def _watch_kind(self, id: tuple[str, str]) -> None:
        group, kind = id
        with self._cluster.read() as store:
            version = store.types[id].version

        listed: set[ObjectKey] = set()

        def add(objects: list[JSON]) -> None:
            with self._cluster.change() as store:
                for each in objects:
                    store.apply(drop_fields(each))
            listed.update(map(get_key, objects))

        def complete() -> None:
            with self._cluster.change() as store:
                store.keep_only(group, kind, listed)
            listed.clear()

        def change(event: JSON) -> None:
            with self._cluster.change() as store:
                if event["type"] == "DELETED":
                    store.remove(get_key(event["object"]))
                else:
                    store.apply(drop_fields(event["object"]))

        self._follow(f"{group}/{version}", kind, f"{kind}.{group}", add, change, complete)

    def _watch_events(self) -> None:
        def add(events: list[JSON]) -> None:
            with self._cluster.change() as store:
                for event in events:
                    store.add_event(event)

        def change(event: JSON) -> None:
            if event["type"] != "DELETED":
                add([event["object"]])

        self._follow(*_EVENTS, "events", add, change)

    def _follow(
        self,
        api_version: str,
        kind: str,
        source: str,
        add: Callable[[list[JSON]], None],
        change: Callable[[JSON], None],
        complete: Callable[[], None] = lambda: None,
    ) -> None:
        """List a kind, then watch it until the server or :meth:`stop` ends the watch.

        ``add`` receives the listed objects in several calls, before ``complete`` is called.
        """
        version = self._list(api_version, kind, source, add)
        complete()
        self._report(source, "")
        while not self._ending.is_set():
            for event in self._client.watch(api_version, kind, None, version):
                obj = get_mapping(event.get("object"))
                if event.get("type") == "ERROR":
                    message = str(obj.get("message") or "the watch failed")
                    raise ApiError("WATCH", kind, int(obj.get("code") or 0), message)
                version = str(get_mapping(obj.get("metadata")).get("resourceVersion") or version)
                change(event)

    def _list(
        self, api_version: str, kind: str, source: str, add: Callable[[list[JSON]], None]
    ) -> str:
        """Pass a kind's objects on in chunks, and return the resource version of the list."""
        read, query = 0, {"limit": str(_CHUNK)}
        path = self._client.path(api_version, kind)
        while True:
            answer = self._client.request("GET", path, query=query)
            # Items of a list have no apiVersion and kind.
            add([{"apiVersion": api_version, "kind": kind, **each} for each in answer["items"]])
            # The objects live as long as the page.  Without this, the garbage collector would visit
            # all of them after each chunk, which takes more than half the time of a large list.
            gc.freeze()
            metadata = get_mapping(answer.get("metadata"))
            read += len(answer["items"])
            query["continue"] = str(metadata.get("continue") or "")
            if not query["continue"] or self._ending.is_set():
                return str(metadata.get("resourceVersion") or "")
            with self._cluster.change() as store:
                remaining = metadata.get("remainingItemCount") or 0
                store.set_progress(source, (read, read + int(remaining)))

    def _discover(self) -> list[ServedType]:
        """Return the kinds of the API groups whose name shows that they belong to Cluster API."""
        found = []
        for group in self._client.request("GET", "/apis")["groups"]:
            if not str(group["name"]).endswith(_SUFFIX):
                continue
            version = group["preferredVersion"]
            listed = self._client.request("GET", f"/apis/{version['groupVersion']}")["resources"]
            for each in listed:
                if "/" not in each["name"] and "watch" in each.get("verbs", ()):
                    found.append(ServedType(group["name"], each["kind"], version["version"], ""))
        return found


def drop_fields(obj: JSON) -> JSON:
    """Remove the content of managed fields, which is most of an object's data; return the object.

    The object is modified in place.
    """
    metadata = get_mapping(obj.get("metadata"))
    for each in get_sequence(metadata.get("managedFields")):
        get_mapping(each).pop("fieldsV1", None)
    return obj


def read_type(crd: JSON) -> ServedType | None:
    """Return a CRD's kind, or None if it does not belong to Cluster API or is not served."""
    spec, metadata = get_mapping(crd.get("spec")), get_mapping(crd.get("metadata"))
    labels = get_mapping(metadata.get("labels"))
    group, kind = str(spec.get("group") or ""), get_mapping(spec.get("names")).get("kind")
    if not group.endswith(_SUFFIX) and _PROVIDER not in labels:
        return None
    versions = [get_mapping(each) for each in get_sequence(spec.get("versions"))]
    served = [str(each.get("name")) for each in versions if each.get("served")]
    stored = [str(each.get("name")) for each in versions if each.get("storage")]
    if not served or not kind:
        return None
    contracts = tuple(
        f"{name.rpartition('/')[2]}: {value}"
        for name, value in sorted(labels.items())
        if name.startswith(_CONTRACT)
    )
    preferred = max(served, key=rank_version)
    return ServedType(group, str(kind), preferred, stored[0] if stored else "", contracts)


def rank_version(version: str) -> tuple[int, int, int]:
    """Return a sort key for API versions, highest for the API server's preferred version."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0)
    stability = {None: 2, "beta": 1, "alpha": 0}[match[2]]
    return stability, int(match[1]), int(match[3] or 0)
