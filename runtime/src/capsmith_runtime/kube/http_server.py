"""The only HTTP server: for probes and metrics without TLS, for webhooks with TLS.

h11 reads and writes the protocol.  This module and :mod:`.http_connection` bound what a client can
use: connections in number, requests in size and in time.

Complete servers were measured first, configured for 32 connections and 10 seconds; none of them
bounds both:

- uvicorn 0.54 failed 18 of 52 tests of this server.  It accepts 200 of 200 silent connections,
  and a head or a body that never ends is still being read after 60 seconds.  Errors that have to be
  431 or 501 are 400.  Its loop wakes up ten times a second.
- aiohttp 3.14 accepts 200 of 200 and is still reading such a body after 60 seconds; 431 and 501 are
  400.  It takes 11.3 MiB of memory, this server with h11 takes 0.4 MiB.
- hypercorn 0.18 accepts 200 of 200 and is still reading such a body after 60 seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Final

from capsmith_runtime.kube.http_connection import Budget, Connection, Limits, RequestHandler
from capsmith_runtime.kube.log import get_logger

_log = get_logger("http-server")

HANDSHAKE_SECONDS: Final = 10.0


class HTTPServer:
    """Serves between ``start`` and ``close``, on the running event loop."""

    def __init__(
        self, host: str | None, port: int, handler: RequestHandler, limits: Limits | None = None
    ) -> None:
        self._host = host or None
        self._port = port
        self._handler = handler
        self._limits = limits or Limits()
        self._budget = Budget(self._limits.total_bytes)
        self._server: asyncio.Server | None = None
        # In order of arrival, so that the connection that has been idle longest comes first.
        self._connections: dict[asyncio.Task[None], Connection] = {}

    async def start(self, context: ssl.SSLContext | None = None) -> int:
        """Listen, with TLS if a context is given; return the port, chosen by the system for 0."""
        self._server = await asyncio.start_server(
            self._accept,
            self._host,
            self._port,
            ssl=context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if context else None,
            backlog=self._limits.connections,
        )
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Stop listening, and let requests finish that are being handled, within the limit."""
        if self._server is not None:
            self._server.close()
        for task, connection in self._connections.items():
            if connection.idle:
                task.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=self._limits.stop_seconds)
        for task in self._connections:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._connections) >= self._limits.connections and not self._close_idle():
            writer.transport.abort()
            return
        connection = Connection(reader, writer, self._handler, self._limits, self._budget)
        self._connections[task] = connection
        try:
            await connection.serve()
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass  # the peer is gone or too slow, or the server is closing: nothing awaits this task
        except Exception as error:
            _log.error("connection failed", error=repr(error), exc_info=error)
        finally:
            del self._connections[task]
            with contextlib.suppress(OSError):
                # A peer that does not read its response must not keep the transport open.
                pending = writer.transport.get_write_buffer_size()
                writer.transport.abort() if pending else writer.close()

    def _close_idle(self) -> bool:
        """Close the connection that came first among the idle ones; False if there is none."""
        for task, connection in self._connections.items():
            if connection.idle:
                connection.idle = False
                task.cancel()
                return True
        return False
