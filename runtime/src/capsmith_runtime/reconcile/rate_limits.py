"""Rate limits and pauses for one identity's author calls."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from capsmith_runtime.kube.caller_lines import CallerLine
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.requeue import Priority

ADMISSION_SECONDS: Final = 60.0
"""Seconds within which a caller must come back once it is called; later, it has lost its turn."""
IDLE_SECONDS: Final = 3600.0
"""Seconds after its last use for which an identity's limiter is kept."""
_EPSILON: Final = 1e-6
"""Tolerance in seconds: a timer may fire early by less than the clock's resolution."""


class Rate(NamedTuple):
    """A rate limit: calls per second (0 means unlimited), and how many calls may start together."""

    per_second: float
    burst: int

    @classmethod
    def of(cls, per_second: float, burst: int) -> Rate:
        """Create a rate of ``per_second`` calls, of which ``burst`` may start together.

        A burst of 0 means as many as per second, rounded up, and at least one. Raises ValueError if
        ``burst`` is negative, or if ``per_second`` is negative or not finite.
        """
        if not 0 <= per_second < math.inf or burst < 0:
            raise ValueError(f"neither 0 nor positive: rate {per_second}, burst {burst}")
        return cls(per_second, burst or max(1, math.ceil(per_second)))


class RateLimiter:
    """A token bucket with a queue, which serves deletions first, then callers by priority.

    It never blocks a worker: a caller that is not admitted leaves, and is called back when its turn
    comes.
    """

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._tokens = float(rate.burst)
        self._refilled = monotonic()
        self._paused_until = -math.inf
        self._used = monotonic()
        self._line = CallerLine()
        # With the time of admission: an admitted caller may never return, because its object is
        # gone.
        self._admitted: OrderedDict[Hashable, float] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_paused(self) -> bool:
        """Return whether calls are paused because the infrastructure rejected one of them."""
        return monotonic() < self._paused_until

    @property
    def is_idle(self) -> bool:
        """Return whether the limiter has no state that would be lost by creating a new one."""
        return not self._line and monotonic() >= max(self._paused_until, self._used + IDLE_SECONDS)

    def admit(self, caller: Hashable) -> bool:
        """Take a token for one call and return True, or return False if none is available.

        If it returns False, the caller must call `wait`.
        """
        self._used = monotonic()
        was_admitted = self._admitted.pop(caller, None) is not None
        if monotonic() < self._paused_until:
            if was_admitted:
                # It got its token before the pause, and makes no call with it now.
                self._tokens = min(self._tokens + 1.0, float(self._rate.burst))
            return False
        # A newcomer must not overtake the callers in the line.
        return was_admitted or (not self._line and self._take())

    def wait(
        self, caller: Hashable, wake: Callable[[], None], priority: Priority, *, deletion: bool
    ) -> None:
        """Queue a caller, and call `wake` when its turn comes; a queued caller keeps its position.

        ``deletion`` gives the caller precedence.
        """
        self._line.push(caller, wake, priority, deletion=deletion)
        self._schedule()

    def pause(self, seconds: float) -> None:
        """Admit no caller for ``seconds``; callers in the queue keep their positions."""
        self._paused_until = max(self._paused_until, monotonic() + seconds)
        # The timer was set for a time that may now lie within the pause.
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
        # The tokens of admissions that expire are not returned: the rate may fall below the limit,
        # but never exceeds it.
        while self._admitted and next(iter(self._admitted.values())) < now - ADMISSION_SECONDS:
            self._admitted.popitem(last=False)
        while self._line and self._take():
            caller, wake = self._line.pop()
            self._admitted[caller] = now
            wake()
        self._schedule()
