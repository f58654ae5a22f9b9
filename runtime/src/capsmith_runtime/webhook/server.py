"""The HTTPS server of webhooks, which follows its certificate files."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from capsmith_runtime.kube.certificates import CertificateFiles, Certificates
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.http_server import HTTPServer, RequestHandler
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
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
