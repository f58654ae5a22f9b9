"""Session factories that report changes of the infrastructure while a session is open."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from capsmith_runtime.errors import SessionExpiredError
from capsmith_runtime.infrastructure import Changes, Credentials, SessionFactory
from capsmith_runtime.kube.executor import HandlerExecutor, running_key
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.session_pools import SHORT_LIFE_SECONDS, SessionPool
from capsmith_runtime.reconcile.session_tasks import MAX_DELAY, STOP_SECONDS
from capsmith_runtime.reconcile.sessions import ReportedChange
from capsmith_runtime.testing import clock
from tests.runtime.support.author_errors import UnprintableError

OLD = Credentials({"token": "old"}, "acme")
NEW = Credentials({"token": "new"}, "acme")


class Watching(SessionFactory[str]):
    """Watches with a coroutine, which fails as often as the test says."""

    idle_timeout = 1e6

    def __init__(self) -> None:
        self.events: list[str] = []
        self.began: list[float] = []
        self.errors: list[BaseException | None] = []
        self.refusals = 0
        self.loop = asyncio.get_running_loop()

    def open(self, credentials: Credentials) -> str:
        if self.refusals:
            self.refusals -= 1
            raise RuntimeError("connection refused")
        return credentials["token"]

    def close(self, session: str) -> None:
        self.events.append(f"close {session}")

    async def watch(self, session: str, changes: Changes) -> None:
        self.began.append(self.loop.time())
        changes.report(external_id=f"m1.{session}")
        if self.errors:
            error = self.errors.pop(0)
            if error is None:
                return
            raise error
        try:
            await asyncio.Event().wait()
        finally:
            self.events.append(f"end {session}")


Test = Callable[[SessionPool, Watching, list[ReportedChange]], Coroutine[Any, Any, None]]


def _run(test: Test) -> None:
    async def main() -> None:
        reported: list[ReportedChange] = []
        factory = Watching()
        pool = SessionPool(factory, HandlerExecutor(Metrics(), timeout=20.0), reported.append)
        await test(pool, factory, reported)
        await pool.close()

    clock.run(main())


def test_a_watch_lasts_from_the_opening_to_the_closing_of_its_session() -> None:
    async def test(pool: SessionPool, factory: Watching, reported: list[ReportedChange]) -> None:
        pool.release(await pool.acquire(OLD))
        await asyncio.sleep(1)
        assert reported == [ReportedChange(external_id="m1.old")]
        pool.release(await pool.acquire(NEW))
        await asyncio.sleep(1)
        assert reported[1:] == [ReportedChange(external_id="m1.new")]
        assert factory.events == ["end old", "close old"]
        await pool.close()
        assert factory.events[2:] == ["end new", "close new"]

    _run(test)


def test_a_coroutine_behind_a_decorator_is_awaited_and_cancelled() -> None:
    class Decorated(Watching):
        def watch(self, session: str, changes: Changes) -> Any:
            return super().watch(session, changes)

    async def main() -> None:
        reported: list[ReportedChange] = []
        factory = Decorated()
        pool = SessionPool(factory, HandlerExecutor(Metrics(), timeout=20.0), reported.append)
        factory.errors = [RuntimeError("connection lost")]
        pool.release(await pool.acquire(OLD))
        await asyncio.sleep(60)
        assert reported == 2 * [ReportedChange(external_id="m1.old")]
        began = asyncio.get_running_loop().time()
        await pool.close()
        assert factory.events == ["end old", "close old"]
        assert asyncio.get_running_loop().time() - began < STOP_SECONDS

    clock.run(main())


def test_without_a_watch_no_task_runs() -> None:
    class Plain(SessionFactory[str]):
        def open(self, credentials: Credentials) -> str:
            return "session"

    async def main() -> None:
        pool = SessionPool(Plain(), HandlerExecutor(Metrics()))
        session = await pool.acquire(OLD)
        assert session.watch is None
        pool.release(session)
        await pool.close()

    clock.run(main())


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("connection lost"),
        None,
        SystemExit(1),
        asyncio.CancelledError(),
        UnprintableError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_watch_that_ends_is_repeated_with_back_off(error: BaseException | None) -> None:
    async def test(pool: SessionPool, factory: Watching, reported: list[ReportedChange]) -> None:
        factory.errors = [error] * 12
        pool.release(await pool.acquire(OLD))
        await asyncio.sleep(13 * MAX_DELAY)
        waits = [after - before for before, after in pairwise(factory.began)]
        assert len(factory.began) == 13
        assert 1.0 <= waits[0] <= 1.25
        assert MAX_DELAY <= waits[-1] <= 1.25 * MAX_DELAY

    _run(test)


@pytest.mark.parametrize(
    "error", [RuntimeError("lost"), SystemExit(1), asyncio.CancelledError(), StopIteration()]
)
def test_a_function_that_ends_is_called_again(error: BaseException) -> None:
    """No future can hold a StopIteration, which ``next`` raises at the end of an SDK's stream."""
    ended: list[int] = []

    class Ending(Watching):
        def watch(self, session: str, changes: Changes) -> None:  # type: ignore[override]
            ended.append(1)
            if len(ended) < 4:
                raise error
            changes.end()

    async def main() -> None:
        pool = SessionPool(Ending(), HandlerExecutor(Metrics(), timeout=20.0))
        pool.release(await pool.acquire(OLD))
        await asyncio.sleep(60)
        assert len(ended) == 4
        await pool.close()

    clock.run(main())


def test_a_session_that_a_watch_finds_expired_is_opened_again() -> None:
    async def test(pool: SessionPool, factory: Watching, reported: list[ReportedChange]) -> None:
        pool.release(await pool.acquire(OLD))
        await asyncio.sleep(SHORT_LIFE_SECONDS)
        first = pool._sessions["acme"]
        factory.errors = [SessionExpiredError("logged out")]
        assert first.watch is not None
        await first.watch.stop()
        first.watch.start("old")
        await asyncio.sleep(1)
        assert pool._sessions["acme"] is not first
        assert factory.events == ["end old", "close old"]
        assert len(factory.began) == 3

    _run(test)


@pytest.mark.parametrize("seconds", [1, SHORT_LIFE_SECONDS])
def test_an_expired_session_is_opened_again_after_failures(seconds: float) -> None:
    """Changes are reported again although no object calls in the meantime."""

    async def test(pool: SessionPool, factory: Watching, reported: list[ReportedChange]) -> None:
        pool.release(await pool.acquire(OLD))
        await asyncio.sleep(seconds)
        first = pool._sessions["acme"]
        assert first.watch is not None
        await first.watch.stop()
        factory.refusals = 3
        factory.errors = [SessionExpiredError("logged out")]
        first.watch.start("old")
        await asyncio.sleep(60)
        assert factory.refusals == 0
        assert len(factory.began) == 3
        pool.release(await pool.acquire(NEW))
        await asyncio.sleep(60)
        assert len(factory.began) == 4
        assert pool._sessions["acme"].credentials == NEW

    _run(test)


def test_a_session_that_cannot_be_opened_again_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its identity may no longer be in use."""
    monkeypatch.setattr(Watching, "idle_timeout", 600.0)

    async def test(pool: SessionPool, factory: Watching, reported: list[ReportedChange]) -> None:
        pool.release(await pool.acquire(OLD))
        await asyncio.sleep(SHORT_LIFE_SECONDS)
        first = pool._sessions["acme"]
        assert first.watch is not None
        await first.watch.stop()
        factory.refusals = 1000
        factory.errors = [SessionExpiredError("logged out")]
        first.watch.start("old")
        await asyncio.sleep(2 * 600)
        left = factory.refusals
        assert left < 995
        await asyncio.sleep(2 * MAX_DELAY)
        assert factory.refusals == left

    _run(test)


def test_an_expired_session_is_not_opened_again_after_the_manager_has_stopped() -> None:
    """No code would close it, and no object needs its changes."""

    async def test(pool: SessionPool, factory: Watching, reported: list[ReportedChange]) -> None:
        pool.release(await pool.acquire(OLD))
        await asyncio.sleep(SHORT_LIFE_SECONDS)
        first = pool._sessions["acme"]
        assert first.watch is not None
        await first.watch.stop()
        factory.refusals = 1
        factory.errors = [SessionExpiredError("logged out")]
        first.watch.start("old")
        await asyncio.sleep(0.1)
        assert factory.refusals == 0
        began = len(factory.began)
        await pool.close()
        await asyncio.sleep(60)
        assert len(factory.began) == began

    _run(test)


def test_a_function_has_a_thread_that_ends_with_the_session() -> None:
    threads: list[threading.Thread] = []

    class Blocking(Watching):
        def watch(self, session: str, changes: Changes) -> None:  # type: ignore[override]
            threads.append(threading.current_thread())
            changes.report(provider_id="acme://1")
            while not changes.wait(60):
                pass
            changes.report(provider_id="acme://late")

    async def main() -> None:
        reported: list[ReportedChange] = []
        seen = asyncio.Event()

        def enqueue(change: ReportedChange) -> None:
            reported.append(change)
            seen.set()

        pool = SessionPool(Blocking(), HandlerExecutor(Metrics()), enqueue)
        pool.release(await pool.acquire(OLD))
        await seen.wait()
        await pool.close()
        assert reported == [ReportedChange(provider_id="acme://1")]
        (thread,) = threads
        assert thread is not threading.main_thread()
        thread.join(10)
        assert not thread.is_alive()

    asyncio.run(main())


def test_what_outlives_a_reconcile_belongs_to_no_object() -> None:
    """A session is opened for the object that needs it, and watched and closed for none."""
    keys: dict[str, str] = {}

    class Recording(Watching):
        async def open(self, credentials: Credentials) -> str:  # type: ignore[override]
            keys["open"] = running_key.get()
            return super().open(credentials)

        async def watch(self, session: str, changes: Changes) -> None:
            keys["watch"] = running_key.get()
            await super().watch(session, changes)

        async def close(self, session: str) -> None:  # type: ignore[override]
            keys["close"] = running_key.get()

    async def main() -> None:
        pool = SessionPool(Recording(), HandlerExecutor(Metrics(), timeout=20.0))
        running_key.set("default/one")
        pool.release(await pool.acquire(OLD))
        await asyncio.sleep(1)
        await pool.close()

    clock.run(main())
    assert keys == {"open": "default/one", "watch": "", "close": ""}
