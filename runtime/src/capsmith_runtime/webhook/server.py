"""The HTTPS server for a manager's webhooks, which reloads its certificate files."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from capsmith_runtime.kube.certificates import CertificateFiles, Certificates
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.http_server import (
    HTTPLimits,
    HTTPServer,
    Request,
    RequestHandler,
    Response,
    text_response,
)
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics, WebhookMetrics
from capsmith_runtime.reconcile.groups import ControllerGroup, Runnable
from capsmith_runtime.webhook.options import WebhookOptions

_log = get_logger("webhook")

POLL_SECONDS: Final = 5.0
"""Seconds between two checks of the certificate files, because no event reports a replacement."""
LIMITS: Final = HTTPLimits(connections=512, body_bytes=3 * 1024 * 1024)
"""Limits of a server whose clients are API servers.

An API server opens a connection for each concurrent call, and sends an object in one or two
versions, each of at most 1.5 MiB, which is etcd's limit.
"""
_HANDLED: Final = LIMITS.connections * 7 // 8
"""Maximum number of concurrently handled calls, which leaves connections for new calls."""


class CallLimits:
    """Limits the number of concurrent calls, so that slow calls leave room for others.

    A call above the limit gets 429, and the API server retries it after a second.
    """

    def __init__(self, total: int = _HANDLED, *, paths: int) -> None:
        """Allow ``total`` concurrent calls, and half of them for each path if there are several."""
        self._total = total
        self._each = total if paths == 1 else total // 2
        self._running: Counter[str] = Counter()

    async def call(self, handler: RequestHandler, request: Request) -> Response:
        """Return the handler's response, or 429 if too many calls are being handled."""
        path = request.path
        if self._running.total() >= self._total or self._running[path] >= self._each:
            return Response(HTTPStatus.TOO_MANY_REQUESTS, b"", retry_after=1)
        self._running[path] += 1
        try:
            return await handler(request)
        finally:
            self._running[path] -= 1
            if not self._running[path]:
                del self._running[path]


class WebhookServer:
    """Listens once there is a valid certificate, and uses each newer certificate."""

    def __init__(
        self, options: WebhookOptions, metrics: Metrics, limits: HTTPLimits = LIMITS
    ) -> None:
        self._options = options
        self._limits = limits
        self._server: HTTPServer | None = None
        self._certificates = Certificates(
            CertificateFiles(
                directory=options.certificates,
                certificate=options.certificate,
                key=options.key,
                client_authority=options.client_authority,
            ),
            metrics,
            "webhook",
            options.tls,
        )
        self.port = 0
        """Port that the server listens on, or 0 if it is not listening."""

    @property
    def ready(self) -> bool:
        """Return whether the server is listening.

        A Service forwards requests only to ready pods.
        """
        return self.port > 0

    @property
    def ca_bundle(self) -> bytes:
        """Return the CA bundle that clients need to verify the current certificate."""
        return self._certificates.ca_bundle

    @asynccontextmanager
    async def listening(self, handler: RequestHandler) -> AsyncIterator[None]:
        """Return a context manager that listens during its block, once there is a certificate.

        Entering it waits for the first certificate.
        """
        # No listener without a certificate: the pod is not ready, and its Service sends no calls to
        # it.
        while not self._certificates.refresh():
            await asyncio.sleep(POLL_SECONDS)
        server = HTTPServer(self._options.host, self._options.port, handler, self._limits)
        self.port = await server.start(self._certificates.server_context())
        self._server = server
        try:
            yield
        finally:
            self.port, self._server = 0, None
            await server.close()

    async def drain(self) -> None:
        """Keep serving until clients have had time to find another server.

        Returns immediately if the server is not listening. In the meantime the process is not
        ready, so that its Service forwards no new connections, and each connection is closed after
        its next response.
        """
        if self._server is not None:
            self._server.drain()
            await asyncio.sleep(self._options.shutdown_delay)

    async def watch_certificate(self, timeout: float = math.inf) -> None:
        """Wait until the server uses a new certificate, or ``timeout`` seconds have passed."""
        end = monotonic() + timeout
        while (left := end - monotonic()) > 0:
            await asyncio.sleep(min(left, POLL_SECONDS))
            if self._certificates.refresh():
                _log.info("another certificate is served")
                return


class WebhookGroup(ControllerGroup):
    """Serves a manager's webhook routes, on the leader and on all replicas.

    A manager's first group serves the routes of all groups, because there is only one port. It
    serves from the first certificate until the process exits, and does not wait for informers.
    """

    def __init__(self, options: WebhookOptions, metrics: Metrics) -> None:
        self._server = WebhookServer(options, metrics)
        self._members: Sequence[WebhookGroup] = (self,)
        self._calls = CallLimits(paths=1)
        self._measured = WebhookMetrics(metrics)

    @property
    def routes(self) -> Mapping[str, RequestHandler]:
        """Return this webhook's handlers, keyed by URL path and called only for POST requests."""
        raise NotImplementedError

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Serve the routes of all webhook groups if this group is the first, otherwise none."""
        members = [group for group in groups if isinstance(group, WebhookGroup)]
        self._members = members if members[0] is self else ()
        # Each webhook has a share: validators that wait for a cloud must not stop conversions.
        self._calls = CallLimits(_HANDLED // len(members), paths=len(self.routes))
        for path in self.routes:
            self._measured.register(path)

    @property
    def port(self) -> int:
        """Return the port that the server listens on, or 0 if it is not listening."""
        return self._server.port

    @property
    def ready(self) -> bool:
        """Return whether this group's server is listening, or True if the group has no server."""
        return self._server.ready or not self._members

    @property
    def runnables(self) -> Sequence[Runnable]:
        """Return the server, which runs until the process exits."""
        return (self._serve,) if self._members else ()

    async def drain(self) -> None:
        """Serve until clients have been redirected, if this group has the server."""
        await self._server.drain()

    async def handle(self, request: Request) -> Response:
        """Return the response to a request from the API server."""
        for member in self._members:
            handler = member.routes.get(request.path)
            if handler is not None:
                if request.method != "POST":
                    return text_response(HTTPStatus.METHOD_NOT_ALLOWED, allow="POST")
                with self._measured.measure(request.path) as count:
                    response = await member._calls.call(handler, request)
                    count(response.status)
                    return response
        return text_response(HTTPStatus.NOT_FOUND)

    async def _serve(self) -> None:
        async with self._server.listening(self.handle):
            paths = ", ".join(path for member in self._members for path in member.routes)
            _log.info("serving", port=self.port, paths=paths)
            while True:
                await self._server.watch_certificate()
