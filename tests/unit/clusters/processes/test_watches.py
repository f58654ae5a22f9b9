"""Watches of a client are ended from another thread than the one that reads them."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

from capsmith.clusters.processes.kube import Credentials, KubeClient
from capsmith.clusters.processes.pki import Pki


class EndingConnection(http.client.HTTPSConnection):
    """A connection whose own thread closes it as soon as another thread has read its socket."""

    def __init__(self, kept: socket.socket) -> None:
        self._kept: socket.socket | None = kept
        super().__init__("127.0.0.1")
        self._kept = kept

    @property
    def sock(self) -> socket.socket | None:
        kept, self._kept = self._kept, None
        return kept

    @sock.setter
    def sock(self, value: socket.socket | None) -> None:
        self._kept = value


def test_a_watch_that_ends_by_itself_meanwhile_is_no_error(tmp_path: Path) -> None:
    client = KubeClient("https://127.0.0.1:1", Credentials(Pki(tmp_path).ca))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        client._watches.add(EndingConnection(ours))
        client.end_watches()
        assert theirs.recv(1) == b""
