"""A proxy with faults in front of the API server.

It ends TLS on both sides, passes on what it is not told to disturb, and notes every request.
It has a thread and an event loop of its own, so that it serves the tests' loop and other
processes alike; its methods may be called from anywhere.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from capsmith.clusters.processes.pki import Pki

from .faults import Fault, Hold, Injection, Loss, Request, request_of
from .http1 import Answer, body_parts, read_head

_BROKEN = (OSError, EOFError, asyncio.IncompleteReadError)
_HOLD_SECONDS = 300.0


@dataclass(eq=False)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    moving: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared on a half-open connection: no data pass, without an error on either side."""
    up_reader: asyncio.StreamReader | None = None
    up_writer: asyncio.StreamWriter | None = None

    def leave_server(self) -> None:
        if self.up_writer is not None:
            self.up_writer.transport.abort()
        self.up_reader = self.up_writer = None

    def abort(self) -> None:
        for writer in (self.writer, self.up_writer):
            if writer is not None:
                writer.transport.abort()


class FaultProxy:
    """Listens on a port of its own between `start` and `stop`."""

    def __init__(self, server_port: int, pki: Pki) -> None:
        self.requests: list[Request] = []
        self._server_port = server_port
        self._inward = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._inward.load_cert_chain(pki.serving.cert, pki.serving.key)
        self._outward = ssl.create_default_context(cafile=str(pki.ca))
        self._injections: list[Injection] = []
        self._connections: set[_Connection] = set()
        self._refusing = False
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(60), "the proxy does not start"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(60)
        assert not self._thread.is_alive(), "the proxy does not stop"

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def connections(self) -> int:
        """Return the number of open connections."""
        return len(self._connections)

    def inject(
        self, fault: Fault, applies: Callable[[Request], bool], *, times: int | None = None
    ) -> Injection:
        """Inject a fault from now on; if several faults match a request, the newest applies."""
        injection = Injection(fault, applies, times)
        self._injections.insert(0, injection)
        return injection

    def heal(self, injection: Injection) -> None:
        self._injections.remove(injection)

    def calm(self) -> None:
        """Remove all faults; half-open connections stay half-open."""
        self._injections.clear()

    def drop(self) -> None:
        """Break all existing connections."""
        self._soon(lambda connection: connection.abort())

    def freeze(self) -> None:
        """Make all existing connections half-open; new connections work."""
        self._soon(lambda connection: connection.moving.clear())

    def refuse(self, refusing: bool = True) -> None:
        """Break all connections, including new ones, until `refuse(False)` is called."""
        self._refusing = refusing
        if refusing:
            self.drop()

    def since(self, moment: float) -> list[Request]:
        return [request for request in self.requests if request.at >= moment]

    def _soon(self, action: Callable[[_Connection], Any]) -> None:
        done = threading.Event()

        def act() -> None:
            for connection in list(self._connections):
                action(connection)
            done.set()

        self._loop.call_soon_threadsafe(act)
        assert done.wait(60), "the proxy hangs"

    async def _main(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._inward)
        self._port = int(server.sockets[0].getsockname()[1])
        self._started.set()
        await self._stopping.wait()
        server.close()
        for connection in list(self._connections):
            connection.abort()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(reader, writer)
        connection.moving.set()
        self._connections.add(connection)
        try:
            while not self._refusing and await self._exchange(connection):
                pass
        except (*_BROKEN, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(connection)
            connection.abort()

    async def _exchange(self, connection: _Connection) -> bool:
        """One request and its answer; False when the connection has to end."""
        head = await read_head(connection.reader)
        if head is None:
            return False
        body = b"".join([part async for part in body_parts(connection.reader, head)])
        request = request_of(head, body)
        self.requests.append(request)
        fault = self._fault(request)
        await connection.moving.wait()
        if isinstance(fault, Answer):
            connection.writer.write(fault.render())
            return True
        if isinstance(fault, Hold):
            await asyncio.to_thread(fault.until.wait, _HOLD_SECONDS)
            connection.leave_server()  # which may be another one by now
        if fault is Loss.SILENCE:
            await connection.reader.read(1)
        if fault in (Loss.DROP, Loss.SILENCE):
            return False
        hung_up = asyncio.create_task(_hang_up(connection))
        try:
            await self._forward(connection, head.raw + body, lose=fault is Loss.UNANSWERED)
        finally:
            hung_up.cancel()
        return fault is not Loss.UNANSWERED

    async def _forward(self, connection: _Connection, message: bytes, *, lose: bool) -> None:
        if connection.up_reader is None or connection.up_writer is None:
            connection.up_reader, connection.up_writer = await asyncio.open_connection(
                "127.0.0.1", self._server_port, ssl=self._outward
            )
        connection.up_writer.write(message)
        answer = await read_head(connection.up_reader)
        if answer is None:
            raise EOFError("no answer")
        if lose:
            return
        await connection.moving.wait()
        connection.writer.write(answer.raw)
        async for part in body_parts(connection.up_reader, answer):
            await connection.moving.wait()
            connection.writer.write(part)
            await connection.writer.drain()

    def _fault(self, request: Request) -> Fault | None:
        for injection in list(self._injections):
            fault = injection.take(request)
            if fault is not None:
                return fault
        return None


async def _hang_up(connection: _Connection) -> None:
    """Pass on that the client has closed while its answer, a watch, goes on.

    Reading here would take what belongs to the next request.
    """
    reader = connection.reader
    while not reader.at_eof() and reader.exception() is None:
        await asyncio.sleep(0.05)
    if connection.moving.is_set():
        connection.abort()
