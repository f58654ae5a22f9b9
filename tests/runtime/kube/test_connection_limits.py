"""Clients that open connections and leave them open do not keep others away."""

from __future__ import annotations

import asyncio
import contextlib
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import pytest

from capsmith_runtime.kube.http_server import (
    Budget,
    HTTPLimits,
    HTTPServer,
    Request,
    RequestRejectedError,
    Response,
)
from tests.runtime.kube.test_health import request, send
from tests.runtime.webhook.hook_serving import serving

LIMITS = HTTPLimits(connections=8, request_seconds=600.0)
TENANT = "127.0.0.2"
"""All of 127.0.0.0/8 is this host, on Linux."""
TLS_HELLO = b"\x16\x03\x01\x02\x00\x01"
BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nslow"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def answer(sent: Request) -> Response:
    return Response(HTTPStatus.OK, b"ok\n")


@asynccontextmanager
async def plain(limits: HTTPLimits = LIMITS) -> AsyncIterator[int]:
    server = HTTPServer("127.0.0.1", 0, answer, limits)
    server_port = await server.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.close)
        yield server_port


async def crowd(port: int, sent: bytes, count: int) -> list[Streams]:
    """Open connections of one tenant, and wait until all but the newest have been closed."""
    streams = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(TENANT, 0))
        writer.write(sent)
        streams.append((reader, writer))
    for reader, _ in streams[: -LIMITS.connections]:
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionError):
                await reader.read()
    return streams


@pytest.mark.parametrize("sent", [b"", b"GET /heal", BODY, request("/")])
async def test_connections_of_one_client_do_not_keep_others_away(sent: bytes) -> None:
    """Neither silent ones, nor those that send slowly or stay open after a response."""
    async with plain() as port:
        streams = await crowd(port, sent, 3 * LIMITS.connections)
        found = await send(
            port, request("/").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        )
        assert found.startswith(b"HTTP/1.1 200 OK\r\n")
        for _, writer in streams:
            writer.transport.abort()


async def test_the_client_with_the_most_connections_loses_one_first() -> None:
    """A probe that was there before, and is as silent, keeps its connection."""
    async with plain() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        streams = await crowd(port, b"", 3 * LIMITS.connections)
        writer.write(request("/"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 OK")
        for _, each in [*streams, (reader, writer)]:
            each.transport.abort()


async def test_silent_connections_go_before_idle_ones() -> None:
    async with plain(replace(LIMITS, connections=2)) as port:
        idle = await asyncio.open_connection("127.0.0.1", port)
        idle[1].write(request("/"))
        await idle[0].readuntil(b"ok\n")
        silent = await asyncio.open_connection("127.0.0.1", port)
        newest = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            assert await silent[0].read() == b""
        idle[1].write(request("/"))
        assert (await idle[0].readline()).startswith(b"HTTP/1.1 200 OK")
        for _, writer in (idle, silent, newest):
            writer.transport.abort()


async def test_handshakes_that_never_end_take_little_memory(tmp_path: Path) -> None:
    """The limit of connections times their memory must fit into a manager's limit of memory."""
    async with serving(tmp_path, answer, limits=LIMITS) as server:
        streams = await crowd(server.port, TLS_HELLO, 1)
        tracemalloc.start()
        try:
            streams += await crowd(server.port, TLS_HELLO, 3 * LIMITS.connections)
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert used / LIMITS.connections < 128 * 1024
        for _, writer in streams:
            writer.transport.abort()


@pytest.mark.parametrize("sent", [b"", TLS_HELLO])
async def test_handshakes_that_never_end_are_silent_connections(
    sent: bytes, tmp_path: Path
) -> None:
    async with serving(tmp_path, answer, limits=LIMITS) as server:
        streams = await crowd(server.port, sent, 3 * LIMITS.connections)
        assert (await server.post("/")).status == HTTPStatus.OK
        for _, writer in streams:
            writer.transport.abort()


async def test_a_draining_server_closes_each_connection_after_its_response() -> None:
    server = HTTPServer("127.0.0.1", 0, answer, LIMITS)
    port = await server.start()
    former = await asyncio.open_connection("127.0.0.1", port)
    former[1].write(request("/"))
    assert b"Connection: close" not in await former[0].readuntil(b"\r\n\r\n")
    server.drain()
    former[1].write(request("/"))
    for found in (await former[0].read(), await send(port, request("/"))):
        assert b"200 OK" in found
        assert b"Connection: close" in found
    former[1].transport.abort()
    await server.close()


def test_a_client_has_half_of_the_memory() -> None:
    budget = Budget(100)
    budget.take(TENANT, 50)
    with pytest.raises(RequestRejectedError):
        budget.take(TENANT, 1)
    budget.take("127.0.0.1", 50)
    budget.give(TENANT, 50)
    budget.take(TENANT, 1)
