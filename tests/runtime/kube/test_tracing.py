"""OpenTelemetry traces of reconciles, with the SDK's exporter that keeps spans in memory."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube import tracing
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.controller import Controller, Result
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.requeue import DeferredError
from capsmith_runtime.kube.workqueue import WorkQueue
from tests.runtime.support.author_errors import UnprintableError
from tests.runtime.support.following import WIDGET, connected
from tests.runtime.support.proxy import FaultProxy
from tests.runtime.support.server import Api
from tests.runtime.support.waiting import eventually, running

KEY = NamespacedName("team-a", "some")
CODE = """
import sys
import capsmith_runtime.manager
from capsmith_runtime.kube import tracing

assert not tracing.start_tracing("acme", {})
assert "opentelemetry" not in sys.modules
assert tracing.start_tracing("infrastructure-acme", {"OTEL_TRACES_EXPORTER": "console"})
with tracing.reconcile_span("AcmeMachine", "some"):
    pass
tracing.stop_tracing()
"""


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """Record all spans of the test."""
    found, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(found))
    tracing.trace_with(provider)
    yield found
    tracing.trace_with(None)
    provider.shutdown()


async def reconcile_once(
    reconcile: Callable[[NamespacedName], Awaitable[Result]], exporter: InMemorySpanExporter
) -> ReadableSpan:
    """Reconcile KEY, and return the span of the reconcile."""
    metrics = Metrics()
    queue: WorkQueue[NamespacedName] = WorkQueue("AcmeMachine", metrics)
    made = Controller("AcmeMachine", queue, reconcile, metrics, concurrency=1)
    queue.add(KEY)
    async with running(made.run()):
        await eventually(lambda: roots(exporter), what="the span of the reconcile")
    return roots(exporter)[0]


def roots(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    """Return the finished spans without a parent."""
    return [span for span in exporter.get_finished_spans() if span.parent is None]


def children(exporter: InMemorySpanExporter, span: ReadableSpan) -> list[ReadableSpan]:
    """Return the finished spans directly inside ``span``."""
    own = span.context.span_id
    return [s for s in exporter.get_finished_spans() if s.parent and s.parent.span_id == own]


def create_server() -> int:
    """Return the trace in which the author's synchronous code runs."""
    return trace.get_current_span().get_span_context().trace_id


async def create_network() -> int:
    """Return the trace in which the author's asynchronous code runs."""
    return trace.get_current_span().get_span_context().trace_id


async def test_calls_of_author_code_are_inside_the_reconcile(
    exporter: InMemorySpanExporter,
) -> None:
    """The span of a reconcile names its object; author code continues the trace in its thread."""
    executor, traces = HandlerExecutor(Metrics()), []

    async def reconcile(key: NamespacedName) -> Result:
        traces.append(await executor.call(create_server, tenant="AcmeIdentity/one"))
        traces.append(await executor.call(create_network))
        return Result()

    span = await reconcile_once(reconcile, exporter)

    assert span.name == "reconcile AcmeMachine"
    assert span.attributes == {
        "reconcile.kind": "AcmeMachine",
        "k8s.namespace.name": "team-a",
        "reconcile.name": "some",
        "reconcile.result": "success",
    }
    calls = children(exporter, span)
    assert [call.name for call in calls] == ["create_server", "create_network"]
    assert (calls[0].attributes or {})["reconcile.identity"] == "AcmeIdentity/one"
    assert traces == [span.context.trace_id] * 2


@pytest.mark.parametrize(
    ("error", "result", "is_error"),
    [
        (ValueError("out of quota"), "error", True),
        (UnprintableError(), "error", True),
        (DeferredError("its turn comes later", seconds=60.0), "requeue_after", False),
    ],
    ids=["failure", "unprintable failure", "deferral"],
)
async def test_results_of_reconciles_that_raise(
    exporter: InMemorySpanExporter, error: Exception, result: str, is_error: bool
) -> None:
    """A failure is recorded with its exception; a reconcile that waits has not failed."""

    async def reconcile(key: NamespacedName) -> Result:
        raise error

    span = await reconcile_once(reconcile, exporter)

    assert (span.attributes or {})["reconcile.result"] == result
    assert [event.name for event in span.events] == ["exception"] * is_error
    assert (span.status.status_code is trace.StatusCode.ERROR) is is_error


async def test_a_worker_that_replaces_a_slow_one_begins_new_traces(
    exporter: InMemorySpanExporter,
) -> None:
    """Tasks inherit the current span; the span of a reconcile has no parent all the same."""
    with tracing.reconcile_span("AcmeCluster", KEY):

        async def reconcile(key: NamespacedName) -> Result:
            return Result()

        await asyncio.create_task(reconcile_once(reconcile, exporter))
    assert {span.name for span in roots(exporter)} == {
        "reconcile AcmeCluster",
        "reconcile AcmeMachine",
    }


async def test_requests_carry_the_trace_to_the_api_server(
    exporter: InMemorySpanExporter, api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """Requests of a reconcile have spans and W3C trace context; requests outside of it have not."""
    async with connected(kubeconfig) as client:
        await client.served_versions(WIDGET.group)

        async def reconcile(key: NamespacedName) -> Result:
            with pytest.raises(NotFoundError):
                await client.get(WIDGET, NamespacedName(namespace, "none"))
            return Result()

        span = await reconcile_once(reconcile, exporter)
    (request,) = children(exporter, span)
    assert (request.name, request.kind) == ("GET", trace.SpanKind.CLIENT)
    assert request.attributes == {
        "http.request.method": "GET",
        "url.path": WIDGET.path(namespace, "none"),
        "http.response.status_code": 404,
    }
    before, inside = [each.headers.get("traceparent") for each in proxy.requests]
    context = request.context
    assert before is None
    assert str(inside).startswith(f"00-{context.trace_id:032x}-{context.span_id:016x}-")


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"},
        {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"},
    ],
)
def test_nothing_is_traced_unless_the_environment_asks(environment: dict[str, str]) -> None:
    """The standard variables of OpenTelemetry switch traces on and off."""
    assert not tracing.start_tracing("acme", environment)


def test_an_exporter_that_is_not_installed_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """The manager goes on without traces."""
    assert not tracing.start_tracing("acme", {"OTEL_TRACES_EXPORTER": "nowhere"})
    (record,) = caplog.records
    assert "nowhere" in str(vars(record))


def test_the_environment_selects_the_exporter() -> None:
    """Nothing is imported before; the exporter prints the remaining spans when tracing stops."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert "reconcile AcmeMachine" in done.stdout
    assert '"service.name": "infrastructure-acme"' in done.stdout
