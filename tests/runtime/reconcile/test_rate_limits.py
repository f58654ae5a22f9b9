"""The rate limiter: a token bucket with a line, deletions first, and pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.requeue import Priority
from capsmith_runtime.reconcile.rate_limits import IDLE_SECONDS, Rate, RateLimiter
from capsmith_runtime.reconcile.session_pools import SessionPools
from capsmith_runtime.testing import clock


class Callers:
    """Callers that return as soon as they are called back."""

    def __init__(self, limiter: RateLimiter) -> None:
        self.limiter = limiter
        self.calls: list[tuple[float, str]] = []

    def call(
        self, name: str, priority: Priority = Priority.NORMAL, *, deletion: bool = False
    ) -> None:
        if self.limiter.admit(name):
            self.calls.append((asyncio.get_running_loop().time(), name))
            return
        self.limiter.wait(
            name, lambda: self.call(name, priority, deletion=deletion), priority, deletion=deletion
        )

    @property
    def names(self) -> list[str]:
        return [name for _, name in self.calls]


def run(scenario: Coroutine[Any, Any, None]) -> None:
    clock.run(scenario)


def test_no_more_calls_than_the_rate_after_the_burst() -> None:
    async def main() -> None:
        callers = Callers(RateLimiter(Rate.of(10.0, 5)))
        for number in range(105):
            callers.call(f"m{number}")
        assert len(callers.calls) == 5
        await asyncio.sleep(11)

        assert callers.names == [f"m{number}" for number in range(105)]
        times = [time for time, _ in callers.calls]
        for index in range(5, 105):
            assert times[index] == pytest.approx((index - 4) / 10, abs=0.01)

    run(main())


def test_a_burst_is_saved_up_again() -> None:
    async def main() -> None:
        callers = Callers(RateLimiter(Rate.of(1.0, 3)))
        for number in range(3):
            callers.call(f"a{number}")
        await asyncio.sleep(100)
        for number in range(5):
            callers.call(f"b{number}")
        assert len(callers.calls) == 6

    run(main())


def test_deletions_are_first_then_changes_and_none_waits_forever() -> None:
    async def main() -> None:
        callers = Callers(RateLimiter(Rate.of(1.0, 1)))
        callers.call("first")
        callers.call("resync", Priority.LOW)
        callers.call("changed")
        for number in range(9):
            callers.call(f"deletion{number}", deletion=True)
        await asyncio.sleep(20)

        others = [name for name in callers.names if not name.startswith("deletion")]
        assert others == ["first", "changed", "resync"]
        assert callers.names[1:5] == [f"deletion{number}" for number in range(4)]
        assert callers.names.index("changed") == 5
        assert callers.names.index("resync") == 10

    run(main())


def test_an_object_that_is_deleted_meanwhile_moves_up_and_calls_once() -> None:
    async def main() -> None:
        callers = Callers(RateLimiter(Rate.of(1.0, 1)))
        for name in ("first", "second", "third"):
            callers.call(name)
        callers.call("third", deletion=True)
        callers.call("second")  # an event of an object that waits already
        await asyncio.sleep(20)

        assert callers.names == ["first", "third", "second"]

    run(main())


def test_no_caller_overtakes_the_line_when_a_token_is_there() -> None:
    async def main() -> None:
        callers = Callers(RateLimiter(Rate.of(1.0, 1)))
        callers.call("first")
        callers.call("second")
        loop = asyncio.get_running_loop()
        loop.call_at(loop.time() + 1.0 - 5e-7, callers.call, "third")
        await asyncio.sleep(3)

        assert callers.names == ["first", "second", "third"]

    run(main())


def test_no_event_shortens_a_pause() -> None:
    async def main() -> None:
        callers = Callers(RateLimiter(Rate.of(0.0, 0)))
        callers.call("before")
        callers.limiter.pause(30)
        callers.limiter.pause(10)
        for second in range(29):
            callers.call("machine")
            callers.call("deleted", deletion=True)
            assert callers.names == ["before"], second
            await asyncio.sleep(1)
        await asyncio.sleep(2)

        assert callers.calls[1:] == [(30.0, "deleted"), (30.0, "machine")]

    run(main())


def test_a_pause_holds_back_callers_that_were_called_already() -> None:
    async def main() -> None:
        limiter = RateLimiter(Rate.of(1.0, 1))
        woken: list[str] = []
        assert limiter.admit("first")
        assert not limiter.admit("second")
        limiter.wait("second", lambda: woken.append("second"), Priority.NORMAL, deletion=False)
        await asyncio.sleep(1.5)
        assert woken == ["second"]
        limiter.pause(60)
        assert not limiter.admit("second")
        limiter.wait("second", lambda: woken.append("second"), Priority.NORMAL, deletion=False)
        await asyncio.sleep(61)
        assert woken == ["second", "second"]
        assert limiter.admit("second")

    run(main())


def test_callers_that_do_not_return_delay_no_other() -> None:
    async def main() -> None:
        limiter = RateLimiter(Rate.of(1.0, 1))
        assert limiter.admit("first")
        woken: list[str] = []
        for name in ("gone", "other"):
            assert not limiter.admit(name)
            limiter.wait(name, lambda name=name: woken.append(name), Priority.LOW, deletion=False)  # type: ignore[misc]
        await asyncio.sleep(2.5)
        assert woken == ["gone", "other"]
        assert limiter.admit("other")

    run(main())


def test_limiters_of_identities_that_are_gone_are_removed() -> None:
    async def main() -> None:
        shared = SessionPools(HandlerExecutor(Metrics()), rate=1.0).of(object())
        for number in range(100):
            assert shared.limiter(f"namespace-{number}").admit("machine")
        paused = shared.limiter("paused")
        await asyncio.sleep(IDLE_SECONDS)
        paused.pause(60)
        for number in range(100):
            shared.limiter(f"next-{number}")
        assert len(shared._limiters) == 101
        assert shared.limiter("paused") is paused
        assert shared.paused == 1

    run(main())


@pytest.mark.parametrize(
    ("rate", "burst"), [(-1.0, 1), (float("nan"), 1), (float("inf"), 1), (1.0, -1)]
)
def test_a_rate_is_a_finite_number(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="neither 0 nor positive"):
        Rate.of(rate, burst)
    assert Rate.of(2.5, 0) == (2.5, 3)
