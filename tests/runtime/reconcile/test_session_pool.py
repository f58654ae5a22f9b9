"""Sessions are opened once for each identity, renewed with its Secret, and closed when unused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from capsmith_runtime.errors import SessionError, SessionExpiredError
from capsmith_runtime.infrastructure import Credentials, RateLimitedError, SessionFactory
from capsmith_runtime.kube.executor import HandlerExecutor, lend_worker
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.requeue import DeferredError
from capsmith_runtime.reconcile.session_pools import MAX_DELAY, SHORT_LIFE_SECONDS, SessionPool
from capsmith_runtime.testing import clock

OLD = Credentials({"token": "old"}, "acme")
NEW = Credentials({"token": "new"}, "acme")
OTHER = Credentials({"token": "old"}, "other")


class Client:
    """A session that knows whether it is open."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.is_open = True


class Clients(SessionFactory[Client]):
    """Opens clients in a thread, or fails."""

    idle_timeout = 100.0

    def __init__(self) -> None:
        self.opened: list[Client] = []
        self.attempts: list[float] = []
        self.errors: list[Exception] = []
        self.loop = asyncio.get_running_loop()

    def open(self, credentials: Credentials) -> Client:
        self.attempts.append(self.loop.time())
        if self.errors:
            raise self.errors[0]
        client = Client(credentials.get("token", "none"))
        self.opened.append(client)
        return client

    def close(self, session: Client) -> None:
        session.is_open = False


class AsyncClients(Clients):
    """The same without threads."""

    async def open(self, credentials: Credentials) -> Client:  # type: ignore[override]
        await asyncio.sleep(1)
        return super().open(credentials)

    async def close(self, session: Client) -> None:  # type: ignore[override]
        await asyncio.sleep(1)
        super().close(session)


Test = Callable[[SessionPool, Clients], Coroutine[Any, Any, None]]


@pytest.fixture(params=[Clients, AsyncClients], ids=["def", "async def"])
def run(request: pytest.FixtureRequest) -> Callable[[Test], None]:
    """Run a test with a pool on a virtual clock."""

    async def main(test: Test) -> None:
        factory = request.param()
        pool = SessionPool(factory, HandlerExecutor(Metrics(), timeout=20.0))
        await test(pool, factory)
        await pool.close()

    return lambda test: clock.run(main(test))


def test_callers_at_the_same_time_share_one_session(run: Callable[[Test], None]) -> None:
    async def test(pool: SessionPool, factory: Clients) -> None:
        sessions = await asyncio.gather(*(pool.acquire(OLD) for _ in range(20)))
        other = await pool.acquire(OTHER)

        assert len({id(session.value) for session in sessions}) == 1
        assert other.value is not sessions[0].value
        assert [client.token for client in factory.opened] == ["old", "old"]

    run(test)


def test_identities_of_two_kinds_have_two_sessions(run: Callable[[Test], None]) -> None:
    """With one session they would renew it in turn."""

    async def test(pool: SessionPool, factory: Clients) -> None:
        uses = [
            await pool.acquire(Credentials({"token": kind}, "acme", kind=kind))
            for kind in ("Shared", "Tenant", "Shared")
        ]
        assert [use.value.token for use in uses] == ["Shared", "Tenant", "Shared"]
        assert len(factory.opened) == 2

    run(test)


def test_a_changed_role_renews_the_session(run: Callable[[Test], None]) -> None:
    async def test(pool: SessionPool, factory: Clients) -> None:
        for role in ("reader", "writer"):
            await pool.acquire(Credentials(identity="acme", kind="Role", spec={"role": role}))
        assert len(factory.opened) == 2

    run(test)


def test_a_cancelled_caller_does_not_cancel_the_others(run: Callable[[Test], None]) -> None:
    async def test(pool: SessionPool, factory: Clients) -> None:
        first, second = (asyncio.ensure_future(pool.acquire(OLD)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()

        assert (await second).value is factory.opened[0]

    run(test)


def test_a_changed_secret_renews_the_session_and_closes_the_old_after_its_last_use(
    run: Callable[[Test], None],
) -> None:
    async def test(pool: SessionPool, factory: Clients) -> None:
        uses = [await pool.acquire(OLD) for _ in range(2)]
        renewed = await pool.acquire(NEW)
        old = uses[0].value
        assert renewed.value.token == "new"

        pool.release(uses[0])
        await asyncio.sleep(5)
        assert old.is_open
        pool.release(uses[1])
        await asyncio.sleep(5)
        assert not old.is_open
        assert renewed.value.is_open

    run(test)


def test_an_unused_session_is_closed(run: Callable[[Test], None]) -> None:
    async def test(pool: SessionPool, factory: Clients) -> None:
        def are_open() -> list[bool]:
            return [client.is_open for client in factory.opened]

        session = await pool.acquire(OLD)
        await asyncio.sleep(500)
        assert are_open() == [True], "it is in use"
        pool.release(session)
        await asyncio.sleep(90)
        pool.release(await pool.acquire(OLD))
        await asyncio.sleep(90)
        assert are_open() == [True], "it was used meanwhile"
        session = await pool.acquire(OLD)
        await asyncio.sleep(90)
        assert await pool.acquire(OLD) is session, "it is in use again"
        for _ in range(2):
            pool.release(session)
        await asyncio.sleep(90)
        await asyncio.sleep(20)
        assert are_open() == [False]

        assert (await pool.acquire(OLD)).value is factory.opened[1]

    run(test)


def test_at_the_end_all_sessions_are_closed_but_those_in_use(run: Callable[[Test], None]) -> None:
    async def test(pool: SessionPool, factory: Clients) -> None:
        pool.release(await pool.acquire(OLD))
        used = await pool.acquire(OTHER)
        await pool.close()

        assert [client.is_open for client in factory.opened] == [False, True]
        pool.release(used)
        await asyncio.sleep(5)
        assert not used.value.is_open

    run(test)


def test_a_failure_is_shared_and_retried_with_back_off(run: Callable[[Test], None]) -> None:
    async def test(pool: SessionPool, factory: Clients) -> None:
        factory.errors = [RuntimeError("no route")]
        for _ in range(2000):
            with pytest.raises(SessionError, match="no route") as caught:
                await pool.acquire(OLD)
            assert caught.value.reason == "SessionNotOpened"
            assert caught.value.retry_after is not None
            await asyncio.sleep(1)
        gaps = [after - before for before, after in pairwise(factory.attempts)]
        assert gaps[0] < 5
        assert gaps[-1] >= MAX_DELAY
        assert len(factory.attempts) < 20
        factory.errors = []
        await asyncio.sleep(2 * MAX_DELAY)
        pool.release(await pool.acquire(OLD))

    run(test)


def test_new_credentials_end_the_back_off(run: Callable[[Test], None]) -> None:
    async def test(pool: SessionPool, factory: Clients) -> None:
        factory.errors = [RateLimitedError("too many logins", retry_after=3600)]
        with pytest.raises(SessionError) as caught:
            await pool.acquire(OLD)
        assert caught.value.reason == "RateLimited"
        assert caught.value.retry_after == 300, "a pause is capped"
        factory.errors = []
        with pytest.raises(SessionError):
            pool.check(OLD)

        assert (await pool.acquire(NEW)).value.token == "new"

    run(test)


def test_an_open_that_hangs_blocks_no_caller_for_longer_than_the_time_limit() -> None:
    end = threading.Event()

    class Hanging(Clients):
        def open(self, credentials: Credentials) -> Client:
            end.wait(60)
            return super().open(credentials)

    async def main() -> None:
        pool = SessionPool(Hanging(), HandlerExecutor(Metrics(), timeout=0.1))
        with pytest.raises(SessionError, match="did not answer within"):
            await pool.acquire(OLD)
        end.set()

    clock.run(main())


def test_a_close_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Clients):
        def close(self, session: Client) -> None:
            raise RuntimeError("already closed")

    async def main() -> None:
        pool = SessionPool(Failing(), HandlerExecutor(Metrics()))
        pool.release(await pool.acquire(OLD))
        await pool.close()

    clock.run(main())
    assert "cannot close the session" in caplog.messages


def test_an_expired_session_is_replaced_once_for_all_its_callers(
    run: Callable[[Test], None],
) -> None:
    async def test(pool: SessionPool, factory: Clients) -> None:
        uses = [await pool.acquire(OLD) for _ in range(3)]
        await asyncio.sleep(SHORT_LIFE_SECONDS)
        for use in uses[:2]:
            assert isinstance(pool.expire(use, SessionExpiredError()), DeferredError)
            pool.release(use)
        renewed = await pool.acquire(OLD)
        assert renewed.value is not uses[0].value
        assert isinstance(pool.expire(uses[2], SessionExpiredError()), DeferredError)
        assert uses[2].value.is_open
        pool.release(uses[2])
        await asyncio.sleep(5)

        assert (await pool.acquire(OLD)).value is renewed.value
        assert [client.is_open for client in factory.opened] == [False, True]

    run(test)


def test_sessions_that_end_soon_are_opened_again_with_back_off(
    run: Callable[[Test], None],
) -> None:
    """An infrastructure that ends each session immediately gets few logins."""

    async def test(pool: SessionPool, factory: Clients) -> None:
        reasons = set()
        for _ in range(600):
            try:
                session = await pool.acquire(OLD)
            except SessionError as error:
                reasons.add(error.reason)
                await asyncio.sleep(min(1.0, error.retry_after or 0.0))
            else:
                failure = pool.expire(session, SessionExpiredError("again", reason="LoggedOut"))
                assert isinstance(failure, SessionError)
                pool.release(session)

        assert reasons == {"LoggedOut"}
        waits = [later - earlier for earlier, later in pairwise(factory.attempts)]
        assert waits == sorted(waits)
        assert 5 <= len(factory.attempts) <= 12
        # A correction of the credentials does not wait.
        assert (await pool.acquire(NEW)).value.token == "new"

    run(test)


def test_no_slow_login_takes_the_place_of_a_worker() -> None:
    """The worker that needs the session does not wait for it."""
    lent: list[str] = []

    async def main() -> None:
        factory = AsyncClients()
        pool = SessionPool(factory, HandlerExecutor(Metrics(), timeout=20.0))
        lend_worker.set(lambda: lent.append("worker"))
        with pytest.raises(DeferredError):
            await pool.prepare(OLD)
        await asyncio.sleep(2)
        await pool.close()
        assert [each.is_open for each in factory.opened] == [False]

    clock.run(main())
    assert lent == []
