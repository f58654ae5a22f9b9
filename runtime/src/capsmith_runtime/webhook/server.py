"""The HTTPS server of webhooks, which follows its certificate files; all of a manager share one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from capsmith_runtime.kube.certificates import CertificateFiles, Certificates
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.http_server import (
    HTTPServer,
    Request,
    RequestHandler,
    Response,
    text_response,
)
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.groups import ControllerGroup, Runnable
from capsmith_runtime.webhook.options import WebhookOptions

_log = get_logger("webhook")

POLL_SECONDS: Final = 5.0
"""Between two checks of the certificate files: their replacement raises no event."""


class WebhookServer:
    """Listens from the first valid certificate on, and serves each newer one."""

    def __init__(self, options: WebhookOptions, metrics: Metrics) -> None:
        self._options = options
        self._certificates = Certificates(
            CertificateFiles(
                directory=options.certificates,
                certificate=options.certificate,
                key=options.key,
                client_authority=options.client_authority,
            ),
            metrics,
            "webhook",
        )
        self.port = 0
        """The port on which it listens; 0 while it does not."""

    @property
    def ready(self) -> bool:
        """Whether it listens: a Service forwards requests only to pods that are ready."""
        return self.port > 0

    @property
    def ca_bundle(self) -> bytes:
        """The CA bundle with which clients accept the current certificate."""
        return self._certificates.ca_bundle

    @asynccontextmanager
    async def listening(self, handler: RequestHandler) -> AsyncIterator[None]:
        """Wait for the first certificate, then listen until the block ends."""
        while not self._certificates.refresh():
            await asyncio.sleep(POLL_SECONDS)
        server = HTTPServer(self._options.host, self._options.port, handler)
        self.port = await server.start(self._certificates.server_context())
        try:
            yield
        finally:
            self.port = 0
            await server.close()

    async def watch_certificate(self, timeout: float = math.inf) -> None:
        """Return when another certificate is served, or after ``timeout`` seconds."""
        end = monotonic() + timeout
        while (left := end - monotonic()) > 0:
            await asyncio.sleep(min(left, POLL_SECONDS))
            if self._certificates.refresh():
                _log.info("another certificate is served")
                return


class WebhookGroup(ControllerGroup):
    """Serves the routes of the webhooks of a manager, on the leader and on all others.

    The first group of a manager serves the routes of all groups: there is one port.  It serves from
    the first certificate until the process ends, and does not wait for informers.
    """

    def __init__(self, options: WebhookOptions, metrics: Metrics) -> None:
        self._server = WebhookServer(options, metrics)
        self._members: Sequence[WebhookGroup] = (self,)

    @property
    def routes(self) -> Mapping[str, RequestHandler]:
        """The handlers of this webhook by path; they receive POST requests only."""
        raise NotImplementedError

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Serve the routes of all webhook groups, or leave this group's to the first one."""
        members = [group for group in groups if isinstance(group, WebhookGroup)]
        self._members = members if members[0] is self else ()

    @property
    def port(self) -> int:
        """The port on which it listens; 0 while it does not."""
        return self._server.port

    @property
    def ready(self) -> bool:
        """Whether the server of this group listens, if it has one."""
        return self._server.ready or not self._members

    @property
    def runnables(self) -> Sequence[Runnable]:
        """Return the server, which runs until the process ends."""
        return (self._serve,) if self._members else ()

    async def handle(self, request: Request) -> Response:
        """Return the response to one request of the API server."""
        for member in self._members:
            handler = member.routes.get(request.path)
            if handler is not None:
                if request.method != "POST":
                    return text_response(HTTPStatus.METHOD_NOT_ALLOWED, allow="POST")
                return await handler(request)
        return text_response(HTTPStatus.NOT_FOUND)

    async def _serve(self) -> None:
        async with self._server.listening(self.handle):
            paths = ", ".join(path for member in self._members for path in member.routes)
            _log.info("serving", port=self.port, paths=paths)
            while True:
                await self._server.watch_certificate()
