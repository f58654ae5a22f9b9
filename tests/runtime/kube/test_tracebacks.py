"""Tracebacks in the log: one a minute for each handler and type of exception."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from capsmith_runtime.kube.controller import Controller, Result
from capsmith_runtime.kube.executor import HandlerExecutor, TracebackLimiter, handler_of
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.workqueue import WorkQueue
from tests.runtime.support.waiting import eventually, running


def fails(kind: type[Exception]) -> None:
    raise kind("no answer")


async def fails_async(kind: type[Exception]) -> None:
    fails(kind)


async def error_of(hook: Callable[..., object], kind: type[Exception]) -> Exception:
    with pytest.raises(kind) as caught:
        await HandlerExecutor(Metrics()).call(hook, kind)
    return caught.value


async def test_one_a_minute_for_each_handler_and_type() -> None:
    now = 0.0
    limiter = TracebackLimiter(lambda: now)

    async def is_logged(hook: Callable[..., object], kind: type[Exception]) -> bool:
        return limiter.of(await error_of(hook, kind)) is not None

    assert await is_logged(fails, OSError)
    assert not await is_logged(fails, OSError)
    assert await is_logged(fails, ValueError)
    assert await is_logged(fails_async, OSError)
    now = 59.0
    assert not await is_logged(fails, OSError)
    now = 60.0
    assert await is_logged(fails, OSError)


async def test_the_handler_is_found_behind_another_error() -> None:
    """Errors of control plane hooks are raised again, as errors of another type."""
    cause = await error_of(fails_async, OSError)
    with pytest.raises(RuntimeError) as caught:
        raise RuntimeError("again") from cause
    assert handler_of(caught.value) == "fails_async"
    assert handler_of(ValueError("no handler")) == ""


async def test_causes_may_form_a_circle() -> None:
    """As with `raise error from error`, which Python allows."""
    error, cause = ValueError("no handler"), ValueError("no handler")
    error.__cause__, cause.__cause__ = cause, error
    assert handler_of(error) == ""


async def test_an_outage_is_logged_in_one_line_an_object(caplog: pytest.LogCaptureFixture) -> None:
    metrics, executor = Metrics(), HandlerExecutor(Metrics())

    async def reconcile(key: str) -> Result:
        await executor.call(fails, OSError)
        return Result()

    made = Controller("Widget", WorkQueue[str]("widget", metrics), reconcile, metrics)
    with caplog.at_level(logging.INFO):
        async with running(made.run()):
            for key in "abcdef":
                made.queue.add(key)
            await eventually(lambda: len(caplog.records) >= 6)
    assert all("no answer" in record.__dict__["values"]["error"] for record in caplog.records)
    assert len([record for record in caplog.records if record.exc_info]) == 1
