"""The servers for probes and metrics.

Metrics are served in one of two ways:

- Over HTTPS, to clients that the management cluster authorizes, if there are certificate files.  A
  self-signed certificate would need a cryptography library in each manager, and no client could
  verify it.
- Over HTTP if there is no certificate: only to clients on this host, unless the user allows all.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from capsmith_runtime.errors import ApiError
from capsmith_runtime.kube.certificates import CertificateFiles, Certificates
from capsmith_runtime.kube.client import KubeClient, ResourceType
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.http_server import (
    HTTPLimits,
    HTTPServer,
    Request,
    Response,
    text_response,
)
from capsmith_runtime.kube.log import get_logger, get_verbosity, set_verbosity
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.state_dump import describe_process
from capsmith_runtime.kube.tls import DEFAULT_TLS, TLSOptions
from capsmith_runtime.kube.token_buckets import TokenBuckets

Check = Callable[[], bool]

LIMITS: Final = HTTPLimits(
    head_bytes=8 * 1024,
    body_bytes=8 * 1024,
    request_seconds=5.0,
    idle_seconds=0.0,
    # Kubernetes waits ten seconds longer than controllers get to stop.
    stop_seconds=1.0,
)
DEBUG_PREFIX: Final = "/debug/"
"""Prefix of the debug paths; those that Cluster API also has use the same names."""
LOG_LEVEL: Final = "/debug/flags/v"
"""Path of the log level: GET returns the verbosity, and PUT sets it, like klog's ``-v``."""
DUMP: Final = "/debug/dump"
"""Path of the report on the process's tasks, threads and memory."""
_MAX_VERBOSITY: Final = 10
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
_FORBIDDEN: Final = (
    "metrics are served on localhost only: set --diagnostics-cert-dir or --insecure-diagnostics"
)
_DEBUG_FORBIDDEN = "without HTTPS only clients on localhost may use it: set --diagnostics-cert-dir"


def parse_address(address: str) -> tuple[str | None, int]:
    """Split `host:port`, `[v6]:port` or `:port` (all interfaces) into host and port.

    Raises ValueError for any other string.
    """
    host, separator, port = address.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    plausible = port.isdecimal() and int(port) <= 0xFFFF and (bare != host or ":" not in host)
    if not separator or not plausible:
        raise ValueError(f"not an address of the form host:port: {address!r}")
    return bare or None, int(port)


# HTTP clients are not authenticated, so only clients on this host, such as a port-forward, get
# metrics unless the user allows all.
class DiagnosticsServer:
    """Serves probes and metrics until closed.

    The process counts as ready or healthy while all of the respective checks pass. Each check also
    has its own path, ``/readyz/NAME`` or ``/healthz/NAME``.
    """

    def __init__(
        self,
        address: str,
        metrics: Metrics | None,
        checks: Mapping[str, Check],
        limits: HTTPLimits = LIMITS,
        *,
        health: Mapping[str, Check] = {},
        insecure: bool = False,
    ) -> None:
        """Initialise without listening.

        If ``metrics`` is None, the path ``/metrics`` does not exist. If ``insecure`` is set, all
        clients can read metrics, otherwise only clients on this host.
        """
        self._insecure = insecure
        self._metrics = metrics
        self._checks = checks
        self._health = health
        self._server = HTTPServer(*parse_address(address), self._handle, limits)

    async def start(self) -> int:
        """Start listening and return the port, which the system chooses if port 0 was requested."""
        return await self._server.start()

    async def close(self) -> None:
        """Stop listening; requests that are being handled may finish."""
        await self._server.close()

    async def _handle(self, request: Request) -> Response:
        if request.path.startswith(DEBUG_PREFIX) and self._metrics is not None:
            # Never to other hosts over HTTP, even if they may read metrics.
            if not _is_loopback(request.peer):
                return text_response(HTTPStatus.FORBIDDEN, _DEBUG_FORBIDDEN)
            return await _handle_debug_request(request)
        if request.method not in ("GET", "HEAD"):
            return text_response(HTTPStatus.METHOD_NOT_ALLOWED)
        if request.path == "/metrics" and self._metrics is not None:
            if not self._insecure and not _is_loopback(request.peer):
                return text_response(HTTPStatus.FORBIDDEN, _FORBIDDEN)
            return render_metrics(self._metrics)
        for path, problem, checks in (
            ("/healthz", "not healthy", self._health),
            ("/readyz", "not ready", self._checks),
        ):
            parent, _, name = request.path.rpartition("/")
            if request.path == path:
                return _result(problem, checks)
            if parent == path and name in checks:
                return _result(problem, {name: checks[name]})
        return text_response(HTTPStatus.NOT_FOUND)


def render_metrics(metrics: Metrics) -> Response:
    """Return the metrics in Prometheus text format."""
    return Response(HTTPStatus.OK, metrics.render(), _METRICS)


def _result(problem: str, checks: Mapping[str, Check]) -> Response:
    failed = [f"{problem}: {name}" for name, check in checks.items() if not check()]
    if failed:
        return text_response(HTTPStatus.SERVICE_UNAVAILABLE, "\n".join(failed))
    return text_response(HTTPStatus.OK, "ok")


def _is_loopback(peer: str) -> bool:
    # The zone of a link-local IPv6 address is not part of the address.
    return bool(peer) and ip_address(peer.partition("%")[0]).is_loopback


_TOKEN_REVIEW: Final = ResourceType(
    "authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False
)
_ACCESS_REVIEW: Final = ResourceType(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)
GRANTED_SECONDS: Final = 60.0
"""Seconds for which access stays granted after a token or permission has been revoked."""
DENIED_SECONDS: Final = 10.0
CACHE_ENTRIES: Final = 256
"""Maximum number each of cached grants, cached denials and rate-limited clients.

The limit is needed because clients can send any number of different tokens.
"""
REMEMBERED_SECONDS: Final = 3600.0
"""Seconds after a token was accepted during which it is exempt from the rate limit."""
UNKNOWN_PER_SECOND: Final = 1.0
"""Maximum reviews of unknown tokens per second that a single client may cause."""
UNKNOWN_BURST: Final = 10
"""Maximum reviews of unknown tokens that a single client may cause in one burst."""


def _drop_oldest(entries: dict[str, Any]) -> None:
    while len(entries) > CACHE_ENTRIES:
        del entries[next(iter(entries))]


# A client authenticates with a bearer token (TokenReview), and needs the permission for the path
# (SubjectAccessReview), as with controller-runtime's WithAuthenticationAndAuthorization.
class AccessReviewer:
    """Asks the API server whether clients may read metrics.

    Decisions are cached for a short time.  Tokens that were never granted are reviewed at a limited
    rate for each client: any Pod can send them, and the controllers share the API server.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._granted: dict[str, float] = {}
        """Time of the last grant for each token's digest; the tokens themselves are not kept."""
        self._denied: dict[str, tuple[float, HTTPStatus]] = {}
        """Expiry time and status for each rejected token's digest.

        Kept apart from granted tokens, so that a client with many tokens cannot displace those.
        """
        self._rate = TokenBuckets(UNKNOWN_PER_SECOND, UNKNOWN_BURST, CACHE_ENTRIES)

    async def review(
        self, authorization: str, method: str, path: str, peer: str = ""
    ) -> HTTPStatus:
        """Return OK, UNAUTHORIZED or FORBIDDEN for the value of an Authorization header.

        Returns TOO_MANY_REQUESTS if the client with the address ``peer`` sends too many unknown
        tokens. Raises ApiError if the API server makes no decision.
        """
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return HTTPStatus.UNAUTHORIZED
        verb = method.lower()
        key = hashlib.sha256(f"{verb}\n{path}\n{token}".encode()).hexdigest()
        granted = self._granted.get(key, -math.inf)
        if granted + GRANTED_SECONDS > monotonic():
            return HTTPStatus.OK
        expires, status = self._denied.get(key, (-math.inf, HTTPStatus.UNAUTHORIZED))
        if expires > monotonic():
            return status
        if granted + REMEMBERED_SECONDS <= monotonic() and not self._rate.take(peer):
            return HTTPStatus.TOO_MANY_REQUESTS
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
        # Inserted again at the end, so that the oldest decisions are dropped first.
        self._granted.pop(key, None)
        self._denied.pop(key, None)
        if status is HTTPStatus.OK:
            self._granted[key] = monotonic()
            _drop_oldest(self._granted)
        else:
            self._denied[key] = (monotonic() + DENIED_SECONDS, status)
            _drop_oldest(self._denied)


def _review(resource: ResourceType, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {},
        "spec": dict(spec),
    }


_log = get_logger("diagnostics")

POLL_SECONDS: Final = 5.0
"""Seconds between two checks of the certificate files, because no event reports a replacement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticsOptions:
    """Where and how a manager serves its probes and metrics."""

    address: str
    """Address of the metrics server."""
    health_address: str = ""
    """Address of the probe server, or empty to serve probes on the metrics address without TLS."""
    certificates: Path | None = None
    """Folder with the certificate files, or None to serve metrics over HTTP.

    As soon as the folder contains a certificate, metrics are served over HTTPS only.
    """
    insecure: bool = False
    """Whether metrics that are served over HTTP are open to all clients, not only to this host."""
    tls: TLSOptions = DEFAULT_TLS


class Diagnostics:
    """The probe and metrics servers of one manager."""

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
        """Start listening; metrics over HTTPS follow when :meth:`run` finds a certificate."""
        for server in self._servers.values():
            await server.start()

    async def run(self) -> None:
        """Serve metrics over HTTPS as soon as there is a certificate; runs until cancelled.

        If there is no folder for certificates, or if metrics are served without TLS, it only waits.
        """
        folder = self._options.certificates
        if folder is None or self._options.insecure:
            await asyncio.Event().wait()
            return
        files = CertificateFiles(directory=folder)
        certificates = Certificates(files, self._metrics, "metrics", self._options.tls)
        # A missing file does not deserve a warning: without a certificate, metrics are served over
        # HTTP.
        while not ((folder / files.certificate).exists() and certificates.refresh()):
            await asyncio.sleep(POLL_SECONDS)
        # Close it first, because the HTTPS server listens on the same address.
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
        is_debug = request.path.startswith(DEBUG_PREFIX)
        if not is_debug and request.method not in ("GET", "HEAD"):
            return text_response(HTTPStatus.METHOD_NOT_ALLOWED)
        if not is_debug and request.path != "/metrics":
            return text_response(HTTPStatus.NOT_FOUND)
        try:
            status = await self._reviewer.review(
                request.authorization, request.method, request.path, request.peer
            )
        except ApiError as error:
            _log.warning("cannot review access", path=request.path, error=str(error))
            return text_response(HTTPStatus.SERVICE_UNAVAILABLE)
        if status is HTTPStatus.TOO_MANY_REQUESTS:
            return replace(text_response(status), retry_after=math.ceil(1 / UNKNOWN_PER_SECOND))
        if status is not HTTPStatus.OK:
            return text_response(status)
        return await _handle_debug_request(request) if is_debug else render_metrics(self._metrics)


async def _handle_debug_request(request: Request) -> Response:
    """Return the response to an authorized request whose path begins with `DEBUG_PREFIX`."""
    if request.path == LOG_LEVEL:
        return _handle_log_level(request)
    if request.path != DUMP:
        return text_response(HTTPStatus.NOT_FOUND)
    if request.method not in ("GET", "HEAD"):
        return text_response(HTTPStatus.METHOD_NOT_ALLOWED, allow="GET")
    return text_response(HTTPStatus.OK, (await describe_process()).rstrip("\n"))


def _handle_log_level(request: Request) -> Response:
    if request.method in ("GET", "HEAD"):
        return text_response(HTTPStatus.OK, str(get_verbosity()))
    if request.method != "PUT":
        return text_response(HTTPStatus.METHOD_NOT_ALLOWED, allow="GET, PUT")
    digits = request.body.strip()
    if not digits.isdigit() or int(digits[:3]) > _MAX_VERBOSITY or len(digits) > 2:
        message = f"the body must be a verbosity from 0 to {_MAX_VERBOSITY}"
        return text_response(HTTPStatus.BAD_REQUEST, message)
    before, level = get_verbosity(), int(digits)
    set_verbosity(level)
    _log.info("the verbosity has changed", before=before, verbosity=level)
    return text_response(HTTPStatus.OK, f"verbosity is {level}")
