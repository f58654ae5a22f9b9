"""A cluster of its own for each test."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest

from capsmith.clusters.processes.servers import ApiServer
from tests.realapi.secret_keeping import Keeping, keeping

NUMBERS = itertools.count(1)
Run = Callable[[Callable[[Keeping], Awaitable[None]]], None]


@pytest.fixture
def run(api_server: ApiServer) -> Run:
    """Return a function that runs a test with its own cluster."""

    def running(test: Callable[[Keeping], Awaitable[None]]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(300), keeping(api_server, f"c-{next(NUMBERS)}") as kept:
                await test(kept)

        asyncio.run(bounded())

    return running
