"""OpenTelemetry traces: a span for each reconcile, and for the calls and requests inside it.

OpenTelemetry is an optional dependency. It is imported only if the standard environment variables
request traces; without them each function here returns immediately. It is imported by name, so not
even type checkers need it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module, metadata
from types import TracebackType
from typing import Any, Final, Protocol

from capsmith_runtime.kube.log import describe_error, get_logger

_log = get_logger("tracing")
_NAME: Final = "capsmith_runtime"
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTERS: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
"""Exporters' entry points, keyed by protocol."""


class Span(Protocol):
    """A span that ends with the ``with`` block; an exception that leaves the block is recorded."""

    def __enter__(self) -> Span:
        """Make this the current span."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """End the span."""
        ...

    def set_status_code(self, code: int) -> None:
        """Record the HTTP status of a response."""
        ...

    def with_trace_context(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return request headers with the W3C trace context headers added."""
        ...


class _NoSpan:
    def __enter__(self) -> Span:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def set_status_code(self, code: int) -> None:
        return None

    def with_trace_context(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        return headers


class _RecordedSpan:
    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._span: Any = None

    def __enter__(self) -> Span:
        self._span = self._manager.__enter__()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        ended: bool | None = self._manager.__exit__(*error)
        return ended

    def set_status_code(self, code: int) -> None:
        self._span.set_attribute("http.response.status_code", code)

    def with_trace_context(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        extended = dict(headers)
        import_module("opentelemetry.propagate").inject(extended)
        return extended


_NO_SPAN: Final = _NoSpan()
_provider: Any = None
"""The provider that `start_tracing` created, which must be stopped."""
_tracer: Any = None
_api: Any = None


def start_tracing(service: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Start tracing if the environment requests it, and return whether spans are recorded.

    ``service`` is the name of the service, unless the environment names another. A tracer provider
    that the process has already set is used as it is. Call this before the first reconcile.
    """
    if not _is_requested(environment):
        return False
    try:
        api = import_module("opentelemetry.trace")
        if isinstance(api.get_tracer_provider(), api.ProxyTracerProvider):
            _create_provider(api, service, environment)
    except (ImportError, LookupError) as error:
        hint = "install the extra otel of capsmith-runtime, or unset the variables OTEL_*"
        _log.warning("no traces", error=repr(error), hint=hint)
        return False
    trace_with(api.get_tracer_provider())
    return True


def trace_with(provider: Any) -> None:
    """Create spans with an OpenTelemetry tracer provider; None stops creating spans."""
    global _api, _tracer
    if provider is None:
        _tracer = None
        return
    _api = import_module("opentelemetry.trace")
    _tracer = provider.get_tracer(_NAME)


def stop_tracing() -> None:
    """Export the remaining spans and stop; blocks for as long as the exporter needs."""
    global _provider
    provider, _provider = _provider, None
    trace_with(None)
    if provider is not None:
        provider.shutdown()


def reconcile_span(kind: str, key: object) -> Span:
    """Return a span for a reconcile of the object ``key``; it has no parent."""
    if _tracer is None:
        return _NO_SPAN
    attributes = {
        "reconcile.kind": kind,
        "k8s.namespace.name": getattr(key, "namespace", ""),
        "reconcile.name": getattr(key, "name", str(key)),
    }
    # A worker that was started by another one inherits its context, including the span of a
    # reconcile.
    context = import_module("opentelemetry.context").Context()
    return _RecordedSpan(
        _tracer.start_as_current_span(f"reconcile {kind}", context=context, attributes=attributes)
    )


def record_result(result: str, error: BaseException | None = None) -> None:
    """Record the result of the current reconcile, and the error that it ended with."""
    if _tracer is None:
        return
    span = _api.get_current_span()
    span.set_attribute("reconcile.result", result)
    if error is not None:
        span.record_exception(_printable(error))
        span.set_status(_api.Status(_api.StatusCode.ERROR, type(error).__name__))


def _printable(error: BaseException) -> BaseException:
    """Return the error, or another one with its description if its own text cannot be made."""
    try:
        str(error)
    except Exception:
        return RuntimeError(describe_error(error))
    return error


def call_span(name: str, identity: str) -> Span:
    """Return a span for a call to the author's code, for use within a reconcile."""
    if _tracer is None or not _is_traced():
        return _NO_SPAN
    attributes = {"code.function.name": name, "reconcile.identity": identity}
    return _RecordedSpan(_tracer.start_as_current_span(name, attributes=attributes))


def request_span(method: str, path: str) -> Span:
    """Return a span for a request to an API server, for use within a reconcile."""
    if _tracer is None or not _is_traced():
        return _NO_SPAN
    attributes = {"http.request.method": method, "url.path": path}
    kind = _api.SpanKind.CLIENT
    return _RecordedSpan(_tracer.start_as_current_span(method, kind=kind, attributes=attributes))


def _is_traced() -> bool:
    # Watches, leases and background tasks belong to no reconcile, and would be separate traces.
    return bool(_api.get_current_span().get_span_context().is_valid)


def _is_requested(environment: Mapping[str, str]) -> bool:
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    names = _exporter_names(environment)
    return bool(names) if names is not None else any(environment.get(each) for each in _ENDPOINTS)


def _exporter_names(environment: Mapping[str, str]) -> list[str] | None:
    """Return the exporters that OTEL_TRACES_EXPORTER names, or None if it is not set."""
    text = environment.get("OTEL_TRACES_EXPORTER", "")
    if not text.strip():
        return None
    names = [name.strip() for name in text.split(",")]
    return [name for name in names if name and name != "none"]


def _create_provider(api: Any, service: str, environment: Mapping[str, str]) -> None:
    global _provider
    # The SDK reads all other variables itself: sampler, limits, resource, endpoint, headers.
    named = "service.name=" in environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
    is_named = named or bool(environment.get("OTEL_SERVICE_NAME"))
    resource = import_module("opentelemetry.sdk.resources").Resource.create(
        {} if is_named else {"service.name": service}
    )
    provider = import_module("opentelemetry.sdk.trace").TracerProvider(
        resource=resource, shutdown_on_exit=False
    )
    processor = import_module("opentelemetry.sdk.trace.export").BatchSpanProcessor
    for name in _exporter_names(environment) or ["otlp"]:
        provider.add_span_processor(processor(_load_exporter(name, environment)()))
    api.set_tracer_provider(provider)
    _provider = provider


def _load_exporter(name: str, environment: Mapping[str, str]) -> Any:
    """Return the class of an exporter; raise LookupError if it is not installed."""
    if name == "otlp":
        protocols = (environment.get(each) for each in _PROTOCOLS)
        protocol = next(filter(None, protocols), "http/protobuf")
        name = _EXPORTERS.get(protocol, protocol)
    for found in metadata.entry_points(group="opentelemetry_traces_exporter", name=name):
        return found.load()
    raise LookupError(f"the exporter {name} of OpenTelemetry is not installed")
