"""Record every state that objects go through, by watching them.

Polling would miss states that last only a moment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from http.client import HTTPException
from typing import NamedTuple, TypeVar

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient

_GONE = 410
_RETRY_SECONDS = 0.5
_JOIN_SECONDS = 0.1
_END_SECONDS = 2.0
_LOOK_SECONDS = 1.0

T = TypeVar("T")


class WatchedKind(NamedTuple):
    """A kind whose objects :class:`History` watches and records."""

    api_version: str
    kind: str


class State(NamedTuple):
    """An object's state, as stored by the API server at one point in time."""

    obj: JSON
    is_deleted: bool
    seconds: float
    """When the state was seen, in seconds since the history was created."""


class History:
    """The recorded states, in order, of all objects of the given kinds in one namespace.

    Thread-safe: background threads record while checks read, and each method returns what has been
    recorded so far.
    """

    def __init__(self, client: KubeClient, namespace: str, kinds: Iterable[WatchedKind]) -> None:
        self._client = client
        self._namespace = namespace
        self.look: Callable[[], None] = lambda: None
        """Called repeatedly during each wait, which ends with the exception that it raises."""
        self._states: dict[tuple[str, str], list[State]] = {}
        self._read: set[tuple[str, str]] = set()
        """Kind and name of each object that has been read since :meth:`begin_check`."""
        self._created = time.monotonic()
        # Reentrant, as conditions are by default, because probes run while holding the lock and
        # read the history themselves.
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._threads = [
            # One thread for each kind, because the API server cannot watch several kinds at once.
            threading.Thread(target=self._record, args=(kind,), daemon=True)
            for kind in kinds
        ]

    def start(self) -> None:
        """Start recording existing objects, then every change."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop watching. Recorded states can still be read."""
        self._ended.set()
        deadline = time.monotonic() + _END_SECONDS
        for thread in self._threads:
            # A thread that is about to watch has no connection yet that could be closed.  A thread
            # may also wait for the lock forever, because a signal that ends a check can interrupt
            # this thread after it took the lock and before the block that releases it.
            while thread.is_alive() and time.monotonic() < deadline:
                self._client.end_watches()
                thread.join(_JOIN_SECONDS)

    def states(self, kind: str, name: str) -> list[JSON]:
        """Return an object's recorded states in order, not including its deletion."""
        with self._changed:
            self._read.add((kind, name))
            found = self._states.get((kind, name), [])
            return [state.obj for state in found if not state.is_deleted]

    def latest(self, kind: str, name: str) -> JSON | None:
        """Return an object's last state, or None if the object does not exist."""
        with self._changed:
            self._read.add((kind, name))
            return self._latest(kind, name)

    def names(self, kind: str) -> list[str]:
        """Return the sorted names of a kind's existing objects."""
        with self._changed:
            found = [name for each, name in self._states if each == kind]
            return sorted(name for name in found if self._latest(kind, name) is not None)

    def all_names(self, kind: str) -> list[str]:
        """Return the sorted names of all objects of a kind that exist or have existed."""
        with self._changed:
            return sorted(name for each, name in self._states if each == kind)

    def begin_check(self) -> float:
        """Forget which objects have been read, and return the history's age in seconds."""
        with self._changed:
            self._read.clear()
            return self.seconds

    def list_records(self, since: float) -> dict[tuple[str, str], list[State]]:
        """Return the states of the objects that a check is about, by kind and name.

        These are the objects that have been read since :meth:`begin_check` or created after
        ``since``, in the order of their creation.  Deletions are included.
        """
        with self._changed:
            return {
                key: list(states)
                for key, states in self._states.items()
                if key in self._read or states[0].seconds >= since
            }

    @property
    def seconds(self) -> float:
        """Return the number of seconds since the history was created."""
        return time.monotonic() - self._created

    def wait(self, probe: Callable[[], T], seconds: float) -> T:
        """Wait until ``probe`` returns a true value, and return that value.

        After ``seconds``, return the probe's last value, which is false.  The probe is called after
        each recorded change; it may read the history but must not block.  :attr:`look` may end the
        wait earlier.
        """
        end = time.monotonic() + seconds
        while True:
            self.look()
            left = max(0.0, end - time.monotonic())
            with self._changed:
                self._changed.wait_for(probe, min(left, _LOOK_SECONDS))
                found = probe()
            if found or left == 0.0:
                return found

    def _latest(self, kind: str, name: str) -> JSON | None:
        found = self._states.get((kind, name), [])
        return None if not found or found[-1].is_deleted else found[-1].obj

    def _record(self, kind: WatchedKind) -> None:
        version = ""
        while not self._ended.is_set():
            try:
                if not version:
                    version = self._list(kind)
                # After a watch that ends normally, the next one continues from the last version, so
                # no state is missed.
                version = self._watch(kind, version)
            except (ApiError, OSError, HTTPException, ValueError, AttributeError, LookupError):
                # The server is restarting, does not list the kind yet, or the version has expired:
                # read everything again.
                version = ""
                self._ended.wait(_RETRY_SECONDS)

    def _list(self, kind: WatchedKind) -> str:
        path = self._client.path(*kind, namespace=self._namespace)
        answer = self._client.request("GET", path)
        # A list after a lost watch shows only the current state.  Losing the states in between can
        # hide a violation but never invent one.
        for item in answer["items"]:
            self._add(kind, item, is_deleted=False)
        # Otherwise objects deleted while no watch was running would seem to exist.
        existing = {item["metadata"]["name"] for item in answer["items"]}
        for name in self.names(kind.kind):
            if name not in existing:
                self._add(kind, {"metadata": {"name": name}}, is_deleted=True)
        return str(answer["metadata"]["resourceVersion"])

    def _watch(self, kind: WatchedKind, version: str) -> str:
        for event in self._client.watch(*kind, self._namespace, version):
            obj = event["object"]
            # Usually 410: the version is too old, and everything must be listed again.
            if event["type"] == "ERROR":
                return ""
            version = obj["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                self._add(kind, obj, is_deleted=event["type"] == "DELETED")
        return version

    def _add(self, kind: WatchedKind, obj: JSON, *, is_deleted: bool) -> None:
        with self._changed:
            states = self._states.setdefault((kind.kind, obj["metadata"]["name"]), [])
            # Items of a list have neither apiVersion nor kind.
            typed = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
            states.append(State(typed, is_deleted, self.seconds))
            self._changed.notify_all()
