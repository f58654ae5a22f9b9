"""The author's code, whatever it does: bounded in time and number, and never silently."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from capsmith_runtime.kube import executor
from capsmith_runtime.kube.executor import (
    HandlerExecutor,
    HooksExhaustedError,
    HookTimeoutError,
    NamespaceBusyError,
    StillRunningError,
)
from capsmith_runtime.kube.metrics import Metrics
from tests.runtime.support.author_errors import ForeignTimeout, UnprintableExit
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


async def asynchronous(value: int) -> int:
    await asyncio.sleep(0)
    return value + 1


def synchronous(value: int) -> int:
    return value + 1


def indirect(value: int) -> object:
    """Return what a decorator may make of an asynchronous hook."""
    return asynchronous(value)


@pytest.mark.parametrize("hook", [asynchronous, synchronous, indirect])
async def test_answers(hook: Any) -> None:
    assert await call(HandlerExecutor(Metrics()), hook, 1) == 2


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a bug"),
        SystemExit(2),
        StopIteration(),
        asyncio.CancelledError(),
        TimeoutError(),
        ForeignTimeout(),
        UnprintableExit(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_errors_are_exceptions(error: BaseException, kind: str) -> None:
    """None ends the worker, the event loop or the process, and each leaves its thread free."""

    def fails() -> None:
        raise error

    async def fails_async() -> None:
        raise error

    runner = HandlerExecutor(Metrics(), threads=1, timeout=60)
    for _ in range(3):
        with pytest.raises(Exception, match=r".*") as caught:
            await call(runner, fails if kind == "sync" else fails_async)
        assert not isinstance(caught.value, (HooksExhaustedError, StillRunningError))
    assert await call(runner, synchronous, 1) == 2


async def test_a_synchronous_hook_sees_the_caller_s_context() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    assert await call(HandlerExecutor(Metrics()), variable.get) == "set"


async def test_the_loop_goes_on_meanwhile(release: threading.Event) -> None:
    task = asyncio.create_task(call(HandlerExecutor(Metrics()), release.wait, 300))
    await asyncio.sleep(0.05)
    release.set()
    assert await asyncio.wait_for(task, 60)


async def test_an_asynchronous_hook_that_is_late_is_cancelled() -> None:
    ended = asyncio.Event()

    async def late() -> None:
        try:
            await asyncio.sleep(300)
        finally:
            ended.set()

    metrics = Metrics()
    with pytest.raises(HookTimeoutError) as caught:
        await call(HandlerExecutor(metrics, timeout=0.05), late)
    assert not isinstance(caught.value, StillRunningError)
    assert ended.is_set()
    assert sample(metrics, "hooks_abandoned") == 0


async def test_timeouts_are_counted_from_zero() -> None:
    """An alert on a rise needs the value before the first timeout."""
    metrics, release = Metrics(), asyncio.Event()

    async def patient() -> bool:
        return await release.wait()

    task = asyncio.create_task(call(HandlerExecutor(metrics, timeout=300), patient))
    await asyncio.sleep(0)
    name = patient.__qualname__
    assert f'hook_timeouts_total{{hook="{name}"}} 0.0' in metrics.render().decode()
    release.set()
    await task


async def test_an_asynchronous_hook_that_will_not_be_cancelled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = asyncio.Event()

    async def stubborn() -> None:
        while not ended.is_set():
            try:
                await ended.wait()
            except asyncio.CancelledError:
                continue

    metrics = Metrics()
    with pytest.raises(StillRunningError) as caught:
        await call(HandlerExecutor(metrics, timeout=0.05), stubborn)
    assert sample(metrics, "hooks_abandoned") == 1
    given_back = asyncio.Event()
    caught.value.when_ended(given_back.set)
    assert not given_back.is_set()
    ended.set()
    await asyncio.wait_for(given_back.wait(), 60)
    assert sample(metrics, "hooks_abandoned") == 0


async def test_a_hanging_synchronous_hook_is_reported(
    release: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    with caplog.at_level(logging.WARNING), pytest.raises(StillRunningError) as caught:
        await call(HandlerExecutor(metrics, timeout=0.05), release.wait, 300)
    assert "did not answer within 0.05 s" in str(caught.value)
    assert sample(metrics, "hooks_abandoned") == 1
    assert 'hook_timeouts_total{hook="Event.wait"} 1.0' in metrics.render().decode()
    assert "hook hangs" in caplog.text
    release.set()
    await eventually(lambda: sample(metrics, "hooks_abandoned") == 0)
    assert "hanging hook has ended" in caplog.text


async def test_the_number_of_threads_is_bounded() -> None:
    """Many slow hooks take turns; none is refused while others merely take their time."""
    lock, active, most = threading.Lock(), 0, 0
    together = threading.Barrier(5)

    def slow() -> None:
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
        together.wait(60)
        time.sleep(0.02)
        with lock:
            active -= 1

    runner = HandlerExecutor(Metrics(), threads=5, timeout=120)
    await asyncio.gather(*(call(runner, slow) for _ in range(60)))
    assert most == 5


async def test_a_namespace_gets_no_thread_that_another_one_has_freed(
    release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of the namespace that began together wait for threads before any of them is slow."""
    monkeypatch.setattr(executor, "SLOW_SECONDS", 0.1)
    runner = HandlerExecutor(Metrics(), threads=2, timeout=60)
    running: list[str] = []

    def hang(namespace: str) -> None:
        running.append(namespace)
        release.wait(60)

    names = ["full"] * 8 + ["other"]
    calls = [
        asyncio.create_task(runner.call(hang, name, tenant=f"AcmeIdentity {name}/{number}"))
        for number, name in enumerate(names)
    ]
    await eventually(lambda: "other" in running)
    await eventually(lambda: any(each.done() for each in calls))
    release.set()
    results = await asyncio.gather(*calls, return_exceptions=True)

    # Half of the ten threads that there are when slots are lent.
    assert running.count("full") <= 5
    errors = [each for each in results if each is not None]
    assert {type(each) for each in errors} == {NamespaceBusyError}
    assert len(errors) == names.count("full") - running.count("full")


async def test_hanging_hooks_do_not_use_up_the_threads_in_silence(
    release: threading.Event,
) -> None:
    runner = HandlerExecutor(Metrics(), threads=2, timeout=0.05)
    hanging = await asyncio.gather(
        *(call(runner, release.wait, 300) for _ in range(2)), return_exceptions=True
    )
    assert [type(each) for each in hanging] == [StillRunningError] * 2
    with pytest.raises(HooksExhaustedError, match="all 2 hook threads are in use"):
        await call(runner, synchronous, 1)
    assert await call(runner, asynchronous, 1) == 2


async def test_threads_are_free_again_when_hanging_hooks_end(release: threading.Event) -> None:
    metrics = Metrics()
    runner = HandlerExecutor(metrics, threads=1, timeout=2)
    with pytest.raises(StillRunningError):
        await call(runner, release.wait, 300)
    release.set()
    await eventually(lambda: sample(metrics, "hooks_abandoned") == 0)
    assert await call(runner, synchronous, 1) == 2


async def test_a_thread_that_cannot_start_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = HandlerExecutor(Metrics(), threads=1, timeout=60)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="start new thread"):
                await call(runner, synchronous, 1)
    assert await call(runner, synchronous, 1) == 2


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_cancelling_the_caller(release: threading.Event, kind: str) -> None:
    """An asynchronous hook ends too; a thread goes on, and its place is taken until it ends."""
    began, cancelled = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def waits() -> None:
        began.set()
        try:
            await asyncio.sleep(300)
        finally:
            cancelled.set()

    def hangs() -> None:
        loop.call_soon_threadsafe(began.set)
        release.wait(300)

    runner = HandlerExecutor(Metrics(), threads=1, timeout=2)
    task = asyncio.create_task(call(runner, waits if kind == "async" else hangs))
    await asyncio.wait_for(began.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if kind == "async":
        await asyncio.wait_for(cancelled.wait(), 60)
        return
    with pytest.raises(HooksExhaustedError):
        await call(runner, synchronous, 1)
    release.set()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            assert await call(runner, synchronous, 1) == 2
            return
        except HooksExhaustedError:
            continue
    pytest.fail("the thread's place did not come back")


def test_hanging_threads_do_not_keep_a_process_alive() -> None:
    program = (
        "import asyncio, threading\n"
        "from capsmith_runtime.kube.executor import HandlerExecutor, StillRunningError\n"
        "from capsmith_runtime.kube.metrics import Metrics\n"
        "async def main():\n"
        "    try:\n"
        "        await HandlerExecutor(Metrics(), timeout=0.05).call(threading.Event().wait)\n"
        "    except StillRunningError:\n"
        "        print('ended')\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "ended\n"
