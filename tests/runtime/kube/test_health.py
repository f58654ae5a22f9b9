"""The diagnostics server: its three paths, and hostile clients."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import trustme

from capsmith.clusters.processes.process import free_port
from capsmith_runtime.kube import log
from capsmith_runtime.kube.client import KubeClient
from capsmith_runtime.kube.diagnostics import (
    LIMITS,
    Diagnostics,
    DiagnosticsOptions,
    DiagnosticsServer,
    parse_address,
)
from capsmith_runtime.kube.http_server import HTTPLimits, Request
from capsmith_runtime.kube.metrics import Metrics
from tests.runtime.support.waiting import running
from tests.runtime.webhook.hook_serving import trusting, write_certificate


@asynccontextmanager
async def serving(limits: HTTPLimits = LIMITS, **checks: bool) -> AsyncIterator[int]:
    named = {name: (lambda passes=passes: passes) for name, passes in checks.items()}
    server = DiagnosticsServer("127.0.0.1:0", Metrics(), named, limits)
    port = await server.start()
    try:
        yield port
    finally:
        await server.close()


async def send(port: int, data: bytes) -> bytes:
    """Return everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), 60)
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


def request(target: str, method: str = "GET", protocol: str = "HTTP/1.1") -> bytes:
    return f"{method} {target} {protocol}\r\nHost: x\r\n\r\n".encode()


async def test_healthy() -> None:
    async with serving() as port:
        answer = await send(port, request("/healthz"))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nok\n")


@pytest.mark.parametrize(("good", "status"), [(True, b"200"), (False, b"503")])
async def test_ready(good: bool, status: bytes) -> None:
    async with serving(caches=good, other=True) as port:
        answer = await send(port, request("/readyz?verbose"))
    assert answer.split()[1] == status
    assert (b"not ready: caches\n" in answer) is not good
    assert b"other" not in answer


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/readyz/webhook", b"200"),
        ("/readyz/caches", b"503"),
        ("/readyz/other", b"404"),
        ("/healthz/webhook", b"404"),
        ("caches", b"404"),
    ],
)
async def test_a_single_check(path: str, status: bytes) -> None:
    async with serving(caches=False, webhook=True) as port:
        answer = await send(port, request(path))
    assert answer.split()[1] == status


@pytest.mark.parametrize(("good", "status"), [(True, b"200"), (False, b"503")])
async def test_health_has_checks_of_its_own(good: bool, status: bytes) -> None:
    server = DiagnosticsServer(
        "127.0.0.1:0", Metrics(), {"caches": lambda: True}, health={"handlers": lambda: good}
    )
    port = await server.start()
    answers = [await send(port, request(path)) for path in ("/healthz", "/readyz")]
    await server.close()
    assert [answer.split()[1] for answer in answers] == [status, b"200"]
    assert (b"not healthy: handlers\n" in answers[0]) is not good


async def test_metrics() -> None:
    async with serving() as port:
        answer = await send(port, request("/metrics"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"text/plain; version=0.0.4" in head
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"# TYPE workqueue_depth gauge" in body


@pytest.mark.parametrize(
    ("peer", "insecure", "status"),
    [
        ("127.0.0.1", False, 200),
        ("::1", False, 200),
        ("10.0.0.7", False, 403),
        ("fe80::7%eth0", False, 403),
        ("", False, 403),
        ("10.0.0.7", True, 200),
    ],
)
async def test_other_hosts_get_metrics_only_if_the_user_allows_it(
    peer: str, insecure: bool, status: int
) -> None:
    server = DiagnosticsServer("127.0.0.1:0", Metrics(), {}, insecure=insecure)
    metrics = await server._handle(Request("GET", "/metrics", b"", peer))
    healthy = await server._handle(Request("GET", "/healthz", b"", peer))
    assert (metrics.status, healthy.status) == (status, 200)
    assert (b"reconciles_active" in metrics.body) is (status == 200)


async def test_head_has_no_body() -> None:
    async with serving() as port:
        answer = await send(port, request("/healthz", "HEAD"))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (request("/other"), b"404"),
        (request("/healthz/../metrics"), b"404"),
        (request("/healthz", "POST"), b"405"),
        (request("/healthz", "\x16\x03\x01"), b"400"),
        (request("/healthz", protocol="HTTP/2.0"), b"400"),
        (b"GET\r\n\r\n", b"400"),
        (b"GET /healthz\r\n\r\n", b"400"),
        (b"\r\n\r\n", b"400"),
        (b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n", b"431"),
    ],
)
async def test_malformed(data: bytes, status: bytes) -> None:
    async with serving() as port:
        answer = await send(port, data)
        assert answer.split()[1] == status
        assert (await send(port, request("/healthz"))).startswith(b"HTTP/1.1 200")


async def test_an_endless_request_takes_no_memory() -> None:
    """The server reads little before it closes the connection."""
    async with serving() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 64 * 2**20:
                writer.write(b"x" * 2**16)
                await asyncio.wait_for(writer.drain(), 60)
                sent += 2**16
        assert sent < 64 * 2**20
        writer.transport.abort()


async def test_slow_clients_are_closed() -> None:
    async with serving(replace(LIMITS, request_seconds=0.2)) as port:
        assert await send(port, b"GET /heal") == b""


async def test_clients_that_send_byte_by_byte_are_closed() -> None:
    async with serving(replace(LIMITS, request_seconds=0.2)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        closed = asyncio.create_task(reader.read())
        async with asyncio.timeout(60):
            while not closed.done():
                writer.write(b"x")
                await asyncio.wait({closed}, timeout=0.05)
        writer.transport.abort()
        closed.exception()


async def test_connections_are_bounded() -> None:
    """The oldest of the silent connections make room for others."""
    async with serving() as port:
        crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
        for reader, _ in crowd[:8]:
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), 60) == b"", "one too many"
        assert not any(reader.at_eof() for reader, _ in crowd[8:])
        assert (await send(port, request("/healthz"))).startswith(b"HTTP/1.1 200")
        for _, writer in crowd:
            writer.transport.abort()


@pytest.mark.parametrize(
    ("text", "address"),
    [(":8080", (None, 8080)), ("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:80", ("::1", 80))],
)
def test_addresses(text: str, address: tuple[str | None, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "8080", "host:", "host:http", ":-1", ":99999", "::1"])
def test_invalid_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_address(text)


@pytest.fixture
def verbosity() -> Iterator[None]:
    before = log.get_verbosity()
    level = logging.getLogger(log.OWN).level
    yield
    log.set_verbosity(before)
    logging.getLogger(log.OWN).setLevel(level)


@pytest.mark.parametrize(
    ("method", "body", "status", "answer"),
    [
        ("PUT", b"5", 200, b"verbosity is 5"),
        ("PUT", b" 10\n", 200, b"verbosity is 10"),
        ("PUT", b"", 400, b"0 to 10"),
        ("PUT", b"11", 400, b"0 to 10"),
        ("PUT", b"-1", 400, b"0 to 10"),
        ("PUT", b"9" * 5000, 400, b"0 to 10"),
        ("DELETE", b"", 405, b""),
    ],
)
@pytest.mark.usefixtures("verbosity")
async def test_the_log_level_changes_at_run_time(
    method: str, body: bytes, status: int, answer: bytes
) -> None:
    log.set_verbosity(2)
    server = DiagnosticsServer("127.0.0.1:0", Metrics(), {})
    response = await server._handle(Request(method, "/debug/flags/v", body, "127.0.0.1"))
    shown = await server._handle(Request("GET", "/debug/flags/v", b"", "127.0.0.1"))

    assert response.status == status
    assert answer in response.body
    assert shown.body == (b"%d\n" % int(body) if status == 200 else b"2\n")
    is_debug = logging.getLogger(log.OWN).getEffectiveLevel() == logging.DEBUG
    assert is_debug is (status == 200)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/debug/dump", "GET", 200), ("/debug/dump", "POST", 405), ("/debug/pprof", "GET", 404)],
)
async def test_the_state_of_the_process_is_served(path: str, method: str, status: int) -> None:
    server = DiagnosticsServer("127.0.0.1:0", Metrics(), {})
    response = await server._handle(Request(method, path, b"", "::1"))

    assert response.status == status
    assert (b"\nthreads\n" in response.body) is (status == 200)


@pytest.mark.parametrize("path", ["/debug/dump", "/debug/flags/v"])
async def test_without_https_other_hosts_get_no_debugging(path: str) -> None:
    server = DiagnosticsServer("127.0.0.1:0", Metrics(), {}, insecure=True)
    probes = DiagnosticsServer("127.0.0.1:0", None, {})

    assert (await server._handle(Request("GET", path, b"", "10.0.0.7"))).status == 403
    assert (await server._handle(Request("PUT", path, b"4", "10.0.0.7"))).status == 403
    assert (await probes._handle(Request("GET", path, b"", "127.0.0.1"))).status == 404


async def test_metrics_by_https_end_with_their_task(tmp_path: Path) -> None:
    authority = trustme.CA()
    write_certificate(tmp_path, authority)
    port = free_port()
    options = DiagnosticsOptions(address=f"127.0.0.1:{port}", certificates=tmp_path)
    diagnostics = Diagnostics(options, cast(KubeClient, None), Metrics(), {}, {})
    await diagnostics.start()

    async def accepts_tls() -> bool:
        try:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=trusting(authority), server_hostname="127.0.0.1"
            )
        except OSError:
            return False
        writer.transport.abort()
        return True

    async with running(diagnostics.run()):
        async with asyncio.timeout(60):
            while not await accepts_tls():
                await asyncio.sleep(0.05)
    assert not await accepts_tls()
    await diagnostics.close()
