"""All session factories of a manager, with the rate limits of their identities."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.reconcile.rate_limits import Rate, RateLimiter
from capsmith_runtime.reconcile.readiness import ReadinessCheck
from capsmith_runtime.reconcile.session_pool import SessionPool
from capsmith_runtime.reconcile.sessions import SessionFactory


class SharedSessions:
    """What the kinds that name one session factory, or none, share: sessions and rate limits."""

    def __init__(self, pool: SessionPool | None, rate: Rate) -> None:
        self.pool = pool
        self._rate = rate
        self._limiters: dict[str, RateLimiter] = {}

    def limiter(self, identity: str) -> RateLimiter:
        """Return the rate limiter of an identity."""
        if identity not in self._limiters:
            self._limiters[identity] = RateLimiter(self._rate)
        return self._limiters[identity]


class SessionPools:
    """Creates each factory once, however many kinds name it."""

    def __init__(
        self, executor: HandlerExecutor, *, rate: float | None = None, burst: int | None = None
    ) -> None:
        """``rate`` and ``burst``, if not None, replace those of the factories."""
        self.executor = executor
        self._rate = rate
        self._burst = burst
        self._shared: dict[type[SessionFactory[Any]] | None, SharedSessions] = {}
        self.checks: list[ReadinessCheck] = []

    def of(self, reconciler: object) -> SharedSessions:
        """Return the sessions of a reconciler.

        Raises TypeError for a ``session_factory`` that is no factory, and ValueError for a rate
        that is negative.
        """
        cls = getattr(type(reconciler), "session_factory", None)
        if cls is not None and not (isinstance(cls, type) and issubclass(cls, SessionFactory)):
            name = type(reconciler).__name__
            raise TypeError(f"{name}.session_factory must be a SessionFactory class: {cls!r}")
        if cls not in self._shared:
            self._shared[cls] = self._create(cls)
        return self._shared[cls]

    async def close(self, seconds: float) -> None:
        """Close all sessions that no call uses, within some seconds."""
        pools = [shared.pool for shared in self._shared.values() if shared.pool is not None]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(pool.close() for pool in pools))

    def _create(self, cls: type[SessionFactory[Any]] | None) -> SharedSessions:
        rate = (cls.rate if cls is not None else 0.0) if self._rate is None else self._rate
        burst = (cls.burst if cls is not None else 0) if self._burst is None else self._burst
        if cls is None:
            return SharedSessions(None, Rate.of(rate, burst))
        factory = cls()
        if cls.readyz is not SessionFactory.readyz:
            self.checks.append(ReadinessCheck(cls.__qualname__, factory.readyz))
        return SharedSessions(SessionPool(factory, self.executor), Rate.of(rate, burst))
