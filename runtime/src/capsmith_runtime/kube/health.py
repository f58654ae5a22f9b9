"""Probes and metrics of a manager by HTTP: /healthz, /readyz and /metrics.

There is no authentication either, so only clients on this host, such as a port-forward, get metrics
unless the user allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from capsmith_runtime.kube.http_connection import Limits, Request, Response, text_response
from capsmith_runtime.kube.http_server import HTTPServer
from capsmith_runtime.kube.metrics import Metrics

Check = Callable[[], bool]

LIMITS: Final = Limits(
    head_bytes=8 * 1024,
    body_bytes=8 * 1024,
    request_seconds=5.0,
    idle_seconds=0.0,
    # Kubernetes grants ten seconds more than controllers get to stop.
    stop_seconds=1.0,
)
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
_FORBIDDEN: Final = (
    "metrics are served on localhost only: set --diagnostics-cert-dir or --insecure-diagnostics"
)


def parse_address(address: str) -> tuple[str | None, int]:
    """Split `host:port`, `[v6]:port` or `:port` (all interfaces); raise ValueError otherwise."""
    host, separator, port = address.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    plausible = port.isdecimal() and int(port) <= 0xFFFF and (bare != host or ":" not in host)
    if not separator or not plausible:
        raise ValueError(f"not an address of the form host:port: {address!r}")
    return bare or None, int(port)


class DiagnosticsServer:
    """Serves until closed.  The manager is ready, and healthy, when all named checks pass."""

    def __init__(
        self,
        address: str,
        metrics: Metrics | None,
        checks: Mapping[str, Check],
        limits: Limits = LIMITS,
        *,
        health: Mapping[str, Check] = {},
        insecure: bool = False,
    ) -> None:
        """With ``insecure`` all clients get metrics, not only those on this host.

        Without ``metrics`` there is no path ``/metrics``.
        """
        self._insecure = insecure
        self._metrics = metrics
        self._checks = checks
        self._health = health
        self._server = HTTPServer(*parse_address(address), self._handle, limits)

    async def start(self) -> int:
        """Listen; return the port, chosen by the system for port 0."""
        return await self._server.start()

    async def close(self) -> None:
        """Stop listening; requests that are being handled may finish."""
        await self._server.close()

    async def _handle(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return text_response(HTTPStatus.METHOD_NOT_ALLOWED)
        if request.path == "/metrics" and self._metrics is not None:
            if not self._insecure and not _is_loopback(request.peer):
                return text_response(HTTPStatus.FORBIDDEN, _FORBIDDEN)
            return metrics_response(self._metrics)
        if request.path == "/healthz":
            return _result("not healthy", self._health)
        if request.path == "/readyz":
            return _result("not ready", self._checks)
        return text_response(HTTPStatus.NOT_FOUND)


def metrics_response(metrics: Metrics) -> Response:
    """Return the metrics in the text format of Prometheus."""
    return Response(HTTPStatus.OK, metrics.render(), _METRICS)


def _result(problem: str, checks: Mapping[str, Check]) -> Response:
    failed = [f"{problem}: {name}" for name, check in checks.items() if not check()]
    if failed:
        return text_response(HTTPStatus.SERVICE_UNAVAILABLE, "\n".join(failed))
    return text_response(HTTPStatus.OK, "ok")


def _is_loopback(peer: str) -> bool:
    # The zone of a link-local IPv6 address is no part of the address.
    return bool(peer) and ip_address(peer.partition("%")[0]).is_loopback
