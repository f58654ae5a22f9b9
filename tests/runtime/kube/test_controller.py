"""Workers: one reconcile for each object at a time, and nothing that ends a worker."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

import pytest

from capsmith_runtime.errors import create_api_error, error_label
from capsmith_runtime.kube.controller import Controller, Result
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.requeue import DeferredError, Priority
from capsmith_runtime.kube.workqueue import WorkQueue
from tests.runtime.support.author_errors import UnprintableError
from tests.runtime.support.clock import virtually
from tests.runtime.support.following import sample
from tests.runtime.support.waiting import eventually, running

Reconcile = Callable[[str], Awaitable[Result]]


def controller(
    reconcile: Reconcile, *, concurrency: int = 3, metrics: Metrics | None = None
) -> Controller[str]:
    metrics = metrics or Metrics()
    queue: WorkQueue[str] = WorkQueue("c", metrics)
    return Controller("c", queue, reconcile, metrics, concurrency=concurrency)


def test_heavy_concurrency() -> None:
    """Many workers, few keys, thousands of events: never two at a time, the last one counts."""
    busy, state, seen = Counter[str](), Counter[str](), dict[str, int]()
    chance = random.Random(1)

    async def reconcile(key: str) -> Result:
        busy[key] += 1
        assert busy[key] == 1
        observed = state[key]
        await asyncio.sleep(chance.uniform(0, 0.5))
        seen[key] = observed
        busy[key] -= 1
        return Result()

    async def scenario() -> None:
        made = controller(reconcile, concurrency=20)
        async with running(made.run()):
            for _ in range(5000):
                key = str(chance.randrange(10))
                state[key] += 1
                made.queue.add(key)
                await asyncio.sleep(chance.uniform(0, 0.01))
            await asyncio.sleep(5)
            assert await made.stop(1)

    virtually(scenario())
    assert seen == state


@pytest.mark.parametrize("fails", [False, True])
def test_other_tasks_run_between_reconciles_that_wait_for_nothing(fails: bool) -> None:
    keys, workers = 300, 3
    done: list[str] = []
    turns: list[int] = []

    async def reconcile(key: str) -> Result:
        done.append(key)
        if fails:
            raise DeferredError("later", seconds=60)
        return Result()

    async def scenario() -> None:
        made = controller(reconcile, concurrency=workers)
        for number in range(keys):
            made.queue.add(str(number))
        async with running(made.run()):
            while len(done) < keys:
                turns.append(len(done))
                await asyncio.sleep(0)
            assert await made.stop(1)

    virtually(scenario())
    between = [after - before for before, after in itertools.pairwise(turns)]
    assert max(between) <= workers


ERRORS = [
    ValueError("a bug"),
    create_api_error(409, "Conflict", "changed"),
    create_api_error(500, "InternalError", "no"),
    create_api_error(429, "TooManyRequests", "wait", 5),
    asyncio.CancelledError(),
    TimeoutError(),
    ExceptionGroup("several", [ValueError()]),
    StopAsyncIteration(),
    UnprintableError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_no_error_ends_a_worker(error: BaseException) -> None:
    calls: list[float] = []
    metrics = Metrics()

    async def reconcile(key: str) -> Result:
        calls.append(asyncio.get_running_loop().time())
        if len(calls) <= 4:
            raise error
        return Result()

    async def scenario() -> None:
        made = controller(reconcile, concurrency=1, metrics=metrics)
        async with running(made.run()):
            made.queue.add("a")
            await asyncio.sleep(100)
            assert len(calls) == 5
            made.queue.add("a")
            await asyncio.sleep(1)
            assert len(calls) == 6

    virtually(scenario())
    waits = [later - earlier for earlier, later in itertools.pairwise(calls[:5])]
    asked = getattr(error, "retry_after", None) or 0
    for number, wait in enumerate(waits):
        plain = max(0.1 * 2**number, asked)
        assert plain <= wait <= plain * 1.25 + 0.01
    label = f'{{controller="c",error="{error_label(error)}"}}'
    assert sample(metrics, f"reconcile_errors_total{label}") == 4


def test_counters_begin_before_the_first_reconcile_ends() -> None:
    """An alert on a rise needs the value before: the first reconcile may hang for hours."""
    metrics = Metrics()

    async def scenario() -> None:
        controller(lambda key: asyncio.sleep(0, Result()), metrics=metrics)

    virtually(scenario())
    lines = metrics.render().decode().splitlines()
    assert 'reconcile_duration_seconds_count{controller="c"} 0.0' in lines
    assert 'terminal_failures_total{controller="c"} 0.0' in lines


def test_terminal_failures_are_counted_from_zero() -> None:
    metrics = Metrics()
    counted: list[float] = []

    async def reconcile(key: str) -> Result:
        return Result(failed=key == "lost")

    async def scenario() -> None:
        made = controller(reconcile, metrics=metrics)
        counted.append(sample(metrics, 'terminal_failures_total{controller="c"}'))
        async with running(made.run()):
            made.queue.add("found")
            made.queue.add("lost")
            await asyncio.sleep(1)

    virtually(scenario())
    counted.append(sample(metrics, 'terminal_failures_total{controller="c"}'))
    assert counted == [0, 1]


def test_success_ends_the_backoff() -> None:
    calls: list[float] = []

    async def reconcile(key: str) -> Result:
        calls.append(asyncio.get_running_loop().time())
        if len(calls) in (6, 7):
            return Result()
        raise ValueError("a bug")

    async def scenario() -> None:
        made = controller(reconcile)
        async with running(made.run()):
            made.queue.add("a")
            await asyncio.sleep(100)
            made.queue.add("a")
            await asyncio.sleep(1)
            made.queue.add("a")
            await asyncio.sleep(0.5)

    virtually(scenario())
    assert 1.6 <= calls[5] - calls[4] <= 2
    assert 0.1 <= calls[8] - calls[7] <= 0.125


def test_requeue_after() -> None:
    calls: list[float] = []

    async def reconcile(key: str) -> Result:
        calls.append(asyncio.get_running_loop().time())
        return Result(requeue_after=30)

    async def scenario() -> None:
        made = controller(reconcile)
        async with running(made.run()):
            made.queue.add("a")
            await asyncio.sleep(95)

    virtually(scenario())
    assert calls == pytest.approx([0, 30, 60, 90])


def test_stop_lets_what_runs_come_to_its_end() -> None:
    done: list[str] = []

    async def reconcile(key: str) -> Result:
        await asyncio.sleep(3)
        done.append(key)
        return Result()

    async def scenario() -> None:
        made = controller(reconcile, concurrency=2)
        async with running(made.run()) as (work,):
            for key in "abcd":
                made.queue.add(key)
            await asyncio.sleep(1)
            assert await made.stop(5)
            await asyncio.wait_for(work, 1)

    virtually(scenario())
    assert sorted(done) == ["a", "b"]


def test_stop_does_not_wait_forever() -> None:
    async def reconcile(key: str) -> Result:
        await asyncio.sleep(1000)
        return Result()

    async def scenario() -> None:
        made = controller(reconcile)
        async with running(made.run()):
            made.queue.add("a")
            await asyncio.sleep(1)
            assert not await made.stop(5)
            assert asyncio.get_running_loop().time() == pytest.approx(6)

    virtually(scenario())


async def test_a_hanging_hook_keeps_its_key_and_no_other() -> None:
    """The thread cannot be ended: its object waits for it, whatever events come."""
    metrics, active = Metrics(), Counter[str]()
    release, calls = threading.Event(), list[str]()

    def hook(key: str) -> None:
        active[key] += 1
        assert active[key] == 1
        calls.append(key)
        if key == "hangs":
            release.wait(300)
        active[key] -= 1

    hooks = HandlerExecutor(metrics, threads=4, timeout=2)

    async def reconcile(key: str) -> Result:
        await hooks.call(hook, key)
        return Result()

    made = controller(reconcile, concurrency=2, metrics=metrics)
    async with running(made.run()):
        made.queue.add("hangs")
        await eventually(lambda: sample(metrics, "hooks_abandoned") == 1)
        for number in range(20):
            made.queue.add("hangs")
            made.queue.add(f"other-{number}")
        await eventually(lambda: len(set(calls)) == 21)
        await asyncio.sleep(0.3)  # the retry would be due by now
        assert calls.count("hangs") == 1
        release.set()
        await eventually(lambda: calls.count("hangs") >= 2)
        await eventually(lambda: sample(metrics, "hooks_abandoned") == 0)


def test_a_deferred_reconcile_is_no_failure_and_keeps_its_back_off() -> None:
    calls: list[float] = []
    waiting: list[tuple[Callable[[], None], Priority]] = []
    errors = [
        ValueError("first"),
        ValueError("second"),
        DeferredError("a while", seconds=10.0),
        DeferredError("a turn", subscribe=lambda wake, priority: waiting.append((wake, priority))),
        ValueError("third"),
    ]

    async def reconcile(key: str) -> Result:
        calls.append(asyncio.get_running_loop().time())
        if len(calls) <= len(errors):
            raise errors[len(calls) - 1]
        return Result()

    metrics = Metrics()

    async def scenario() -> None:
        made = controller(reconcile, metrics=metrics)
        async with running(made.run()):
            await asyncio.sleep(1)
            made.queue.add("a")
            await asyncio.sleep(300)
            assert len(calls) == 4, "nothing but the call back repeats it"
            ((wake, priority),) = waiting
            assert priority is Priority.NORMAL
            wake()
            await asyncio.sleep(10)
            assert await made.stop(1)

    virtually(scenario())
    first, second, third, fourth, fifth, sixth = calls
    assert fourth - third == pytest.approx(10, abs=0.01)
    assert (second - first) < (third - second) < (sixth - fifth) < 1
    text = metrics.render().decode()
    assert 'reconciles_deferred_total{controller="c"} 2.0' in text
    assert 'reconcile_errors_total{controller="c",error="ValueError"} 3.0' in text


def test_debug_records_show_calls_and_the_next_reconcile(caplog: pytest.LogCaptureFixture) -> None:
    executor = HandlerExecutor(Metrics())
    results: Iterator[ValueError | int] = iter([ValueError("a bug"), 7])

    async def call() -> int:
        result = next(results)
        await asyncio.sleep(2)
        if isinstance(result, ValueError):
            raise result
        return result

    async def reconcile(key: str) -> Result:
        return Result(await executor.call(call))

    async def scenario() -> None:
        made = controller(reconcile)
        async with running(made.run()):
            made.queue.add("default/one")
            await asyncio.sleep(6)
            assert await made.stop(1)

    with caplog.at_level("DEBUG", "capsmith_runtime"):
        virtually(scenario())
    records = [(each.getMessage(), vars(each)["values"]) for each in caplog.records]
    assert {values["key"] for _, values in records} == {"default/one"}
    assert {values["controller"] for _, values in records} == {"c"}
    assert [text for text, _ in records] == [
        *("call starts", "call ends", "reconcile failed"),
        *("call starts", "call ends", "reconciled"),
    ]
    ends = [(each["result"], each["seconds"]) for text, each in records if text == "call ends"]
    assert ends == [("ValueError", 2.0), ("int", 2.0)]
    assert records[2][1]["retry_seconds"] > 0
    assert records[5][1]["requeue_seconds"] == 7


def test_a_task_that_outlives_its_reconcile_adds_no_worker() -> None:
    """Such as a slow login or the closing of a session, which the worker does not wait for."""
    executor, tasks = HandlerExecutor(Metrics()), set[asyncio.Task[None]]()
    running_now = peak = 0

    async def sleep() -> None:
        await asyncio.sleep(2)

    async def reconcile(key: str) -> Result:
        nonlocal running_now, peak
        if key == "first":
            tasks.add(asyncio.create_task(executor.call(sleep)))
            return Result()
        running_now += 1
        peak = max(peak, running_now)
        await asyncio.sleep(5)
        running_now -= 1
        return Result()

    async def scenario() -> None:
        made = controller(reconcile, concurrency=1)
        async with running(made.run()):
            made.queue.add("first")
            await asyncio.sleep(3)
            for name in "abc":
                made.queue.add(name)
            await asyncio.sleep(20)
            assert await made.stop(1)

    virtually(scenario())
    assert peak == 1
