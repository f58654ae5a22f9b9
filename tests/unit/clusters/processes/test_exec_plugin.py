"""Kubeconfigs whose user is a command, as those of EKS and GKE, in both commands that read one."""

from __future__ import annotations

import json
import os
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from capsmith.clusters.processes import exec_plugin
from capsmith.clusters.processes.exec_plugin import ExecPlugin, PluginError
from capsmith.clusters.processes.kube import ApiError
from capsmith.clusters.processes.user_kubeconfig import connect, open_client, read_access
from capsmith.errors import UnreadableInput

VERSION = "client.authentication.k8s.io/v1"
AUTHORITY = trustme.CA()
NOW = datetime(2030, 1, 1, tzinfo=UTC)

COMMAND = """\
import json, os, sys
runs = sys.argv[1]
with open(runs, "a") as file:
    file.write(os.environ["KUBERNETES_EXEC_INFO"] + "\\n")
with open(runs) as file:
    number = len(file.readlines())
status = json.loads(os.environ["STATUS"].replace("NUMBER", str(number)))
answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
print(json.dumps({**answer, "status": status}))
"""


class Site:
    """A command that prints tokens, and a kubeconfig with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        (folder / "command.py").write_text(COMMAND)

    def config(self, status: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        given = {"token": "token-NUMBER"} if status is None else status
        return {
            "apiVersion": VERSION,
            "command": sys.executable,
            "args": [str(self.folder / "command.py"), str(self.runs)],
            "env": [{"name": "STATUS", "value": json.dumps(given)}],
            "interactiveMode": "IfAvailable",
            **more,
        }

    def kubeconfig(self, server: str, config: dict[str, Any]) -> Path:
        authority = self.folder / "ca.crt"
        AUTHORITY.cert_pem.write_to_path(authority)
        cluster = {"server": server, "certificate-authority": "ca.crt"}
        content = {
            "clusters": [{"name": "one", "cluster": cluster}],
            "users": [{"name": "one", "user": {"exec": config}}],
            "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
            "current-context": "one",
        }
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(content))
        return path

    def asked(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.runs.read_text().splitlines()]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@contextmanager
def api_server(accepted: str) -> Iterator[tuple[str, list[str]]]:
    """Return a context manager with an API server that accepts one token.

    It provides the server's URL, and the tokens that the server has received.
    """
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            seen.append(token)
            body = b"{}"
            self.send_response(200 if token == accepted else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def test_both_commands_use_the_token(site: Site, tmp_path: Path) -> None:
    """`verify --live` connects, `conformance` and the lab open a client."""
    with api_server("token-1") as (url, seen):
        path = site.kubeconfig(url, site.config())
        with connect(read_access((path,))) as client:
            client.request("GET", "/version")
        site.runs.unlink()
        with closing(open_client(path, tmp_path)) as client:
            client.request("GET", "/version")
            client.request("GET", "/version")
    assert seen == ["token-1"] * 3
    assert len(site.asked()) == 1


def test_a_token_that_the_server_refuses_is_renewed_once(site: Site, tmp_path: Path) -> None:
    with (
        api_server("token-2") as (url, seen),
        closing(open_client(site.kubeconfig(url, site.config()), tmp_path)) as client,
    ):
        client.request("GET", "/version")
    assert seen == ["token-1", "token-2"]


def test_a_new_token_that_is_refused_too_is_an_error(site: Site, tmp_path: Path) -> None:
    with (
        api_server("never") as (url, seen),
        closing(open_client(site.kubeconfig(url, site.config()), tmp_path)) as client,
        pytest.raises(ApiError, match="401"),
    ):
        client.request("GET", "/version")
    assert seen == ["token-1", "token-2"]


def test_the_command_runs_again_before_the_token_expires(site: Site) -> None:
    clock = [NOW]
    expiry = (NOW + timedelta(minutes=15)).isoformat().replace("+00:00", "Z")
    status = {"token": "token-NUMBER", "expirationTimestamp": expiry}
    plugin = ExecPlugin(site.config(status), {}, site.folder, lambda: clock[0])
    assert plugin.token() == plugin.token() == "token-1"
    clock[0] += timedelta(minutes=14, seconds=29)
    assert plugin.token() == "token-1"
    clock[0] += timedelta(seconds=2)
    assert plugin.token() == "token-2"


@pytest.mark.parametrize(
    ("expiry", "token"),
    [
        ("0001-01-01T00:00:00Z", "token-2"),
        ("0001-01-01T00:00:00+14:00", "token-2"),
        ("9999-12-31T23:59:59-14:00", "token-1"),
    ],
)
def test_the_command_may_print_the_first_or_the_last_time(
    site: Site, expiry: str, token: str
) -> None:
    status = {"token": "token-NUMBER", "expirationTimestamp": expiry}
    plugin = ExecPlugin(site.config(status), {}, site.folder, lambda: NOW)
    plugin.token()
    assert plugin.token() == token


def test_certificates_of_the_command_are_used(site: Site, tmp_path: Path) -> None:
    issued = AUTHORITY.issue_cert("client")
    pem = issued.cert_chain_pems[0].bytes().decode(), issued.private_key_pem.bytes().decode()
    status = {"clientCertificateData": pem[0], "clientKeyData": pem[1]}
    path = site.kubeconfig("https://127.0.0.1:1", site.config(status))
    with closing(open_client(path, tmp_path)) as client:
        cert, key = client.credentials.cert, client.credentials.key
        assert client.credentials.source is None
    assert cert is not None
    assert key is not None
    assert (cert.read_text(), key.read_text()) == pem
    assert key.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("is_asked", [True, False])
def test_the_command_is_told_of_the_cluster_if_it_asks(
    site: Site, tmp_path: Path, is_asked: bool
) -> None:
    config = site.config(provideClusterInfo=is_asked)
    open_client(site.kubeconfig("https://127.0.0.1:1", config), tmp_path).close()
    (asked,) = site.asked()
    assert (asked["apiVersion"], asked["kind"]) == (VERSION, "ExecCredential")
    assert asked["spec"]["interactive"] is False
    assert (asked["spec"].get("cluster", {}).get("server") == "https://127.0.0.1:1") is is_asked


def test_relative_commands_start_at_the_kubeconfig(site: Site) -> None:
    command = site.folder / "bin" / "login"
    command.parent.mkdir()
    answer = json.dumps({"apiVersion": VERSION, "status": {"token": "secret"}})
    command.write_text(f"#!/bin/sh\necho '{answer}'\n")
    command.chmod(0o700)
    config = {"apiVersion": VERSION, "command": "./bin/login"}
    assert ExecPlugin(config, {}, site.folder).token() == "secret"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"command": "no-such-login", "installHint": "Install it."}, "PATH. Install it."),
        ({"command": "./no/login"}, "cannot run"),
        ({"command": "sh", "args": ["-c", "echo Log in first. >&2; exit 3"]}, "3: Log in first."),
        ({"command": "sh", "args": ["-c", "echo no"]}, "did not print JSON"),
        ({"command": "sh", "args": ["-c", "echo '{}'"]}, "did not print an ExecCredential"),
    ],
)
def test_commands_that_fail_are_explained(site: Site, config: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginError) as caught:
        ExecPlugin({"apiVersion": VERSION, **config}, {}, site.folder).token()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("tail -f /dev/null > KEPT & echo started; wait", "has not ended after 0.5 seconds"),
        ("exec >&- 2>&-; exec tail -f /dev/null > KEPT", "has not ended after 0.5 seconds"),
        ("tail -f /dev/null > KEPT & exec yes", "has written more than 100000 bytes"),
    ],
)
def test_commands_without_end_are_killed_with_their_children(
    site: Site, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    monkeypatch.setattr(exec_plugin, "_SECONDS", 0.5)
    monkeypatch.setattr(exec_plugin, "_MAX_BYTES", 100_000)
    kept = site.folder / "kept"
    os.mkfifo(kept)
    # The child holds the pipe open for writing until it is killed.
    reader = os.open(kept, os.O_RDONLY | os.O_NONBLOCK)
    args = ["-c", script.replace("KEPT", str(kept))]
    config = {"apiVersion": VERSION, "command": "sh", "args": args}
    with pytest.raises(PluginError, match=message):
        ExecPlugin(config, {}, site.folder).token()
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""
    os.close(reader)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({}, "neither a token nor a certificate"),
        ({"clientCertificateData": "a"}, "neither a token nor a certificate"),
        ({"token": "a", "expirationTimestamp": "soon"}, "'soon' is not a time"),
        ({"token": "a", "expirationTimestamp": "2030-01-01"}, "is not a time"),
        ({"token": "a", "expirationTimestamp": "2030-01-01T00:00:00"}, "is not a time"),
        ({"token": "a", "expirationTimestamp": "2030-02-30T00:00:00Z"}, "is not a time"),
        ({"token": "a\r\nX-Other: b"}, "characters that no header can have"),
        ({"token": "\u20ac"}, "characters that no header can have"),
        ({"clientCertificateData": "\ud800", "clientKeyData": "\ud800"}, "cannot be used"),
    ],
)
def test_answers_without_credentials_are_refused(
    site: Site, tmp_path: Path, status: dict[str, Any], message: str
) -> None:
    path = site.kubeconfig("https://127.0.0.1:1", site.config(status))
    with pytest.raises(UnreadableInput) as caught:
        open_client(path, tmp_path)
    assert caught.value.finding.id == "kubeconfig"
    assert message in caught.value.finding.message


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "must have the apiVersion"),
        ({"interactiveMode": "Always"}, "requires a terminal"),
    ],
)
def test_commands_that_cannot_be_used_are_refused(
    site: Site, tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    path = site.kubeconfig("https://127.0.0.1:1", site.config(**more))
    with pytest.raises(UnreadableInput, match=message):
        open_client(path, tmp_path)
