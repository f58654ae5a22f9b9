"""From a request to the author's method and back, with an author who says what the test wants."""

from __future__ import annotations

import asyncio
import json
import threading
from http import HTTPStatus
from typing import Any

import pytest
from capsmith_generated.controllers.extension import dispatch
from capsmith_generated.controllers.extension.dispatch import API_VERSION
from capsmith_generated.extension import lifecycle
from capsmith_generated.extension.answers import HookError, Proceed, RetryAfter, UpgradePlan
from capsmith_generated.runtime.hooks import HookRunner
from capsmith_generated.runtime.metrics import Metrics

from tests.contract_code.hook_calls import CREATE, ROOT, Author, answered, call, handler


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
def test_what_is_no_call_of_a_hook(parts: dict[str, Any], status: int) -> None:
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
def test_hooks_that_hold_core_up(answer: Any, fields: dict[str, Any]) -> None:
    """Proves: RX-06."""
    assert answered(Author(answer), CREATE) == {"status": "Success", **fields}


def test_the_author_may_be_asynchronous() -> None:
    class Asynchronous:
        async def hook(self, request: Any) -> Any:
            await asyncio.sleep(0)
            return RetryAfter(3)

    assert answered(Asynchronous(), CREATE)["retryAfterSeconds"] == 3


def test_no_is_said_with_the_message_of_the_author() -> None:
    """Proves: RX-06."""
    found = answered(Author(HookError("no \ud800 more")), CREATE)
    assert found == {"status": "Failure", "message": "no ? more"}


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(1), StopIteration(), MemoryError()])
def test_text_of_unforeseen_errors_stays_here(error: BaseException) -> None:
    """Proves: RX-06."""
    found = answered(Author(error), CREATE)
    name = "RuntimeError" if isinstance(error, SystemExit | StopIteration) else type(error).__name__
    assert found == {
        "status": "Failure",
        "message": f"hook raised {name}: see the log of the extension",
    }


def test_what_core_may_ignore_is_no_answer() -> None:
    """Status Failure counts whatever the policy; only a call that fails can be ignored."""
    asked = handler("BeforeClusterCreate", lifecycle.BEFORE_CLUSTER_CREATE, ignore_failures=True)

    assert call(Author(KeyError("x")), asked).status == HTTPStatus.INTERNAL_SERVER_ERROR
    assert answered(Author(HookError("no")), asked)["status"] == "Failure"


@pytest.mark.parametrize("answer", [None, "Proceed", UpgradePlan(control_plane=[]), Proceed])
def test_an_answer_of_another_hook_is_a_failure(answer: Any) -> None:
    found = answered(Author(answer if answer is not Proceed else lambda _: Proceed), CREATE)
    assert found == {
        "status": "Failure",
        "message": "hook raised TypeError: see the log of the extension",
    }


def test_who_does_not_come_back_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is there before core gives up, and other hooks are not held up."""
    asked = handler("BeforeClusterCreate", lifecycle.BEFORE_CLUSTER_CREATE, timeout_seconds=1)
    waits: list[float] = []
    came_back, go_on = threading.Event(), threading.Event()

    class Runner(HookRunner):
        def __init__(self, metrics: Metrics, *, threads: int, timeout: float) -> None:
            super().__init__(metrics, threads=threads, timeout=timeout)
            waits.append(timeout)

    def hangs(_: object) -> None:
        go_on.wait(300)
        came_back.set()

    monkeypatch.setattr(dispatch, "HookRunner", Runner)
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
