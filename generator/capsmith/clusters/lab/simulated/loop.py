"""Run a simulation: tick, wait for a change or a timeout, and tick again."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterable
from http.client import HTTPException
from pathlib import Path

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient

Kind = tuple[str, str]
"""API version and kind of the objects to watch."""
_RETRY_SECONDS = 0.5


class Changes:
    """Sets an event whenever an object of one of the watched kinds changes, in any namespace."""

    def __init__(self, client: KubeClient, kinds: Iterable[Kind]) -> None:
        # A separate client, because ending its watches must not end the watches of others.
        self._client = KubeClient(client.server, client.credentials)
        self._kinds = tuple(kinds)
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self.changed = threading.Event()

    def start(self) -> None:
        """Start one watch thread per kind."""
        for kind in self._kinds:
            name = f"watch-{kind[1]}"
            thread = threading.Thread(target=self._run, args=(kind,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop the watches and join their threads."""
        self._ended.set()
        self.changed.set()
        for thread in self._threads:
            # A watch that was just about to begin is ended in the next round.
            while thread.is_alive():
                self._client.end_watches()
                thread.join(timeout=0.2)
        self._client.close()

    def _run(self, kind: Kind) -> None:
        while not self._ended.is_set():
            try:
                self._watch(kind)
            except (ApiError, OSError, HTTPException, ValueError, AttributeError, LookupError):
                # The server is restarting, or does not serve the kind at the moment.
                self._ended.wait(_RETRY_SECONDS)

    def _watch(self, kind: Kind) -> None:
        """Watch from the current state until the server ends the watch."""
        answer = self._client.request("GET", self._client.path(*kind))
        self.changed.set()
        version = str(answer["metadata"]["resourceVersion"])
        for event in self._client.watch(*kind, None, version):
            if event["type"] == "ERROR":
                return
            self.changed.set()


_TICK_SECONDS = 0.15
_RESYNC_SECONDS = 2.0
_GATHER_SECONDS = 0.05
"""Seconds to wait for further changes, because changes rarely come alone."""
_RACES = (404, 409)
"""Response codes of transient conflicts; the next tick retries with current objects."""


class Loop:
    """A thread that runs ticks until it is stopped. Failures are logged and retried."""

    def __init__(
        self,
        name: str,
        log: Path,
        ticks: Iterable[Callable[[], None]],
        changes: Changes | None = None,
    ) -> None:
        """Define a loop that calls each of ``ticks`` after a change.

        If ``changes`` is None, the ticks are called at a short interval instead.  Failures are
        written to ``log``.
        """
        self._log = log
        self._changes = changes
        self._ticks = tuple(ticks)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread and the watches for changes."""
        if self._changes is not None:
            self._changes.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop the loop. Wait at most ten seconds for a running tick."""
        self._stopping.set()
        if self._changes is not None:
            self._changes.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._wait():
            for tick in self._ticks:
                try:
                    tick()
                except Exception:
                    # Whatever the error was, the next tick starts again from the stored state.
                    note(self._log, traceback.format_exc())

    def _wait(self) -> bool:
        """Wait until the next tick is due; return whether the loop must stop."""
        if self._changes is None:
            return self._stopping.wait(_TICK_SECONDS)
        self._changes.changed.wait(_RESYNC_SECONDS)
        stopping = self._stopping.wait(_GATHER_SECONDS)
        # Cleared before the tick reads, so that later changes trigger the next tick.
        self._changes.changed.clear()
        return stopping


def reconcile_each(log: Path, objects: Iterable[JSON], reconcile: Callable[[JSON], None]) -> None:
    """Call ``reconcile`` for every object.

    A failure is logged and does not affect other objects.
    """
    for obj in objects:
        try:
            reconcile(obj)
        except ApiError as error:
            if error.status not in _RACES:
                note(log, f"{obj['kind']} {obj['metadata']['name']}: {error}")


def note(log: Path, text: str) -> None:
    """Append a line to a log file."""
    with log.open("a") as stream:
        stream.write(f"{time.strftime('%H:%M:%S')} {text.rstrip()}\n")
