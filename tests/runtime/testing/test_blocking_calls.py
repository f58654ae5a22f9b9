"""Blocking calls of asynchronous code are found; the same calls in threads are not."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.testing.blocking_calls import find_blocking_calls


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Any:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address
        server.shutdown()


def _sleep(_: Any) -> None:
    time.sleep(0.001)


def _request(address: Any) -> None:
    urllib.request.urlopen(f"http://{address[0]}:{address[1]}").close()


def _run(_: Any) -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


BLOCKING = {_sleep: "time.sleep", _request: "socket.getaddrinfo", _run: "subprocess.Popen"}


def _call(handler: Callable[[], object]) -> list[str]:
    async def main() -> None:
        await HandlerExecutor(Metrics()).call(handler)

    find_blocking_calls()
    asyncio.run(main())
    return find_blocking_calls()


@pytest.mark.parametrize("blocks", BLOCKING)
def test_a_blocking_call_in_asynchronous_code_is_found(
    blocks: Callable[[Any], None], address: Any
) -> None:
    async def handler() -> None:
        blocks(address)

    (found,) = _call(handler)
    assert f"handler in {__file__}:" in found
    assert found.endswith(f" calls {BLOCKING[blocks]}")


@pytest.mark.parametrize("blocks", BLOCKING)
def test_blocking_calls_in_threads_are_allowed(blocks: Callable[[Any], None], address: Any) -> None:
    async def handler() -> None:
        await asyncio.to_thread(blocks, address)

    assert _call(handler) == []
    assert _call(lambda: blocks(address)) == []


def test_asynchronous_calls_are_allowed(address: Any) -> None:
    async def handler() -> None:
        await asyncio.sleep(0.001)
        time.sleep(0)
        _, writer = await asyncio.open_connection(*address)
        writer.close()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.connect(address)
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
        await process.wait()

    assert _call(handler) == []


def test_a_test_double_may_block() -> None:
    async def main() -> None:
        time.sleep(0.001)

    find_blocking_calls()
    asyncio.run(main())
    assert find_blocking_calls() == []
