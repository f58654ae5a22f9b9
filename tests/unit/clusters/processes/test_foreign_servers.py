"""A server that is no API server, such as a proxy that requires a login, is an error."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, cast

import pytest
import trustme

from capsmith.clusters.processes import kube, tls
from capsmith.clusters.processes.kube import ApiError, Credentials, KubeClient, NoApiServerError
from capsmith.clusters.processes.pki import Pki


class _Handler(BaseHTTPRequestHandler):
    answer: ClassVar[tuple[int, str, bytes]]

    def do_GET(self) -> None:
        status, content_type, body = self.answer
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Location", "https://login.example.com/")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Client(KubeClient):
    """A client without TLS."""

    def __init__(self, port: int, ca: Path) -> None:
        super().__init__(f"https://127.0.0.1:{port}", Credentials(ca))
        self.port = port

    def _connect(self, timeout: float | None) -> http.client.HTTPSConnection:
        found = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        return cast(http.client.HTTPSConnection, found)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[_Client]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield _Client(server.server_address[1], Pki(tmp_path).ca)
        server.shutdown()
        thread.join()


def answer(patch: pytest.MonkeyPatch, body: bytes, status: int = 200, kind: str = "json") -> None:
    content_type = f"text/{kind}" if kind in {"plain", "html"} else f"application/{kind}"
    patch.setattr(_Handler, "answer", (status, content_type, body), raising=False)


@pytest.mark.parametrize("body", [b"[]", b"null", b"7", b'"{}"', b"", b"{", b"\xff\xfe{}"])
def test_a_response_that_is_no_object_is_an_error(
    client: _Client, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    answer(monkeypatch, body)
    with pytest.raises(ApiError, match="not an object of an API server"):
        client.request("GET", "/version")
    with pytest.raises(ApiError, match="not an object of an API server"):
        list(client.watch("v1", "Pod", None, "1"))


@pytest.mark.parametrize(("status", "kind"), [(200, "html"), (302, "html"), (302, "json")])
def test_a_page_of_a_login_is_an_error(
    client: _Client, monkeypatch: pytest.MonkeyPatch, status: int, kind: str
) -> None:
    answer(monkeypatch, b"<html>Log in" if kind == "html" else b"{}", status, kind)
    with pytest.raises(ApiError, match=str(status)):
        client.request("GET", "/version")


@pytest.mark.parametrize(
    "body", [b"{}", b'{"items": null, "resources": null}', b'{"items": [1], "resources": [1]}']
)
def test_a_list_that_is_none_is_an_error(
    client: _Client, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    answer(monkeypatch, body)
    with pytest.raises(LookupError, match="v1 has no kind Pod"):
        client.path("v1", "Pod")
    with pytest.raises(LookupError, match=r"no version of example\.com"):
        client.preferred_version("example.com")
    monkeypatch.setattr(client, "path", lambda *arguments: "/api/v1/pods")
    with pytest.raises(ApiError, match="no list of objects"):
        client.list("v1", "Pod")


@pytest.mark.parametrize("text", [b"ok", b"", b'{"level": "info"}', b"7", b"bytes \xff of a log"])
def test_plain_text_is_returned_as_it_is(
    client: _Client, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    answer(monkeypatch, text, kind="plain")
    assert client.request("GET", "/log") == {"text": text.decode(errors="replace")}


def test_a_response_without_end_is_an_error(
    client: _Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube, "_MAX_BYTES", 1000)
    for status in (200, 403):
        answer(monkeypatch, b"{}" + b" " * 2000, status)
        with pytest.raises(ApiError, match="too large"):
            client.request("GET", "/version")


def test_a_long_message_is_cut(client: _Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, b'{"message": "%s"}' % (b"no\\n" * 500_000), 422)
    with pytest.raises(ApiError) as caught:
        client.request("GET", "/version")
    assert caught.value.message.startswith("no\n")
    assert len(str(caught.value)) < 11_000


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"kind": "Status", "apiVersion": "v1", "status": "Success"},
        {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
        {"kind": "List", "items": [], "metadata": {"name": "any"}},
    ],
)
def test_a_server_that_sends_the_same_for_every_path_is_no_api_server(
    client: _Client, monkeypatch: pytest.MonkeyPatch, document: dict[str, object]
) -> None:
    answer(monkeypatch, json.dumps(document).encode())
    with pytest.raises(NoApiServerError, match="not an API server of Kubernetes"):
        client.require_api_server()


def test_a_web_server_is_no_api_server(client: _Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, b"not found", 404, "plain")
    with pytest.raises(NoApiServerError):
        client.require_api_server()


def test_a_user_who_may_not_list_versions_may_have_an_api_server(
    client: _Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, b'{"kind": "Status", "message": "no"}', 403)
    client.require_api_server()


class _Endless(_Handler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b" ")
        except OSError:
            pass  # the client has closed the connection


def test_the_time_of_a_request_is_limited_however_often_a_byte_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    monkeypatch.setattr(tls, "_TOTAL_SECONDS", 0.3)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endless) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        client = KubeClient(
            f"https://127.0.0.1:{server.server_address[1]}", Credentials(tmp_path / "ca.crt")
        )
        with pytest.raises(TimeoutError, match=r"no complete response within 0\.3 seconds"):
            client.request("GET", "/version")
        client.close()
        server.shutdown()
        thread.join()
