"""The servers of probes and metrics.

Metrics are served in one of two ways:

- By HTTPS, to clients that the management cluster authorizes, with a certificate from files: a
  self-signed one, which no client can verify, would need a cryptography library in each manager.
- By HTTP while there is no certificate, to clients on this host only unless the user allows all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from capsmith_runtime.kube.access_review import AccessReviewer
from capsmith_runtime.kube.certificates import CertificateFiles, Certificates
from capsmith_runtime.kube.client import ApiError, KubeClient
from capsmith_runtime.kube.health import (
    LIMITS,
    Check,
    DiagnosticsServer,
    metrics_response,
    parse_address,
)
from capsmith_runtime.kube.http_connection import Request, Response, text_response
from capsmith_runtime.kube.http_server import HTTPServer
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics

_log = get_logger("diagnostics")

POLL_SECONDS: Final = 5.0
"""Between two checks of the certificate files: their replacement raises no event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticsOptions:
    """Where and how probes and metrics are served."""

    address: str
    """Of the metrics."""
    health_address: str = ""
    """Of the probes; empty for the address of the metrics, then without TLS."""
    certificates: Path | None = None
    """Folder in which to look for a certificate; with one, metrics are served by HTTPS only."""
    insecure: bool = False
    """Serve metrics by HTTP to all clients."""


class Diagnostics:
    """The servers of one manager."""

    def __init__(
        self,
        options: DiagnosticsOptions,
        client: KubeClient,
        metrics: Metrics,
        checks: Mapping[str, Check],
        health: Mapping[str, Check],
    ) -> None:
        self._options = options
        self._metrics = metrics
        self._reviewer = AccessReviewer(client)
        shown: dict[str, Metrics | None] = {options.address: metrics}
        shown.setdefault(options.health_address or options.address, None)
        self._servers = {
            address: DiagnosticsServer(
                address, found, checks, health=health, insecure=options.insecure
            )
            for address, found in shown.items()
        }

    async def start(self) -> None:
        """Listen, by HTTP."""
        for server in self._servers.values():
            await server.start()

    async def run(self) -> None:
        """Serve metrics by HTTPS as soon as there is a certificate, until cancelled."""
        folder = self._options.certificates
        if folder is None or self._options.insecure:
            await asyncio.Event().wait()
            return
        files = CertificateFiles(directory=folder)
        certificates = Certificates(files, self._metrics, "metrics")
        while not ((folder / files.certificate).exists() and certificates.refresh()):
            await asyncio.sleep(POLL_SECONDS)
        await self._servers.pop(self._options.address).close()
        server = HTTPServer(*parse_address(self._options.address), self._handle, LIMITS)
        await server.start(certificates.server_context())
        _log.info("metrics are served by HTTPS", address=self._options.address)
        try:
            while True:
                await asyncio.sleep(POLL_SECONDS)
                certificates.refresh()
        finally:
            await server.close()

    async def close(self) -> None:
        """Stop listening; requests that are being handled may finish."""
        for server in self._servers.values():
            await server.close()

    async def _handle(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return text_response(HTTPStatus.METHOD_NOT_ALLOWED)
        if request.path != "/metrics":
            return text_response(HTTPStatus.NOT_FOUND)
        try:
            status = await self._reviewer.review(
                request.authorization, request.method, request.path
            )
        except ApiError as error:
            _log.warning("cannot review access to metrics", error=str(error))
            return text_response(HTTPStatus.SERVICE_UNAVAILABLE)
        if status is not HTTPStatus.OK:
            return text_response(status)
        return metrics_response(self._metrics)
