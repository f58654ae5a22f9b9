"""The servers of probes and metrics.

Metrics are served in one of two ways:

- By HTTPS, to clients that the management cluster authorizes, with a certificate from files: a
  self-signed one, which no client can verify, would need a cryptography library in each manager.
- By HTTP while there is no certificate, to clients on this host only unless the user allows all.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from capsmith_runtime.kube.certificates import CertificateFiles, Certificates
from capsmith_runtime.kube.client import ApiError, KubeClient, ResourceType
from capsmith_runtime.kube.clock import monotonic
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

_TOKEN_REVIEW: Final = ResourceType(
    "authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False
)
_ACCESS_REVIEW: Final = ResourceType(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)
GRANTED_SECONDS: Final = 60.0
"""How long a revoked token or permission may still be accepted."""
DENIED_SECONDS: Final = 10.0
CACHE_ENTRIES: Final = 256
"""Clients can send any number of different tokens."""


# A client authenticates with a bearer token (TokenReview), and needs the permission for the path
# (SubjectAccessReview), as with controller-runtime's WithAuthenticationAndAuthorization.
class AccessReviewer:
    """Asks the API server, and remembers its decisions for a short time."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._decisions: dict[str, tuple[float, HTTPStatus]] = {}
        """Status and time of expiry by digest: tokens are not kept."""

    async def review(self, authorization: str, method: str, path: str) -> HTTPStatus:
        """Return OK, UNAUTHORIZED or FORBIDDEN for the value of an Authorization header.

        Raises ApiError if the API server makes no decision.
        """
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return HTTPStatus.UNAUTHORIZED
        verb = method.lower()
        key = hashlib.sha256(f"{verb}\n{path}\n{token}".encode()).hexdigest()
        expires, status = self._decisions.get(key, (0.0, HTTPStatus.UNAUTHORIZED))
        if expires > monotonic():
            return status
        status = await self._decide(token, verb, path)
        self._remember(key, status)
        return status

    async def _decide(self, token: str, verb: str, path: str) -> HTTPStatus:
        token_review = _review(_TOKEN_REVIEW, {"token": token})
        found = (await self._client.create(_TOKEN_REVIEW, token_review)).get("status") or {}
        if found.get("authenticated") is not True:
            return HTTPStatus.UNAUTHORIZED
        user = found.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            **{name: user[name] for name in ("uid", "groups", "extra") if name in user},
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        access_review = _review(_ACCESS_REVIEW, spec)
        decision = (await self._client.create(_ACCESS_REVIEW, access_review)).get("status") or {}
        return HTTPStatus.OK if decision.get("allowed") is True else HTTPStatus.FORBIDDEN

    def _remember(self, key: str, status: HTTPStatus) -> None:
        seconds = GRANTED_SECONDS if status is HTTPStatus.OK else DENIED_SECONDS
        self._decisions.pop(key, None)
        self._decisions[key] = (monotonic() + seconds, status)
        while len(self._decisions) > CACHE_ENTRIES:
            del self._decisions[next(iter(self._decisions))]


def _review(resource: ResourceType, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {},
        "spec": dict(spec),
    }


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
