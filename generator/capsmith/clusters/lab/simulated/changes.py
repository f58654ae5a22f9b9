"""Watches that tell a simulation when there may be something to do."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from http.client import HTTPException

from capsmith.clusters.processes.kube import ApiError, KubeClient

Kind = tuple[str, str]
"""API version and kind."""
_RETRY_SECONDS = 0.5


class Changes:
    """Set an event after each change of an object of some kinds, in all namespaces."""

    def __init__(self, client: KubeClient, kinds: Iterable[Kind]) -> None:
        # Of its own: what ends the watches must not end those of others.
        self._client = KubeClient(client.server, client.credentials)
        self._kinds = tuple(kinds)
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self.changed = threading.Event()

    def start(self) -> None:
        """Start a watch of each kind in a thread of its own."""
        for kind in self._kinds:
            name = f"watch-{kind[1]}"
            thread = threading.Thread(target=self._run, args=(kind,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End the watches and wait for their threads."""
        self._ended.set()
        self.changed.set()
        for thread in self._threads:
            # A watch that was only about to begin is ended the next time.
            while thread.is_alive():
                self._client.end_watches()
                thread.join(timeout=0.2)
        self._client.close()

    def _run(self, kind: Kind) -> None:
        while not self._ended.is_set():
            try:
                self._watch(kind)
            except (ApiError, OSError, HTTPException, ValueError, AttributeError):
                # The server restarts, or does not serve the kind at present.
                self._ended.wait(_RETRY_SECONDS)

    def _watch(self, kind: Kind) -> None:
        """Watch from the present state until the server ends the watch."""
        answer = self._client.request("GET", self._client.path(*kind))
        self.changed.set()
        version = str(answer["metadata"]["resourceVersion"])
        for event in self._client.watch(*kind, None, version):
            if event["type"] == "ERROR":
                return
            self.changed.set()
