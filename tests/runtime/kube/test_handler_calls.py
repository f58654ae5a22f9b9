"""Which calls of author code run, whatever became of their callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from capsmith_runtime.kube import executor
from capsmith_runtime.kube.executor import HandlerExecutor, StillRunningError
from capsmith_runtime.kube.handler_calls import DaemonThreadPool
from capsmith_runtime.kube.metrics import Metrics
from tests.runtime.support.following import sample
from tests.runtime.support.waiting import eventually


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Return an event that ends hanging hooks; it is set after the test at the latest."""
    event = threading.Event()
    yield event
    event.set()


async def call(runner: HandlerExecutor, hook: Any, *args: Any) -> Any:
    return await runner.call(hook, *args)


def have_ended(runner: HandlerExecutor) -> bool:
    return runner.calls.have_ended


def synchronous(value: int) -> int:
    return value + 1


@pytest.fixture
def in_pool(release: threading.Event) -> Any:
    """Return an asynchronous hook that hangs in a thread of the event loop's executor."""

    async def hook() -> None:
        asyncio.get_running_loop().set_default_executor(DaemonThreadPool(2))
        await asyncio.to_thread(release.wait, 300)

    return hook


async def test_a_hook_that_is_late_is_over_when_its_threads_are(
    release: threading.Event, in_pool: Any
) -> None:
    """Otherwise its object would be reconciled twice at once."""
    metrics = Metrics()
    runner = HandlerExecutor(metrics, timeout=0.05)
    with pytest.raises(StillRunningError) as caught:
        await call(runner, in_pool)
    ended = asyncio.Event()
    caught.value.when_ended(ended.set)
    assert not have_ended(runner)
    assert sample(metrics, "hooks_abandoned") == 1
    await asyncio.wait_for(runner.calls.wait(), 60)
    release.set()
    await asyncio.wait_for(ended.wait(), 60)
    assert have_ended(runner)
    assert sample(metrics, "hooks_abandoned") == 0


async def test_a_cancelled_caller_leaves_its_call_running(release: threading.Event) -> None:
    runner = HandlerExecutor(Metrics(), timeout=300)
    task = asyncio.create_task(call(runner, release.wait, 300))
    await eventually(lambda: runner.calls.names == ["Event.wait"])
    task.cancel()
    await asyncio.wait({task})
    assert runner.calls.names == ["Event.wait"]
    release.set()
    await asyncio.wait_for(runner.calls.wait(), 60)
    assert have_ended(runner)


async def test_a_call_may_end_before_its_time_out_has_been_handled(
    release: threading.Event,
) -> None:
    """Between the two, for example, the time-out is written to the status of the object."""
    runner = HandlerExecutor(Metrics(), timeout=0.05)
    with pytest.raises(StillRunningError) as caught:
        await call(runner, release.wait)
    release.set()
    await eventually(lambda: runner.calls.have_ended)
    ended = asyncio.Event()
    caught.value.when_ended(ended.set)
    await asyncio.wait_for(ended.wait(), 10)


async def test_what_a_cancelled_asynchronous_hook_leaves_behind_is_unknown() -> None:
    runner = HandlerExecutor(Metrics(), timeout=300)
    task = asyncio.create_task(call(runner, asyncio.sleep, 300))
    await eventually(lambda: runner.calls.names)
    task.cancel()
    await asyncio.wait({task})
    assert not have_ended(runner)


async def test_threads_of_hooks_are_limited_and_those_of_the_runtime_are_not(
    release: threading.Event,
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(DaemonThreadPool(2))
    runner, began = HandlerExecutor(Metrics(), timeout=300), list[int]()

    def hangs(number: int) -> None:
        began.append(number)
        release.wait(300)

    async def hook(number: int) -> None:
        await asyncio.to_thread(hangs, number)

    tasks = [asyncio.create_task(call(runner, hook, number)) for number in range(3)]
    await eventually(lambda: len(began) == 2)
    assert await asyncio.to_thread(synchronous, 1) == 2
    assert len(began) == 2
    release.set()
    await asyncio.gather(*tasks)
    assert sorted(began) == [0, 1, 2]
    assert have_ended(runner)


async def test_a_pool_without_threads_reports_it_and_counts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asyncio.get_running_loop().set_default_executor(DaemonThreadPool(1))
    runner = HandlerExecutor(Metrics(), timeout=300)

    async def hook() -> int:
        return await asyncio.to_thread(synchronous, 1)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="start new thread"):
                await call(runner, hook)
    assert await call(runner, hook) == 2
    assert have_ended(runner)


async def test_an_executor_whose_threads_all_hang_is_not_healthy(
    release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "EXHAUSTED_SECONDS", 0.0)
    runner = HandlerExecutor(Metrics(), threads=2, timeout=0.05)
    for is_healthy in (True, False):
        with pytest.raises(StillRunningError):
            await call(runner, release.wait, 300)
        assert runner.is_healthy == is_healthy
    release.set()
    await eventually(lambda: runner.is_healthy)
