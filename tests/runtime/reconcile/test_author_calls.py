"""Calls of several controllers that share the limit of one identity."""

from __future__ import annotations

import asyncio

import pytest

from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.requeue import DeferredError, Priority
from capsmith_runtime.reconcile.author_step import AuthorCalls
from capsmith_runtime.reconcile.session_pools import SessionPools
from capsmith_runtime.testing import clock


def test_objects_of_the_same_name_wait_for_a_turn_each() -> None:
    """A pool and a claim may have the same name."""

    async def main() -> None:
        pools = SessionPools(HandlerExecutor(Metrics()), rate=1.0, burst=1)
        claims, ranges = (AuthorCalls(object(), pools) for _ in range(2))
        calls: list[str] = []

        async def hook(scope: str) -> None:
            calls.append(scope)

        async def reconcile(author: AuthorCalls, scope: str) -> None:
            try:
                await author.call("acme", hook, scope)
            except DeferredError as deferred:
                if deferred.subscribe is not None:
                    deferred.subscribe(
                        lambda: tasks.append(asyncio.create_task(reconcile(author, scope))),
                        Priority.NORMAL,
                    )

        tasks: list[asyncio.Task[None]] = []
        await reconcile(claims, "first")
        await reconcile(claims, "claim")
        await reconcile(ranges, "pool")
        assert calls == ["first"]
        await asyncio.sleep(5)
        assert calls == ["first", "claim", "pool"]

    clock.run(main())


def test_a_method_may_be_any_callable() -> None:
    class Hook:
        def __call__(self, scope: str) -> str:
            return scope

    async def main() -> None:
        author = AuthorCalls(object(), SessionPools(HandlerExecutor(Metrics())))
        assert await author.call("acme", Hook(), "scope") == "scope"

    clock.run(main())


@pytest.mark.parametrize("rate", [-1.0, float("nan")])
def test_a_declared_rate_is_checked_at_the_start(rate: float) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="neither 0 nor positive"):
            AuthorCalls(object(), SessionPools(HandlerExecutor(Metrics()), rate=rate))

    clock.run(main())
