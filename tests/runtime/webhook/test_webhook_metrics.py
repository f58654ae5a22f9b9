"""Calls of webhooks are measured under the names that dashboards for controller-runtime use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus

import pytest

from capsmith_runtime.kube.http_server import Request, RequestHandler, Response
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.webhook.options import WebhookOptions
from capsmith_runtime.webhook.server import WebhookGroup
from tests.runtime.support.following import sample

LATENCY = "controller_runtime_webhook_latency_seconds"
IN_FLIGHT = "controller_runtime_webhook_requests_in_flight"
REQUESTS = "controller_runtime_webhook_requests_total"


class Scripted(WebhookGroup):
    """Calls of its only webhook wait, return the given status, or fail."""

    def __init__(self, metrics: Metrics, status: HTTPStatus | Exception = HTTPStatus.OK) -> None:
        super().__init__(WebhookOptions(), metrics)
        self.status = status
        self.go_on = asyncio.Event()
        self.has_begun = asyncio.Event()
        self.connect([self])

    @property
    def routes(self) -> Mapping[str, RequestHandler]:
        """Return the only webhook."""
        return {"/convert": self._respond}

    async def _respond(self, request: Request) -> Response:
        self.has_begun.set()
        await self.go_on.wait()
        if isinstance(self.status, Exception):
            raise self.status
        return Response(self.status, b"{}")


async def test_a_call_is_in_flight_until_it_is_answered() -> None:
    metrics = Metrics()
    group = Scripted(metrics)
    assert sample(metrics, f'{REQUESTS}{{code="200",webhook="/convert"}}') == 0
    assert f'{REQUESTS}{{code="200",webhook="/convert"}} 0.0' in metrics.render().decode()

    call = asyncio.create_task(group.handle(Request("POST", "/convert", b"{}")))
    await group.has_begun.wait()
    assert sample(metrics, f'{IN_FLIGHT}{{webhook="/convert"}}') == 1
    group.go_on.set()
    await call

    assert sample(metrics, f'{IN_FLIGHT}{{webhook="/convert"}}') == 0
    assert sample(metrics, f'{LATENCY}_count{{webhook="/convert"}}') == 1
    assert sample(metrics, f'{REQUESTS}{{code="200",webhook="/convert"}}') == 1


async def test_responses_are_counted_by_status() -> None:
    metrics = Metrics()
    group = Scripted(metrics, HTTPStatus.BAD_REQUEST)
    group.go_on.set()
    await group.handle(Request("POST", "/convert", b"{}"))
    group.status = RuntimeError("a defect")
    with pytest.raises(RuntimeError):
        await group.handle(Request("POST", "/convert", b"{}"))

    for code in ("400", "500"):
        assert sample(metrics, f'{REQUESTS}{{code="{code}",webhook="/convert"}}') == 1


async def test_paths_without_a_webhook_add_no_series() -> None:
    """Any client may send any path."""
    metrics = Metrics()
    group = Scripted(metrics)
    before = metrics.render().decode().count(REQUESTS)
    await group.handle(Request("POST", "/other", b"{}"))
    await group.handle(Request("GET", "/convert", b"{}"))
    assert metrics.render().decode().count(REQUESTS) == before
