"""Requests with large bodies leave the event loop, which renews the lease, to other tasks."""

from __future__ import annotations

import asyncio
import json
import threading
from http import HTTPStatus
from typing import Any

import pytest

from capsmith_runtime.conversion import controllers
from capsmith_runtime.conversion.controllers import HANG_SECONDS, PATH, THREAD_BYTES
from capsmith_runtime.kube.http_server import Request, Response
from tests.runtime.conversion.kinds import NEW, OLD, named, resources
from tests.runtime.conversion.test_versions import Webhook

KIND = "HarbourCluster"
PATIENCE = 60.0
"""Seconds after which a conversion that waits in vain ends, so that the test fails."""


def large(status: Any, **changes: Any) -> Request:
    obj = named(KIND, OLD, spec={}, status={"failureMessage": "x" * THREAD_BYTES, **status})
    review = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {
            "uid": "7",
            "desiredAPIVersion": f"{resources()[KIND].group}/{NEW}",
            "objects": [{**obj, **changes}],
        },
    }
    return Request("POST", PATH, json.dumps(review).encode())


def result(response: Response) -> Any:
    assert response.status == HTTPStatus.OK
    return json.loads(response.body)["response"]


class Conversions:
    """Conversions that wait for the test, which runs on the event loop."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._convert = controllers._convert
        self.go_on = threading.Event()
        self.running = 0
        self.started = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        patch.setattr(controllers, "_convert", self)

    def __call__(self, *arguments: Any) -> Any:
        self.running += 1
        self._loop.call_soon_threadsafe(self.started.set)
        assert self.go_on.wait(PATIENCE), "the event loop waits for the conversion"
        return self._convert(*arguments)


async def test_the_event_loop_goes_on_while_a_large_object_is_converted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    webhook, conversions = Webhook(), Conversions(monkeypatch)
    tasks = [asyncio.create_task(webhook.handle(large({"ready": True}))) for _ in range(3)]
    await conversions.started.wait()
    # One at a time, which bounds the memory of decoded objects.
    assert conversions.running == 1
    conversions.go_on.set()
    for task in tasks:
        (converted,) = result(await task)["convertedObjects"]
        assert converted["status"] == {"initialization": {"provisioned": True}}


async def test_a_conversion_that_hangs_ends_the_process_and_refuses_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controllers, "QUEUE_SECONDS", 0.0)
    webhook, conversions = Webhook(), Conversions(monkeypatch)

    def is_healthy() -> bool:
        return webhook.group.healthy

    task = asyncio.create_task(webhook.handle(large({"ready": True})))
    await conversions.started.wait()
    response = await webhook.handle(large({"ready": True}))
    assert response.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert is_healthy()
    webhook.now += HANG_SECONDS
    assert not is_healthy()
    conversions.go_on.set()
    result(await task)
    assert is_healthy()


async def test_a_large_object_that_is_not_converted_here_fails_its_review() -> None:
    found = result(await Webhook().handle(large({}, kind="Other")))
    assert found["result"]["status"] == "Failure"
    assert found["uid"] == "7"


async def test_a_large_body_that_is_no_review() -> None:
    body = b"[" + b"[]," * THREAD_BYTES + b"[]]"
    response = await Webhook().handle(Request("POST", PATH, body))
    assert response.status == HTTPStatus.BAD_REQUEST
