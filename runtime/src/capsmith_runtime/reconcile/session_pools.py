"""All session factories of a manager, with the rate limits of their identities."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, NamedTuple

from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.log import describe_error, get_logger
from capsmith_runtime.kube.requeue import Priority
from capsmith_runtime.kube.workqueue import LOW_SHARE, PriorityFifo
from capsmith_runtime.reconcile.session_pool import SessionPool
from capsmith_runtime.reconcile.sessions import SessionFactory

PERIOD_SECONDS: Final = 10.0
TIMEOUT_SECONDS: Final = 5.0

_log = get_logger("readiness")


class ReadinessCheck:
    """Calls a function periodically; ready while the last call ended without exception.

    It uses no thread of the reconcilers' calls: a check that hangs must not stop those, nor make
    the manager unhealthy.
    """

    def __init__(self, name: str, function: Callable[[], Awaitable[None] | None]) -> None:
        self.name = name
        self._function = function
        self._running: asyncio.Future[None] | None = None
        self._problem: str | None = "not called yet"

    def is_ready(self) -> bool:
        """Return the result of the last call; False before it."""
        return self._problem is None

    async def run(self) -> None:
        """Check until cancelled."""
        try:
            while True:
                self._report(await self._check())
                await asyncio.sleep(PERIOD_SECONDS)
        finally:
            if self._running is not None:
                self._running.cancel()

    async def _check(self) -> str | None:
        """Return the problem, or None; a call that still runs is waited for, not repeated."""
        if self._running is None:
            self._running = asyncio.ensure_future(self._call())
        await asyncio.wait({self._running}, timeout=TIMEOUT_SECONDS)
        if not self._running.done():
            return f"no answer within {TIMEOUT_SECONDS:g} s"
        finished, self._running = self._running, None
        error = finished.exception()
        return None if error is None else describe_error(error)

    async def _call(self) -> None:
        try:
            if inspect.iscoroutinefunction(self._function):
                await self._function()
                return
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(None, self._function)
            if inspect.isawaitable(answer):
                await answer
        except (SystemExit, KeyboardInterrupt, asyncio.CancelledError) as caught:
            task = asyncio.current_task()
            if isinstance(caught, asyncio.CancelledError) and task and task.cancelling():
                raise
            # It would end the event loop, or this task.
            raise RuntimeError(f"{self.name} raised {caught!r}") from caught

    def _report(self, problem: str | None) -> None:
        if problem == self._problem:
            return
        self._problem = problem
        if problem is None:
            _log.info("ready", check=self.name)
        else:
            _log.warning("not ready", check=self.name, error=problem)


ADMISSION_SECONDS: Final = 60.0
"""How long a caller that was admitted may take to return; most do at once."""
_EPSILON: Final = 1e-6
"""A timer may fire before its time, by less than the resolution of the clock."""


class Rate(NamedTuple):
    """A rate in calls per second, 0 for unlimited, and how many calls may start at once."""

    per_second: float
    burst: int

    @classmethod
    def of(cls, per_second: float, burst: int) -> Rate:
        """Return a rate whose burst is by default the calls of one second, at least one.

        Raises ValueError for a negative number, and for a rate that is not finite.
        """
        if not 0 <= per_second < math.inf or burst < 0:
            raise ValueError(f"neither 0 nor positive: rate {per_second}, burst {burst}")
        return cls(per_second, burst or max(1, math.ceil(per_second)))


class RateLimiter:
    """A token bucket with a line of those who wait: deletions first, then by priority.

    It blocks no worker: a caller that is refused leaves, and is called back when it may return.
    """

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._tokens = float(rate.burst)
        self._refilled = monotonic()
        self._paused_until = -math.inf
        self._line = _Line()
        # By time: a caller that was admitted need not return, because its object may be gone.
        self._admitted: OrderedDict[Hashable, float] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, caller: Hashable) -> bool:
        """Return whether the caller may call now; if not, it must `wait`."""
        was_admitted = self._admitted.pop(caller, None) is not None
        if monotonic() < self._paused_until:
            if was_admitted:
                self._tokens = min(self._tokens + 1.0, float(self._rate.burst))
            return False
        return was_admitted or (not self._line and self._take())

    def wait(
        self, caller: Hashable, wake: Callable[[], None], priority: Priority, *, deletion: bool
    ) -> None:
        """Call `wake` when the caller may return; one that waits already keeps its place."""
        self._line.push(caller, wake, priority, deletion=deletion)
        self._schedule()

    def pause(self, seconds: float) -> None:
        """Admit no caller until so many seconds have passed."""
        self._paused_until = max(self._paused_until, monotonic() + seconds)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._schedule()

    def _take(self) -> bool:
        if self._rate.per_second == 0:
            return True
        now = monotonic()
        earned = (now - self._refilled) * self._rate.per_second
        self._tokens = min(self._tokens + earned, float(self._rate.burst))
        self._refilled = now
        if self._tokens < 1.0 - _EPSILON:
            return False
        self._tokens = max(0.0, self._tokens - 1.0)
        return True

    def _schedule(self) -> None:
        if self._timer is not None or not self._line:
            return
        loop = asyncio.get_running_loop()
        due = max(self._paused_until, loop.time())
        if self._rate.per_second:
            due = max(due, self._refilled + (1.0 - self._tokens) / self._rate.per_second)
        self._timer = loop.call_at(due, self._admit_waiting)

    def _admit_waiting(self) -> None:
        self._timer = None
        now = monotonic()
        while self._admitted and next(iter(self._admitted.values())) < now - ADMISSION_SECONDS:
            self._admitted.popitem(last=False)
        while self._line and self._take():
            caller, wake = self._line.pop()
            self._admitted[caller] = now
            wake()
        self._schedule()


class _Line:
    """Callers that wait, without duplicates.

    Deletions come first, but every ``LOW_SHARE``-th caller is another one while any waits:
    deletions that never succeed must not block all others.
    """

    def __init__(self) -> None:
        self._wakes: dict[Hashable, Callable[[], None]] = {}
        self._deletions: OrderedDict[Hashable, None] = OrderedDict()
        # A caller that has moved to the deletions stays here, and is skipped.
        self._others = PriorityFifo[Hashable]()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._wakes)

    def push(
        self, caller: Hashable, wake: Callable[[], None], priority: Priority, *, deletion: bool
    ) -> None:
        """Append a caller; one that waits already may only move up."""
        self._wakes[caller] = wake
        if deletion:
            self._deletions[caller] = None
        elif caller not in self._deletions:
            self._others.push(caller, priority)

    def pop(self) -> tuple[Hashable, Callable[[], None]]:
        """Remove and return the next caller; raises KeyError if none waits."""
        while True:
            caller = self._next()
            wake = self._wakes.pop(caller, None)
            if wake is not None:
                return caller, wake

    def _next(self) -> Hashable:
        if self._deletions:
            self._turn = (self._turn + 1) % LOW_SHARE if self._others else 0
        if self._deletions and (self._turn or not self._others):
            return self._deletions.popitem(last=False)[0]
        return self._others.pop()[0]


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
