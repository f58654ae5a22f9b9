"""Limits on the number of concurrent author calls for each tenant.

A tenant is an identity, or a Cluster whose objects have none: anything that may have its own
endpoint.  All tenants share workers and threads, and a call to a cloud that never responds occupies
both until its time limit.  Therefore, no tenant may occupy many of them with slow calls, and a
tenant whose calls hang is paused for a while.  All tenants of one namespace together may use only a
share of the threads, because their number is not limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from capsmith_runtime.kube.caller_lines import CallerLine
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.executor import SLOW_SECONDS, HandlerExecutor
from capsmith_runtime.kube.handler_calls import find_namespace
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.requeue import DeferredError, Priority
from capsmith_runtime.reconcile.idle_entries import IdleEntries

_log = get_logger("hooks")

SHARE: Final = 4
"""Divisor for the share of workers and threads that a tenant's slow calls may occupy.

With 4, they may occupy a quarter of a kind's workers and a quarter of all threads.
"""
HANG_BASE_SECONDS: Final = 10.0
HANG_MAX_SECONDS: Final = 300.0
"""Maximum back-off in seconds after a call that hung."""
RETRY_SECONDS: Final = 120.0
"""Seconds after which a rejected caller tries again even if it is not called back.

A callback may never come, because the object of the preceding caller may be gone.
"""
IDLE_SECONDS: Final = 3600.0
"""Seconds for which a tenant is remembered after its last call."""


class Caller(NamedTuple):
    """The object that a call is about, and whether the object is being deleted."""

    key: Hashable
    is_deleted: bool


class CallPermit:
    """Permission for one running call to author code, counted for its tenant."""

    def __init__(self, tenant: TenantCalls, group: Hashable, caller: Caller) -> None:
        self.group = group
        self.caller = caller
        self.began = monotonic()
        self.hangs = False
        """Whether the call exceeded its time limit and is still running."""
        self._tenant = tenant

    @property
    def is_slow(self) -> bool:
        """Return whether the call has been running for longer than most calls do."""
        return self.hangs or monotonic() - self.began >= SLOW_SECONDS

    def end(self) -> None:
        """End a call that failed or got no response; the tenant's back-off continues."""
        self._tenant.remove(self)

    def succeed(self) -> None:
        """End a successful call, which shows that the infrastructure can be reached."""
        # Before waiting callers are called back, so that they find the pause ended.
        self._tenant.mark_answer()
        self._tenant.remove(self)

    def postpone(self) -> DeferredError:
        """End a call that its namespace has no thread for, and return the error to raise."""
        self.end()
        return self._tenant.wait_for_namespace(self.caller)

    def time_out(self, *, hangs: bool) -> None:
        """Pause the tenant after a timeout.

        ``hangs`` is true if the call is still running, in which case it counts until :meth:`end`.
        """
        self.hangs = hangs
        self._tenant.pause_after(self)
        if not hangs:
            self._tenant.remove(self)


class TenantCalls:
    """A tenant's running calls, and the callers that wait for them to end."""

    def __init__(self, name: str, limits: TenantLimits) -> None:
        self.name = name
        self.used = monotonic()
        self.paused_until = 0.0
        self._limits = limits
        self._permits: set[CallPermit] = set()
        # Thousands of tenants have no waiting callers.
        self._line: CallerLine | None = None
        self._hangs = 0
        self._answered = 0.0

    @property
    def is_idle(self) -> bool:
        """Return whether the tenant has no state that would be lost by forgetting it."""
        now = monotonic()
        # A tenant that is forgotten during its pause would be called again too early.
        return not self._permits and now >= max(self.paused_until, self.used + IDLE_SECONDS)

    def admit(self, group: Hashable, concurrency: int, caller: Caller) -> None:
        """Raise DeferredError if the tenant may not start another call in ``group``.

        ``group`` is a reconciler; ``concurrency`` is the number of workers for its kind. After the
        error, ``caller`` is woken when a call ends that it has to wait for: one of the tenant, or
        any of its namespace.  Callers whose object is being deleted come first. An admitted call is
        not counted until :meth:`begin`.
        """
        self.used = monotonic()
        # Hanging calls occupy no worker.  They count against the shares of slow calls.
        running = [each for each in self._permits if not each.hangs]
        is_full = sum(each.group == group for each in running) >= concurrency
        left = self.paused_until - monotonic()
        if not is_full and left <= 0 and self._limits.executor.is_crowded(self.name):
            raise self.wait_for_namespace(caller)
        problem = (
            f"{concurrency} run already" if is_full else self._find_problem(group, concurrency)
        )
        if problem is None:
            return

        def subscribe(wake: Callable[[], None], priority: Priority) -> None:
            if self._line is None:
                self._line = CallerLine()
            self._line.push(caller.key, wake, priority, deletion=caller.is_deleted)

        raise DeferredError(
            f"calls of {self.name}: {problem}",
            seconds=left if left > 0 else RETRY_SECONDS,
            subscribe=subscribe,
            is_throttled=not is_full,
        )

    def wait_for_namespace(self, caller: Caller) -> DeferredError:
        """Return the error for a caller whose namespace is crowded.

        The calls of other tenants may have to end first, so the tenant's own line does not do.
        """
        namespace, waiting = find_namespace(self.name), self._limits.executor.waiting

        def subscribe(wake: Callable[[], None], priority: Priority) -> None:
            waiting.push(namespace, caller.key, wake, priority, deletion=caller.is_deleted)

        return DeferredError(
            f"calls of {self.name}: slow calls of its namespace use too many threads",
            seconds=RETRY_SECONDS,
            subscribe=subscribe,
        )

    def begin(self, group: Hashable, caller: Caller) -> CallPermit:
        """Count a call as running in ``group`` until the returned permit ends."""
        permit = CallPermit(self, group, caller)
        self._permits.add(permit)
        return permit

    def remove(self, permit: CallPermit) -> None:
        """Stop counting a call, and call back waiting callers; does nothing if called again."""
        if permit not in self._permits:
            return
        self._permits.discard(permit)
        self.used = monotonic()
        self._wake()

    def mark_answer(self) -> None:
        """End the tenant's pause and its back-off, because the infrastructure has responded."""
        self._answered = monotonic()
        if self._hangs:
            _log.info("calls are answered again", identity=self.name)
        self._hangs, self.paused_until = 0, 0.0

    def pause_after(self, permit: CallPermit) -> None:
        """Pause the tenant after a call that hung, unless a later call has had a response."""
        now = monotonic()
        # A later success shows that the infrastructure responds.  Calls that hang at the same time
        # have the same cause and lengthen the pause only once.
        if self._answered > permit.began or now < self.paused_until:
            return
        # The exponent is limited because the power would overflow after a thousand failures.
        seconds = min(HANG_MAX_SECONDS, HANG_BASE_SECONDS * 2.0 ** min(self._hangs, 16))
        self._hangs += 1
        self.paused_until = now + seconds
        asyncio.get_running_loop().call_later(seconds, self._wake)
        self._limits.executor.metrics.identity_pauses.labels("hang").inc()
        _log.warning(
            "calls hang and are paused",
            identity=self.name,
            seconds=seconds,
            in_flight=len(self._permits),
        )

    def _find_problem(self, group: Hashable, concurrency: int) -> str | None:
        if monotonic() < self.paused_until:
            return "paused, because the latest ones hung"
        # The pause applies even to a single tenant; shares only protect the other tenants.
        if self._limits.has_one_tenant:
            return None
        if self._hangs and all(each.hangs for each in self._permits):
            return None  # one call finds out whether the infrastructure responds again
        slow = [each for each in self._permits if each.is_slow and not self._is_settled(each)]
        threads = self._limits.executor.threads
        if len(slow) >= max(1, threads // SHARE):
            return f"{len(slow)} calls are slow"
        own = sum(each.group == group for each in slow)
        return f"{own} calls of this kind are slow" if own >= max(1, concurrency // SHARE) else None

    def _is_settled(self, permit: CallPermit) -> bool:
        """Return whether a later call had a response, so that this call only occupies a thread."""
        return permit.hangs and permit.began < self._answered

    def _wake(self) -> None:
        if self._line is None:
            return
        self._line.wake()
        if not self._line:
            self._line = None


class TenantLimits:
    """The tenants of one manager, all on the same event loop."""

    def __init__(self, executor: HandlerExecutor) -> None:
        self.executor = executor
        self._tenants = IdleEntries[TenantCalls]()

    @property
    def has_one_tenant(self) -> bool:
        """Return whether there is at most one tenant, which may then use all capacity.

        A tenant counts for an hour after its last call.
        """
        return len(self._tenants) <= 1

    @property
    def paused(self) -> int:
        """Return the number of tenants that are currently paused because their calls hang."""
        now = monotonic()
        return sum(each.paused_until > now for each in self._tenants.values())

    def of(self, name: str) -> TenantCalls:
        """Return a tenant's calls; a new tenant is added, and idle ones are forgotten."""
        return self._tenants.get(name, lambda: TenantCalls(name, self))
