"""Calls of several controllers that share the limit of one identity."""

from __future__ import annotations

import asyncio

import pytest

from capsmith_runtime.errors import SessionExpiredError
from capsmith_runtime.infrastructure import (
    Credentials,
    Deleted,
    InfraMachineDeleteScope,
    SessionFactory,
)
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.requeue import DeferredError, Priority
from capsmith_runtime.reconcile.author_step import AuthorCalls
from capsmith_runtime.reconcile.session_pools import SHORT_LIFE_SECONDS, SessionPools
from capsmith_runtime.testing import clock
from capsmith_runtime.testing import infrastructure as testing


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


class Tokens(SessionFactory[str]):
    """Opens numbered sessions."""

    def __init__(self) -> None:
        self.opened = 0

    def open(self, credentials: Credentials) -> str:
        self.opened += 1
        return f"session {self.opened}"


class MachineReconciler:
    """Has calls that find the first session ended."""

    session_factory = Tokens

    def __init__(self) -> None:
        self.used: list[str] = []

    async def reconcile_delete(self, machine: InfraMachineDeleteScope[object]) -> Deleted:
        self.used.append(machine.session(Tokens))
        if self.used[-1] == "session 1":
            raise SessionExpiredError
        return Deleted()


def test_a_call_that_finds_its_session_ended_is_repeated_with_a_new_one() -> None:
    """The call fails only for the caller that would have to log in again itself otherwise."""

    async def main() -> None:
        reconciler = MachineReconciler()
        calls = AuthorCalls(reconciler, SessionPools(HandlerExecutor(Metrics())))
        machine = testing.infra_machine_deletion(object(), credentials={"token": "t"})

        async def call() -> object:
            return await calls.call("m", reconciler.reconcile_delete, machine, deletion=True)

        await calls.call("m", lambda scope: scope.session(Tokens), machine, deletion=True)
        await asyncio.sleep(SHORT_LIFE_SECONDS)
        with pytest.raises(DeferredError) as deferred:
            await call()
        assert deferred.value.seconds == 0.0
        assert await call() == Deleted()
        assert reconciler.used == ["session 1", "session 2"]

    clock.run(main())
