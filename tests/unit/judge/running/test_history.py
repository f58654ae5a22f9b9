"""The history records each state that watches bring, and reads everything again after a gap."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue

from capsmith.clusters.processes.kube import JSON, ApiError, ServedKind
from capsmith.judge.running.history import History, WatchedKind
from tests.unit.judge.running.memory import NAMESPACE, Memory, MemoryClient

KIND = WatchedKind("example.com/v1", "Box")
_SECONDS = 10.0


def box(name: str, size: int = 0, version: int = 1) -> JSON:
    metadata = {"name": name, "namespace": NAMESPACE, "resourceVersion": str(version)}
    return {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": metadata, "size": size}


class WatchedClient(MemoryClient):
    """A client whose watches bring what the test sends; None ends one, an error interrupts it."""

    def __init__(self) -> None:
        super().__init__(Memory())
        self.is_kind_listed = True
        self.refused = threading.Event()
        self.events: Queue[JSON | Exception | None] = Queue()
        self.started = threading.Semaphore(0)

    def resolve(self, api_version: str, kind: str) -> ServedKind:
        if not self.is_kind_listed:
            self.refused.set()
            raise LookupError(f"{api_version} has no kind {kind}")
        return super().resolve(api_version, kind)

    def watch(
        self, api_version: str, kind: str, namespace: str | None, resource_version: str
    ) -> Iterator[JSON]:
        self.started.release()
        while (event := self.events.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    def end_watches(self) -> None:
        self.events.put(None)


@contextmanager
def recording(client: WatchedClient) -> Iterator[History]:
    history = History(client, NAMESPACE, [KIND])
    history.start()
    try:
        yield history
    finally:
        history.stop()


def sizes(history: History, name: str) -> list[int]:
    return [state["size"] for state in history.states("Box", name)]


def test_states_are_recorded_in_order() -> None:
    client = WatchedClient()
    client.memory.write(box("one", 1))
    with recording(client) as history:
        for size in (2, 3):
            client.events.put({"type": "MODIFIED", "object": box("one", size)})
        client.events.put({"type": "BOOKMARK", "object": box("one", 4)})
        client.events.put({"type": "ADDED", "object": box("two", 5)})
        assert history.wait(lambda: history.latest("Box", "two") is not None, _SECONDS)
        assert sizes(history, "one") == [1, 2, 3]
        client.events.put({"type": "DELETED", "object": box("one", 3)})
        assert history.wait(lambda: history.latest("Box", "one") is None, _SECONDS)
        assert history.names("Box") == ["two"]
        assert history.all_names("Box") == ["one", "two"]
        assert sizes(history, "one") == [1, 2, 3]


def test_what_was_deleted_without_a_watch_is_noticed() -> None:
    client = WatchedClient()
    client.memory.write(box("one", 1))
    with recording(client) as history:
        assert client.started.acquire(timeout=_SECONDS)
        client.memory.objects.clear()
        client.memory.write(box("two", 2))
        client.events.put({"type": "ERROR", "object": {"kind": "Status", "code": 410}})
        assert history.wait(lambda: history.names("Box") == ["two"], _SECONDS)


def test_a_connection_that_ends_is_made_again() -> None:
    client = WatchedClient()
    with recording(client) as history:
        for error in (OSError("reset"), ApiError("GET", "/", 500, "")):
            assert client.started.acquire(timeout=_SECONDS)
            client.events.put(error)
        assert client.started.acquire(timeout=_SECONDS)
        client.events.put({"type": "ADDED", "object": box("one", 1)})
        assert history.wait(lambda: history.latest("Box", "one") is not None, _SECONDS)


def test_a_kind_that_the_server_does_not_list_yet_is_recorded_later() -> None:
    """An API version is listed before the kinds of all its custom resource definitions are."""
    client = WatchedClient()
    client.is_kind_listed = False
    with recording(client) as history:
        assert client.refused.wait(_SECONDS)
        client.memory.write(box("one"))
        client.is_kind_listed = True
        assert history.wait(lambda: history.names("Box") == ["one"], _SECONDS)


def test_the_wait_ends_without_the_state() -> None:
    with recording(WatchedClient()) as history:
        assert history.wait(lambda: history.latest("Box", "one"), 0.01) is None


def test_a_lock_that_an_interrupted_read_has_kept_does_not_prevent_the_end() -> None:
    client = WatchedClient()
    with recording(client) as history:
        client.started.acquire()
        history._changed.acquire()
        client.events.put({"type": "ADDED", "object": box("one", 1)})

    (thread,) = history._threads
    assert thread.is_alive()
    history._changed.release()
    thread.join(_SECONDS)
    assert not thread.is_alive()
