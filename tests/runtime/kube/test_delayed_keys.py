"""Keys that are due later, on a clock of the tests' own."""

from __future__ import annotations

import asyncio
import gc

from hypothesis import given, settings
from hypothesis import strategies as st

from capsmith_runtime.kube.delayed_keys import DelayedKeys
from capsmith_runtime.kube.requeue import Priority
from tests.runtime.support.clock import virtually

Step = tuple[str, str, int, Priority]
KEYS = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "discard", "sleep"]),
        KEYS,
        st.integers(0, 4),
        st.sampled_from(Priority),
    ),
    max_size=40,
)
Added = tuple[float, str, Priority]


def expect(steps: list[Step]) -> set[Added]:
    """Return when each key is due, from a model without a timer."""
    now, added = 0.0, set[Added]()
    waiting: dict[str, tuple[float, Priority]] = {}
    for action, key, seconds, priority in [*steps, ("sleep", "", 100, Priority.LOW)]:
        if action == "put":
            due, other = waiting.get(key, (now + seconds, priority))
            waiting[key] = min(due, now + seconds), max(other, priority)
        elif action == "discard":
            waiting.pop(key, None)
        else:
            now += seconds
            for each, (due, shown) in list(waiting.items()):
                if due <= now:
                    added.add((due, each, shown))
                    del waiting[each]
    return added


async def play(steps: list[Step]) -> set[Added]:
    added = set[Added]()
    loop = asyncio.get_running_loop()
    began = loop.time()
    keys = DelayedKeys[str](lambda key, priority: added.add((loop.time() - began, key, priority)))
    for action, key, seconds, priority in [*steps, ("sleep", "", 100, Priority.LOW)]:
        if action == "put":
            keys.put(key, seconds, priority)
        elif action == "discard":
            keys.discard(key)
        else:
            # Keys that are due at the end of the sleep come before the next step.
            await asyncio.sleep(seconds + 1e-6)
            began += 1e-6
    assert not keys
    return {(round(due, 3), key, priority) for due, key, priority in added}


@given(steps=STEPS)
@settings(max_examples=300, deadline=None)
def test_each_key_is_added_at_its_earliest_time_with_its_highest_priority(
    steps: list[Step],
) -> None:
    assert virtually(play(steps)) == expect(steps)


def test_thousands_of_keys_are_nothing_to_the_garbage_collector() -> None:
    """It would visit five objects for each key that has a timer of its own."""

    async def scenario() -> None:
        keys = DelayedKeys[str](lambda key, priority: None)
        names = [f"machine-{number}" for number in range(5000)]
        gc.collect()
        before = len(gc.get_objects())
        for number, name in enumerate(names):
            keys.put(name, 600 + number % 60, Priority.LOW)
        assert len(gc.get_objects()) - before < 50
        assert len(keys) == len(names)
        keys.clear()

    virtually(scenario())


def test_keys_that_are_discarded_take_no_memory() -> None:
    """Each reconcile replaces the time of the next resync, ten minutes ahead."""

    async def scenario() -> None:
        keys = DelayedKeys[str](lambda key, priority: None)
        for number in range(10_000):
            keys.put(f"machine-{number % 10}", 600, Priority.LOW)
            keys.discard(f"machine-{number % 10}")
        assert len(keys._heap) < 200
        keys.clear()

    virtually(scenario())
