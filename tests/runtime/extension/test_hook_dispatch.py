"""Dispatch of requests to hook methods, whose results the tests choose."""

from __future__ import annotations

import asyncio
import json
import threading
from http import HTTPStatus
from typing import Any

import pytest

from capsmith_runtime.extension import dispatch, lifecycle
from capsmith_runtime.extension.dispatch import API_VERSION
from capsmith_runtime.extension.responses import HookError, Proceed, RetryAfter, UpgradePlan
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import Metrics
from tests.runtime.extension.hook_calls import CREATE, ROOT, Author, answered, call, handler


def test_discovery_names_every_handler() -> None:
    """Proves: RX-04."""
    asked = handler(
        "BeforeClusterDelete",
        lifecycle.BEFORE_CLUSTER_DELETE,
        timeout_seconds=30,
        ignore_failures=True,
    )
    response = call(Author(None), asked, parts={"path": f"{ROOT}discovery"})

    assert json.loads(response.body) == {
        "apiVersion": API_VERSION,
        "kind": "DiscoveryResponse",
        "status": "Success",
        "handlers": [
            {
                "name": "it",
                "requestHook": {"apiVersion": API_VERSION, "hook": "BeforeClusterDelete"},
                "timeoutSeconds": 30,
                "failurePolicy": "Ignore",
            }
        ],
    }


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({"path": f"{ROOT}beforeclustercreate/other"}, 404),
        ({"path": f"{ROOT}beforeclustercreate"}, 404),
        ({"path": f"{ROOT}BeforeClusterCreate/it"}, 404),
        ({"path": "/"}, 404),
        ({"method": "GET"}, 405),
        ({"method": "GET", "path": f"{ROOT}discovery"}, 405),
        ({"body": b""}, 400),
        ({"body": b"[]"}, 400),
        ({"body": b"\xff"}, 400),
        ({"body": b"[" * 100_000}, 400),
        ({"body": b'{"cluster": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"}, 400),
    ],
)
def test_requests_for_no_hook_are_rejected(parts: dict[str, Any], status: int) -> None:
    """Proves: RX-03."""
    author = Author(Proceed())
    response = call(author, CREATE, parts=parts)

    assert response.status == status
    assert (response.allow == "POST") is (status == 405)
    assert author.request is None


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        (Proceed(), {"retryAfterSeconds": 0}),
        (Proceed("done"), {"retryAfterSeconds": 0, "message": "done"}),
        (RetryAfter(7, "not yet"), {"retryAfterSeconds": 7, "message": "not yet"}),
    ],
)
def test_hooks_can_make_core_wait(answer: Any, fields: dict[str, Any]) -> None:
    """Proves: RX-06."""
    assert answered(Author(answer), CREATE) == {"status": "Success", **fields}


def test_hook_methods_can_be_asynchronous() -> None:
    class Asynchronous:
        async def hook(self, request: Any) -> Any:
            await asyncio.sleep(0)
            return RetryAfter(3)

    assert answered(Asynchronous(), CREATE)["retryAfterSeconds"] == 3


def test_a_refusal_has_the_message_of_the_hook() -> None:
    """Proves: RX-06."""
    found = answered(Author(HookError("no \ud800 more")), CREATE)
    assert found == {"status": "Failure", "message": "no ? more"}


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(1), StopIteration(), MemoryError()])
def test_the_text_of_unexpected_errors_is_not_sent(error: BaseException) -> None:
    """Proves: RX-06, RX-10."""
    found = answered(Author(error), CREATE)
    name = "RuntimeError" if isinstance(error, SystemExit | StopIteration) else type(error).__name__
    assert found == {
        "status": "Failure",
        "message": f"hook raised {name}: see the log of the extension",
    }


def test_failures_that_core_may_ignore_are_http_errors() -> None:
    """Status Failure counts whatever the policy; only a call that fails can be ignored."""
    asked = handler("BeforeClusterCreate", lifecycle.BEFORE_CLUSTER_CREATE, ignore_failures=True)

    assert call(Author(KeyError("x")), asked).status == HTTPStatus.INTERNAL_SERVER_ERROR
    assert answered(Author(HookError("no")), asked)["status"] == "Failure"


@pytest.mark.parametrize("answer", [None, "Proceed", UpgradePlan(control_plane=[]), Proceed])
def test_a_result_of_another_type_is_a_failure(answer: Any) -> None:
    found = answered(Author(answer if answer is not Proceed else lambda _: Proceed), CREATE)
    assert found == {
        "status": "Failure",
        "message": "hook raised TypeError: see the log of the extension",
    }


def test_a_hook_that_hangs_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The response is sent before core's time-out, with the same message each time.

    Proves: RX-06.
    """
    asked = handler("BeforeClusterCreate", lifecycle.BEFORE_CLUSTER_CREATE, timeout_seconds=1)
    waits: list[float] = []
    came_back, go_on = threading.Event(), threading.Event()

    class Runner(HandlerExecutor):
        def __init__(self, metrics: Metrics, *, threads: int, timeout: float) -> None:
            super().__init__(metrics, threads=threads, timeout=timeout)
            waits.append(timeout)

    def hangs(_: object) -> None:
        go_on.wait(300)
        came_back.set()

    monkeypatch.setattr(dispatch, "HandlerExecutor", Runner)
    try:
        found = answered(Author(hangs), asked)
        assert not came_back.is_set()
    finally:
        go_on.set()
    assert max(waits) <= 0.5, "the way there and back takes a while too"
    assert found == {
        "status": "Failure",
        "message": "hook took too long: see the log of the extension",
    }
