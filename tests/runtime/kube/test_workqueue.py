"""The work queue, on a clock of the tests' own."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.workqueue import QueueClosed, WorkQueue
from tests.runtime.support.clock import virtually
from tests.runtime.support.following import sample

Queue = WorkQueue[str]
Test = Callable[[Queue], Coroutine[Any, Any, None]]


def on_a_queue(test: Test) -> Callable[[], None]:
    def run() -> None:
        async def scenario() -> None:
            await test(WorkQueue("q", Metrics()))

        virtually(scenario())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def left(queue: Queue) -> list[str]:
    """Return the keys that are ready now, and mark them as done."""
    found = []
    while len(queue):
        found.append(await queue.get())
    for key in found:
        queue.done(key)
    return found


async def moment(queue: Queue) -> float:
    """Wait for the next key, and return the time at which it is ready."""
    queue.done(await queue.get())
    return asyncio.get_running_loop().time()


@on_a_queue
async def test_duplicates_are_folded_and_order_is_kept(queue: Queue) -> None:
    for key in "abacab":
        queue.add(key)
    assert await left(queue) == ["a", "b", "c"]


@on_a_queue
async def test_added_while_processed_comes_once_more(queue: Queue) -> None:
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done(key)
    assert await left(queue) == ["a"]
    assert await left(queue) == []


@on_a_queue
async def test_the_earliest_of_several_waits_wins(queue: Queue) -> None:
    for seconds in (5.0, 2.0, 9.0):
        queue.add_after("a", seconds)
    assert await moment(queue) == pytest.approx(2)
    queue.close()
    assert len(queue) == 0


@on_a_queue
async def test_a_reconcile_decides_again_when_to_requeue(queue: Queue) -> None:
    queue.add_after("a", 5)
    queue.add("a")
    key = await queue.get()
    queue.add_after("a", 60)
    queue.done(key)
    assert await moment(queue) == pytest.approx(60)


@on_a_queue
async def test_what_is_due_while_processed_comes_after(queue: Queue) -> None:
    queue.add("a")
    key = await queue.get()
    queue.add_after("a", 1)
    await asyncio.sleep(2)
    assert len(queue) == 0
    queue.done(key)
    assert await left(queue) == ["a"]


@on_a_queue
async def test_failures_back_off_with_jitter_up_to_a_limit(queue: Queue) -> None:
    delays = [queue.add_rate_limited("a") for _ in range(40)]
    for failures, delay in enumerate(delays):
        plain = min(300.0, 0.1 * 2**failures)
        assert plain <= delay <= 1.25 * plain
    assert len({round(delay, 6) for delay in delays[-10:]}) > 1
    queue.forget("a")
    assert queue.add_rate_limited("a") <= 0.125


@on_a_queue
async def test_the_delay_of_the_server_is_a_lower_bound(queue: Queue) -> None:
    delay = queue.add_rate_limited("a", at_least=7)
    assert 7 <= delay <= 7 * 1.25
    assert await moment(queue) == pytest.approx(delay)


@on_a_queue
async def test_close_stops_the_workers(queue: Queue) -> None:
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add_after("a", 1)
    queue.close()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert [type(result) for result in results] == [QueueClosed] * 3
    queue.add("b")
    queue.add_after("b", 0)
    await asyncio.sleep(5)
    with pytest.raises(QueueClosed):
        await queue.get()


@on_a_queue
async def test_drained_waits_for_what_is_processed(queue: Queue) -> None:
    queue.add("a")
    queue.add("b")
    key = await queue.get()
    queue.close()
    asyncio.get_running_loop().call_later(3, queue.done, key)
    await queue.drained()
    assert asyncio.get_running_loop().time() == pytest.approx(3)
    assert len(queue) == 0


@on_a_queue
async def test_a_cancelled_worker_takes_no_wake_up_with_it(queue: Queue) -> None:
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await second == "a"


def test_depth_is_reported() -> None:
    async def scenario() -> None:
        metrics = Metrics()
        queue: Queue = WorkQueue("q", metrics)
        for key in "abc":
            queue.add(key)
        await queue.get()
        assert sample(metrics, 'workqueue_depth{name="q"}') == 2
        queue.close()
        assert sample(metrics, 'workqueue_depth{name="q"}') == 0

    virtually(scenario())


KEYS = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "after", "fail", "wait"]), KEYS, st.floats(0, 3)), max_size=40
)


@dataclass
class Record:
    """What happened when, on the tests' clock; `order` tells moments apart that are the same."""

    asked: dict[str, int] = field(default_factory=dict)
    began: dict[str, int] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    order: int = 0
    requests: int = 0
    reconciles: int = 0

    def tick(self) -> int:
        self.order += 1
        return self.order


async def work(queue: Queue, record: Record, seconds: float) -> None:
    while True:
        try:
            key = await queue.get()
        except QueueClosed:
            return
        assert key not in record.running, "twice at a time"
        record.running.add(key)
        record.began[key] = record.tick()
        record.reconciles += 1
        await asyncio.sleep(seconds)
        record.running.discard(key)
        queue.done(key)


async def play(steps: list[tuple[str, str, float]], workers: int, seconds: float) -> Record:
    queue: Queue = WorkQueue("q", Metrics())
    record = Record()
    tasks = [asyncio.create_task(work(queue, record, seconds)) for _ in range(workers)]
    for action, key, wait in steps:
        record.requests += action != "wait"
        match action:
            case "add":
                record.asked[key] = record.tick()
                queue.add(key)
            case "after":
                record.asked.setdefault(key, record.tick())
                queue.add_after(key, wait)
            case "fail":
                record.asked.setdefault(key, record.tick())
                queue.add_rate_limited(key)
            case _:
                await asyncio.sleep(wait)
    await asyncio.sleep(100_000)
    queue.close()
    await queue.drained()
    await asyncio.gather(*tasks)
    return record


@given(steps=STEPS, workers=st.integers(1, 4), seconds=st.sampled_from([0.0, 0.5, 2.0]))
@settings(max_examples=150, deadline=None)
def test_every_request_is_followed_by_a_reconcile(
    steps: list[tuple[str, str, float]], workers: int, seconds: float
) -> None:
    """One reconcile at a time for each key, not more than requested, and never without the last."""
    record = virtually(play(steps, workers, seconds))
    assert record.reconciles <= record.requests
    assert record.began.keys() == record.asked.keys()
    assert all(record.began[key] > asked for key, asked in record.asked.items())


@on_a_queue
async def test_a_timer_keeps_nothing_of_the_reconcile_that_set_it(queue: Queue) -> None:
    """Thousands of objects wait for their next resync."""

    class Span:
        """A value in the context of a reconcile."""

    async def reconcile() -> weakref.ref[Span]:
        span = Span()
        variable.set(span)
        queue.add_after("a", 600)
        return weakref.ref(span)

    variable: contextvars.ContextVar[Span] = contextvars.ContextVar("span")
    reference = await asyncio.create_task(reconcile())
    await asyncio.sleep(0)  # the event loop forgets the task
    gc.collect()
    assert reference() is None
    assert await moment(queue) == 600
