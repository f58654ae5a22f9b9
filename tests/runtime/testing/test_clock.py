"""The virtual clock jumps only while no thread is working."""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.testing import clock

HOUR = 3600.0
WORK_SECONDS = 0.2
"""The real time that something outside the loop takes."""


async def working_thread() -> str:
    """Run a synchronous handler for a while."""
    executor = HandlerExecutor(Metrics(), timeout=HOUR)
    return await executor.call(_work)


def _work() -> str:
    time.sleep(WORK_SECONDS)
    return "done"


def test_hours_take_no_time() -> None:
    async def main() -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(HOUR)
        return asyncio.get_running_loop().time() - began

    began = time.monotonic()
    assert clock.run(main()) == pytest.approx(HOUR)
    assert time.monotonic() - began < 60


def test_timers_expire_in_order() -> None:
    expired: list[int] = []

    async def timer(minutes: int) -> None:
        await asyncio.sleep(60.0 * minutes)
        expired.append(minutes)

    async def main() -> None:
        await asyncio.gather(*(timer(minutes) for minutes in (5, 1, 3)))

    clock.run(main())
    assert expired == [1, 3, 5]


@pytest.mark.parametrize("repetition", range(5))
def test_a_synchronous_handler_does_not_run_out_of_time(repetition: int) -> None:
    """The clock does not jump to the next timer while a thread works.

    How far it moves is not checked: on a busy machine the thread may work while the loop waits for
    a processor, which is not counted.
    """

    async def main() -> tuple[str, float]:
        timer = asyncio.create_task(asyncio.sleep(HOUR))
        async with asyncio.timeout(60 * WORK_SECONDS):
            answer = await working_thread()
        assert not timer.done()
        timer.cancel()
        return answer, asyncio.get_running_loop().time()

    answer, passed = clock.run(main())
    assert answer == "done"
    assert passed < HOUR


def test_many_short_handlers_take_little_time() -> None:
    async def main() -> float:
        executor = HandlerExecutor(Metrics(), timeout=1.0)
        for _ in range(200):
            assert await executor.call(str) == ""
            await asyncio.sleep(10.0)
        return asyncio.get_running_loop().time()

    # The calls cost real time; had the clock jumped meanwhile, some would have timed out.
    assert clock.run(main()) >= 2000.0


def test_a_foreign_thread_holds_the_clock() -> None:
    async def main() -> str:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()

        def answer() -> None:
            loop.call_soon_threadsafe(future.set_result, _work())

        threading.Thread(target=answer, daemon=True).start()
        async with asyncio.timeout(60 * WORK_SECONDS):
            return await future

    assert clock.run(main()) == "done"


class _KeepAlive(BaseHTTPRequestHandler):
    """Keep the connection open after each response, with a thread that waits for a request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        time.sleep(WORK_SECONDS)
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"done")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def http_double() -> Iterator[http.client.HTTPConnection]:
    """Yield a connection to a test double that is an HTTP server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _KeepAlive) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
        yield connection
        connection.close()
        server.shutdown()
        thread.join()


def test_an_open_connection_of_an_http_double_does_not_hold_the_clock(
    http_double: http.client.HTTPConnection,
) -> None:
    def request() -> bytes:
        http_double.request("GET", "/")
        return http_double.getresponse().read()

    async def main() -> tuple[bytes, bool]:
        executor = HandlerExecutor(Metrics(), timeout=60 * WORK_SECONDS)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, clock.VirtualLoop)
        answer = await executor.call(request)
        assert await loop.wait_until(lambda: not loop.has_handlers(), 60)
        return answer, loop.has_threads()

    assert clock.run(main()) == (b"done", False)


def test_a_thread_of_the_default_executor_holds_the_clock_only_at_work() -> None:
    async def main() -> float:
        async with asyncio.timeout(60 * WORK_SECONDS):
            assert await asyncio.to_thread(_work) == "done"
        began = time.monotonic()
        await asyncio.sleep(HOUR)
        return time.monotonic() - began

    assert clock.run(main()) < 60


def test_a_connection_holds_the_clock() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    async def main() -> bytes:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        # A server alone does not hold it.
        await asyncio.sleep(HOUR)
        async with server, asyncio.timeout(60):
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello\n")
            line = await reader.readline()
            writer.close()
        return line

    assert clock.run(main()) == b"hello\n"


def test_impossible_events_are_not_waited_for() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="no timer is set"):
        clock.run(main())


def test_time_outs_expire_although_callbacks_never_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "STALL_SECONDS", 0.05)

    async def main() -> None:
        async with asyncio.timeout(0.1):
            while True:
                await asyncio.sleep(0)

    with pytest.raises(TimeoutError):
        clock.run(main())


def test_the_library_reads_the_clock_of_the_loop() -> None:
    async def main() -> float:
        began = monotonic()
        await asyncio.sleep(HOUR)
        return monotonic() - began

    assert clock.run(main()) == pytest.approx(HOUR)
    assert monotonic() == pytest.approx(time.monotonic(), abs=60)


def test_a_brief_state_is_seen_before_the_clock_jumps() -> None:
    async def main() -> bool:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, clock.VirtualLoop)
        state = ["before"]
        loop.call_later(60.0, state.append, "brief")
        loop.call_later(60.0001, state.append, "after")
        return await loop.wait_until(lambda: state[-1] == "brief", loop.time() + HOUR)

    assert clock.run(main())


def test_a_state_that_never_comes_is_seldom_checked() -> None:
    checks: list[float] = []

    async def main() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, clock.VirtualLoop)
        assert not await loop.wait_until(lambda: checks.append(loop.time()), loop.time() + HOUR)
        return loop.time()

    assert clock.run(main()) == pytest.approx(HOUR)
    assert len(checks) < 5


def test_a_state_that_a_thread_brings_is_seen() -> None:
    seen: list[bool] = []

    async def main() -> bool:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, clock.VirtualLoop)
        work = asyncio.create_task(asyncio.to_thread(seen.append, True))
        found = await loop.wait_until(lambda: seen, loop.time() + HOUR)
        await work
        return found

    assert clock.run(main())


def test_a_check_that_fails_ends_the_wait() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, clock.VirtualLoop)
        ready: list[int] = []
        loop.call_later(1.0, ready.append, 0)
        await loop.wait_until(lambda: ready and 1 / ready[0], loop.time() + HOUR)

    with pytest.raises(ZeroDivisionError):
        clock.run(main())
