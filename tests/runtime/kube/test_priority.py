"""What is urgent comes first, and what is not comes all the same."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.controller import Controller, Result
from capsmith_runtime.kube.fifo import LOW_SHARE, NamespaceFifo, PriorityFifo
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.requeue import Priority
from capsmith_runtime.kube.workqueue import WorkQueue
from tests.runtime.support.clock import virtually

LOW, NORMAL = Priority.LOW, Priority.NORMAL


def drained(keys: PriorityFifo[str]) -> list[str]:
    return [keys.pop()[0] for _ in range(len(keys))]


def test_normal_before_low_and_in_order() -> None:
    keys = PriorityFifo[str]()
    for key, priority in (("l1", LOW), ("n1", NORMAL), ("l2", LOW), ("n2", NORMAL)):
        keys.push(key, priority)
    assert drained(keys) == ["n1", "n2", "l1", "l2"]


def test_a_key_that_waits_moves_up_but_not_down() -> None:
    keys = PriorityFifo[str]()
    for key, priority in (("a", LOW), ("b", LOW), ("c", NORMAL), ("b", NORMAL), ("c", LOW)):
        keys.push(key, priority)
    assert len(keys) == 3
    assert drained(keys) == ["c", "b", "a"]


def test_a_stream_of_urgent_keys_does_not_starve_the_others() -> None:
    """Before each turn another urgent key arrives."""
    keys = PriorityFifo[str]()
    for number in range(10):
        keys.push(f"low-{number}", LOW)
    taken = []
    for turn in range(10 * LOW_SHARE):
        keys.push(f"normal-{turn}", NORMAL)
        taken.append(keys.pop()[0])
    assert [key for key in taken if key.startswith("low")] == [f"low-{n}" for n in range(10)]


@given(steps=st.lists(st.sampled_from(["low", "normal", "both", "pop"]), max_size=200))
@settings(max_examples=300, deadline=None)
def test_every_low_key_is_taken_within_a_bound(steps: list[str]) -> None:
    """A key behind n-1 others of low priority is taken within n * LOW_SHARE turns."""
    keys = PriorityFifo[str]()
    due: dict[str, int] = {}
    turn = 0
    for number, step in enumerate(steps):
        if step in ("low", "both"):
            due[f"low-{number}"] = turn + (len(due) + 1) * LOW_SHARE
            keys.push(f"low-{number}", LOW)
        if step in ("normal", "both"):
            keys.push(f"normal-{number}", NORMAL)
        if step == "pop" and len(keys):
            turn += 1
            key, priority = keys.pop()
            assert (priority is LOW) == key.startswith("low")
            assert due.pop(key, turn) >= turn
    assert all(deadline > turn for deadline in due.values())


class TestNamespaces:
    """Hundreds of objects of one tenant that change at once do not delay those of another."""

    def test_they_are_taken_in_turn_and_their_keys_in_order(self) -> None:
        keys = NamespaceFifo[NamespacedName]()
        for key in ("a/1", "a/2", "a/3", "b/1", "b/2", "a/1", "/x", "c/1"):
            keys.push(NamespacedName(*key.split("/")))
        assert [str(keys.pop()) for _ in range(len(keys))] == [
            *("a/1", "b/1", "x", "c/1", "a/2", "b/2", "a/3"),
        ]

    def test_a_new_key_waits_for_one_key_of_each_other_namespace(self) -> None:
        keys = PriorityFifo[NamespacedName]()
        for number in range(400):
            keys.push(NamespacedName("crowded", str(number)), NORMAL)
        keys.pop()
        keys.push(NamespacedName("quiet", "new"), NORMAL)
        taken = [keys.pop()[0].namespace for _ in range(2)]
        assert "quiet" in taken

    @given(
        steps=st.lists(
            st.tuples(st.sampled_from(["push", "discard", "pop"]), st.integers(0, 8)), max_size=120
        )
    )
    @settings(max_examples=300, deadline=None)
    def test_no_key_is_lost_and_each_has_its_turn(self, steps: list[tuple[str, int]]) -> None:
        keys = NamespaceFifo[NamespacedName]()
        waiting: list[NamespacedName] = []
        for step, number in steps:
            key = NamespacedName(f"n{number % 3}", str(number))
            if step == "push":
                keys.push(key)
                waiting += [key] if key not in waiting else []
            elif step == "discard":
                keys.discard(key)
                waiting = [each for each in waiting if each != key]
            elif waiting:
                taken = keys.pop()
                # The first of its namespace.
                assert taken == next(k for k in waiting if k.namespace == taken.namespace)
                waiting.remove(taken)
            assert len(keys) == len(waiting)
            assert all(key in keys for key in waiting)
        namespaces = {key.namespace for key in waiting}
        first = [keys.pop().namespace for _ in namespaces]
        assert set(first) == namespaces


def test_a_new_key_does_not_wait_for_the_first_list() -> None:
    """With 2,000 keys from the first list and 10 workers it is one of the next to be served."""

    async def scenario() -> None:
        metrics = Metrics()
        queue = WorkQueue[str]("q", metrics)
        order: list[str] = []

        async def reconcile(key: str) -> Result:
            order.append(key)
            await asyncio.sleep(1)
            return Result()

        for number in range(2000):
            queue.add(f"listed-{number}")
        controller = Controller("c", queue, reconcile, metrics, concurrency=10)
        running = asyncio.create_task(controller.run())
        await asyncio.sleep(0.5)
        queue.add("new")
        queue.add("listed-1999")
        await asyncio.sleep(1)
        assert order[10:12] == ["new", "listed-1999"]
        queue.close()
        await running

    virtually(scenario())


def test_of_the_first_list_what_is_not_done_comes_first() -> None:
    """It may have been created while no manager ran; what happens from then on is more urgent."""

    async def scenario() -> None:
        queue = WorkQueue[str]("q", Metrics())
        for key in ("done-1", "new-1", "done-2", "new-2"):
            queue.add(key)
            queue.add(key, is_pending=key.startswith("new"))
            queue.add(key)
        order = [await queue.get()]
        queue.add("done-3", is_pending=True)
        order += [await queue.get() for _ in range(4)]
        assert order == ["new-1", "done-3", "new-2", "done-1", "done-2"]

    virtually(scenario())


def test_a_resync_stays_behind_what_has_changed() -> None:
    """Of a hundred keys that are due for a resync and one that changes, that one is first."""

    async def scenario() -> None:
        metrics = Metrics()
        queue = WorkQueue[str]("q", metrics)
        order: list[str] = []

        async def reconcile(key: str) -> Result:
            order.append(key)
            await asyncio.sleep(0.1)
            return Result(60, Priority.LOW)

        controller = Controller("c", queue, reconcile, metrics, concurrency=1)
        running = asyncio.create_task(controller.run())
        await asyncio.sleep(0)
        for number in range(100):
            queue.add(str(number))
        await asyncio.sleep(65.05)
        order.clear()
        queue.add("99")
        await asyncio.sleep(0.2)
        assert order[0] == "99"
        queue.close()
        await running

    virtually(scenario())


def test_a_failed_or_repeated_key_keeps_its_priority() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]("q", Metrics())
        queue.add("listed")
        key = await queue.get()
        queue.add_rate_limited(key)
        queue.done(key)
        await asyncio.sleep(1)
        queue.add("new")
        assert await queue.get() == "new"
        queue.add_after("new", 1)
        queue.done("new")
        queue.add("resync", Priority.LOW)
        await asyncio.sleep(2)
        assert await queue.get() == "new"

    virtually(scenario())


def test_the_higher_priority_of_two_requests_counts() -> None:
    """Also of one that comes while the key is processed, and of two that wait for their time."""

    async def scenario() -> None:
        queue = WorkQueue[str]("q", Metrics())
        queue.add("a")
        await queue.get()
        queue.add("a", Priority.LOW)
        queue.add("a")
        queue.add_after("b", 5, Priority.LOW)
        queue.add_after("b", 9, Priority.NORMAL)
        queue.add("low", Priority.LOW)
        queue.done("a")
        await asyncio.sleep(6)
        assert [await queue.get() for _ in range(3)] == ["a", "b", "low"]

    virtually(scenario())
