"""Readiness checks of authors: in the background, one call at a time, within a time limit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from capsmith_runtime.kube.handler_calls import DaemonThreadPool
from capsmith_runtime.reconcile.session_tasks import ReadinessCheck
from capsmith_runtime.testing import clock
from tests.runtime.support.author_errors import UnprintableError


def run(check: ReadinessCheck, scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(DaemonThreadPool(1))
        task = asyncio.create_task(check.run())
        try:
            await scenario()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    clock.run(main())


class Cloud:
    """An infrastructure that fails sometimes."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.calls = 0

    def readyz(self) -> None:
        self.calls += 1
        if self.error is not None:
            raise self.error

    async def readyz_async(self) -> None:
        self.readyz()


@pytest.mark.parametrize("method", ["readyz", "readyz_async"])
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("503"),
        SystemExit(1),
        asyncio.CancelledError(),
        StopIteration(),
        UnprintableError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_ready_while_the_last_call_succeeded(
    method: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    cloud = Cloud()
    check = ReadinessCheck("Clouds", getattr(cloud, method))
    assert not check.is_ready()

    async def scenario() -> None:
        await asyncio.sleep(5)
        assert check.is_ready()
        cloud.error = error
        await asyncio.sleep(30)
        assert not check.is_ready()
        cloud.error = None
        await asyncio.sleep(15)
        assert check.is_ready()
        assert cloud.calls == 5

    run(check, scenario)
    assert caplog.messages.count("not ready") == 1


def test_a_check_that_hangs_is_not_called_again() -> None:
    end, calls = threading.Event(), []

    def readyz() -> None:
        calls.append(1)
        end.wait(60)

    check = ReadinessCheck("Clouds", readyz)

    async def scenario() -> None:
        while not calls:
            await asyncio.sleep(0.01)
        await check._check()
        assert not check.is_ready()
        assert len(calls) == 1
        end.set()
        await check._check()

    # The clock is real while the thread runs, so the limit is short.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("capsmith_runtime.reconcile.session_tasks.TIMEOUT_SECONDS", 0.05)
        run(check, scenario)


def test_an_asynchronous_check_that_hangs_is_not_called_again() -> None:
    calls = []

    async def readyz() -> None:
        calls.append(1)
        if len(calls) == 2:
            await asyncio.sleep(100)

    check = ReadinessCheck("Clouds", readyz)

    async def scenario() -> None:
        await asyncio.sleep(12)
        assert check.is_ready(), "the second call has some seconds left"
        await asyncio.sleep(50)
        assert not check.is_ready()
        assert len(calls) == 2
        await asyncio.sleep(80)
        assert check.is_ready()

    run(check, scenario)
