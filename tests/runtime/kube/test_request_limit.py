"""The client-side limit of requests, on a clock of the tests' own."""

from __future__ import annotations

import asyncio

import pytest

from capsmith_runtime.kube.request_limit import RequestLimit
from tests.runtime.support.clock import virtually


def times(limit: RequestLimit, *pauses: float) -> list[float]:
    """Return when requests start that are sent one after the other, each after a pause."""

    async def scenario() -> list[float]:
        loop, found = asyncio.get_running_loop(), []
        began = loop.time()
        for pause in pauses:
            await asyncio.sleep(pause)
            await limit.wait()
            found.append(loop.time() - began)
        return found

    return virtually(scenario())


def test_a_burst_starts_immediately_and_the_rest_at_the_rate() -> None:
    assert times(RequestLimit(2.0, 3), *[0.0] * 6) == pytest.approx([0, 0, 0, 0.5, 1, 1.5])


def test_a_pause_saves_one_burst_at_most() -> None:
    found = times(RequestLimit(2.0, 2), 0, 0, 60, 0, 0)
    assert found == pytest.approx([0, 0, 60, 60, 60.5])


def test_without_a_rate_nothing_waits() -> None:
    assert times(RequestLimit(), *[0.0] * 1000)[-1] == 0


def test_concurrent_requests_keep_their_order() -> None:
    limit, order = RequestLimit(1.0, 1), list[int]()

    async def send(number: int) -> None:
        await limit.wait()
        order.append(number)

    async def scenario() -> None:
        await asyncio.gather(*(send(number) for number in range(10)))

    virtually(scenario())
    assert order == list(range(10))
