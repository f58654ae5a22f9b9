"""A client keeps one connection for each thread, and only while the thread runs."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pytest

from capsmith.clusters.processes.kube import ApiError, Credentials, KubeClient
from capsmith.clusters.processes.pki import Pki


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b'{"a":' * 9_000 + b"{}" + b"}" * 9_000 if self.path == "/deep" else b"{}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _PlainClient(KubeClient):
    """A client without TLS that records its connections."""

    def __init__(self, port: int, ca: Path) -> None:
        super().__init__(f"https://127.0.0.1:{port}", Credentials(ca))
        self.port = port
        self.opened: list[http.client.HTTPConnection] = []

    def _connect(self, timeout: float | None) -> http.client.HTTPSConnection:
        self.opened.append(http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout))
        return cast(http.client.HTTPSConnection, self.opened[-1])

    def request_in_a_thread(self) -> None:
        thread = threading.Thread(target=self.request, args=("GET", "/"))
        thread.start()
        thread.join()

    def count_open(self) -> int:
        return sum(each.sock is not None for each in self.opened)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[_PlainClient]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        plain = _PlainClient(server.server_address[1], Pki(tmp_path).ca)
        yield plain
        plain.close()
        assert plain.count_open() == 0
        server.shutdown()
        thread.join()


def test_connections_of_threads_that_have_ended_are_closed(client: _PlainClient) -> None:
    client.request("GET", "/")
    for _ in range(20):
        client.request_in_a_thread()
    assert len(client.opened) == 21, "no connection is used by two threads"
    assert client.count_open() == 2, "that of this thread, and that of the last one"


def test_a_thread_uses_its_connection_again(client: _PlainClient) -> None:
    for _ in range(3):
        client.request("GET", "/")
    client.close()
    client.request("GET", "/")
    assert len(client.opened) == 2


def test_an_object_that_is_nested_too_deeply_is_an_error_of_the_server(
    client: _PlainClient,
) -> None:
    """Any user may write such an object, for example into its managed fields."""
    with pytest.raises(ApiError, match="nested too deeply"):
        client.request("GET", "/deep")
    assert client.request("GET", "/") == {}
