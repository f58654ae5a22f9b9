"""Routes each request to its hook method, and encodes the result as a response."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec

from capsmith_runtime.api.serialization import DecodingError
from capsmith_runtime.contract.model import shorten_message
from capsmith_runtime.errors import error_label
from capsmith_runtime.extension.responses import Codec, HookError
from capsmith_runtime.kube.executor import (
    HandlerExecutor,
    HooksExhaustedError,
    HookTimeoutError,
    TracebackLimiter,
)
from capsmith_runtime.kube.http_server import Request, Response, text_response
from capsmith_runtime.kube.log import describe_error, get_logger, read_message
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.results import describe_unexpected_result
from capsmith_runtime.webhook.large_requests import (
    LARGE_BYTES,
    LargeRequests,
    RequestsBusyError,
    compute,
)

_log = get_logger("hooks")

API_VERSION: Final = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
_ROOT: Final = f"/{API_VERSION}/"
DISCOVERY: Final = "Discovery"
MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of requests in bytes: those of large topologies have several megabytes.

Each request contains every template with its variables.
"""
_MAX_WAIT_SECONDS: Final = 10.0
"""Maximum seconds that a large request for Discovery waits for others."""
_MARGIN_SECONDS: Final = 0.5
"""Seconds of core's timeout that are reserved for the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A runtime hook, and the method in the author's extension that handles it."""

    hook: str
    name: str
    """Name of the handler, unique in this extension.

    ClusterClasses use ``<name>.<ExtensionConfig>`` (RX-04).
    """
    method: str
    """Name of the method in the extension class."""
    codec: Codec
    timeout_seconds: int = 10
    ignore_failures: bool = False
    """Whether core continues if the call fails, as ``failurePolicy`` specifies."""
    since_v1beta2: bool = False
    """Whether the hook exists only in core with runtime.cluster.x-k8s.io/v1beta2 (RX-05)."""

    @property
    def path(self) -> str:
        """Return the path that core calls (RX-03)."""
        return f"{_ROOT}{self.hook.lower()}/{self.name.lower()}"


class Dispatcher:
    """Calls the author's method for each hook request, and turns every error into a response."""

    def __init__(
        self, extension: object, handlers: Iterable[Handler], metrics: Metrics, *, threads: int
    ) -> None:
        self._extension = extension
        self._handlers = {handler.path: handler for handler in handlers}
        self._metrics = metrics
        self._tracebacks = TracebackLimiter()
        self._large = LargeRequests(MAX_BODY_BYTES)
        # Each hook has its own threads: one that hangs must not block the others.
        self._executors = {
            path: HandlerExecutor(
                metrics, threads=threads, timeout=handler.timeout_seconds - _MARGIN_SECONDS
            )
            for path, handler in self._handlers.items()
        }

    @property
    def is_healthy(self) -> bool:
        """Return whether all hooks can be called."""
        return all(executor.is_healthy for executor in self._executors.values())

    async def handle(self, request: Request) -> Response:
        """Return the response to a request (RX-03)."""
        handler = self._handlers.get(request.path)
        # Discovery is not a hook of the extension: core calls it to learn the handlers.
        if handler is None and request.path != f"{_ROOT}{DISCOVERY.lower()}":
            return text_response(HTTPStatus.NOT_FOUND)
        if request.method != "POST":
            return text_response(HTTPStatus.METHOD_NOT_ALLOWED, allow="POST")
        limit = _MAX_WAIT_SECONDS if handler is None else handler.timeout_seconds - _MARGIN_SECONDS
        try:
            async with self._large.admit(len(request.body), limit):
                return await self._handle(handler, request.body)
        except RequestsBusyError:
            return Response(HTTPStatus.TOO_MANY_REQUESTS, b"", retry_after=1)

    async def _handle(self, handler: Handler | None, content: bytes) -> Response:
        """Return the response to a call of a hook, or of Discovery if ``handler`` is None."""
        is_large = len(content) >= LARGE_BYTES
        try:
            body = await compute(is_large, _decode, content)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            return text_response(HTTPStatus.BAD_REQUEST, str(error))
        if handler is None:
            handlers = [_description(handler) for handler in self._handlers.values()]
            return _success(DISCOVERY, {"handlers": handlers})
        began = time.monotonic()
        response = await self._call(handler, body, is_large)
        seconds = time.monotonic() - began
        self._metrics.reconcile_seconds.labels(handler.hook).observe(seconds)
        _log.debug("answered", hook=handler.hook, status=response.status.value, seconds=seconds)
        return response

    async def _call(self, handler: Handler, body: dict[str, Any], is_large: bool) -> Response:
        try:
            request = await compute(is_large, handler.codec.read, body)
            method = getattr(self._extension, handler.method)
            result = await self._executors[handler.path].call(method, request)
            if not isinstance(result, handler.codec.results):
                raise TypeError(describe_unexpected_result(method, result, *handler.codec.results))
            fields = await compute(is_large, handler.codec.write, result, request)
            return await compute(is_large, _success, handler.hook, fields)
        except (HookError, DecodingError) as error:
            message = read_message(error)
            _log.info("hook says no", hook=handler.hook, message=message)
            return _failure(handler.hook, message)
        except (HookTimeoutError, HooksExhaustedError) as error:
            return self._failed_call(handler, error, f"{handler.method} took too long")
        except Exception as error:
            # Core writes messages into conditions and reconciles when they change, and the text of
            # an unexpected error may differ from call to call: only its type is reported.
            name = type(error).__name__
            return self._failed_call(handler, error, f"{handler.method} raised {name}")

    def _failed_call(self, handler: Handler, error: Exception, message: str) -> Response:
        """Return a response of status Failure, or an HTTP error if core may ignore the failure.

        Core's failurePolicy covers only calls that fail, never a response of status Failure.
        """
        self._metrics.reconcile_errors.labels(handler.hook, error_label(error)).inc()
        trace = self._tracebacks.of(error)
        _log.error("hook failed", hook=handler.hook, error=describe_error(error), exc_info=trace)
        message = f"{message}: see the log of the extension"
        if handler.ignore_failures:
            return text_response(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        return _failure(handler.hook, message)


def _decode(content: bytes) -> dict[str, Any]:
    return msgspec.json.decode(content, type=dict[str, Any])


def _description(handler: Handler) -> dict[str, Any]:
    return {
        "name": handler.name,
        "requestHook": {"apiVersion": API_VERSION, "hook": handler.hook},
        # Core uses these values for its calls, so they come from the same source as our own limits.
        "timeoutSeconds": handler.timeout_seconds,
        "failurePolicy": "Ignore" if handler.ignore_failures else "Fail",
    }


def _success(hook: str, fields: dict[str, Any]) -> Response:
    return _response(hook, {"status": "Success", **fields})


def _failure(hook: str, message: str) -> Response:
    # A message that cannot be encoded, or is too long for a condition, would hide the failure.
    text = shorten_message(message.encode(errors="replace").decode())
    return _response(hook, {"status": "Failure", "message": text})


def _response(hook: str, fields: dict[str, Any]) -> Response:
    body = {"apiVersion": API_VERSION, "kind": f"{hook}Response", **fields}
    # The same result must give the same bytes (RX-06).
    return Response(HTTPStatus.OK, msgspec.json.encode(body, order="deterministic"))
