"""Controllers: workers that reconcile the keys of a queue and survive any error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Generic

from capsmith_runtime.errors import ConflictError, RetryAfterError, error_label
from capsmith_runtime.kube.delayed_keys import K
from capsmith_runtime.kube.executor import (
    StillRunningError,
    TracebackLimiter,
    lend_worker,
    running_controller,
    running_key,
)
from capsmith_runtime.kube.hidden_values import hide_values
from capsmith_runtime.kube.log import describe_error, get_logger, read_message
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.requeue import DeferredError, Priority
from capsmith_runtime.kube.tracing import reconcile_span, record_result
from capsmith_runtime.kube.workqueue import QueueClosed, WorkQueue

_log = get_logger("controller")
_RESULTS: Final = ("success", "requeue_after", "requeue", "error")
"""Values of the label ``result``, as in controller-runtime."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a reconcile.

    The key is reconciled again after `requeue_after` seconds or, if that is None, after a change.
    """

    requeue_after: float | None = None
    priority: Priority | None = None
    """Priority of the next reconcile, or None to keep the current priority."""
    failed: bool = False
    """Whether the reconcile failed in a way that a retry does not resolve."""


class _Loan:
    """Starts at most one replacement for a worker."""

    def __init__(self, replace: Callable[[], None]) -> None:
        self._replace = replace
        self._has_ended = False
        self.is_made = False

    def make(self) -> None:
        """Start the replacement, unless it was already started or the worker no longer waits."""
        if not (self.is_made or self._has_ended):
            self.is_made = True
            self._replace()

    def end(self) -> None:
        """Start no replacement from now on: tasks of the reconcile may outlive it."""
        self._has_ended = True


class Controller(Generic[K]):
    """Reconciles the keys of a queue, with at most one reconcile at a time for each key."""

    def __init__(
        self,
        name: str,
        queue: WorkQueue[K],
        reconcile: Callable[[K], Awaitable[Result]],
        metrics: Metrics,
        *,
        concurrency: int = 10,
    ) -> None:
        self.name = name
        self.queue = queue
        self._reconcile = reconcile
        self._metrics = metrics
        # Start at 0: if a counter appears with a higher value, Prometheus does not see an increase.
        self._terminal_failures = metrics.terminal_failures.labels(name)
        self._failures = metrics.failed_reconciles.labels(name)
        self._results = {each: metrics.reconciles.labels(name, each) for each in _RESULTS}
        self._seconds = metrics.reconcile_seconds.labels(name)
        metrics.max_concurrent_reconciles.labels(name).set(concurrency)
        self._concurrency = concurrency
        self._group: asyncio.TaskGroup | None = None
        self._active = 0
        self._idle = asyncio.Event()
        self._was_aborted = False
        self._tracebacks = TracebackLimiter()

    async def run(self) -> None:
        """Reconcile until the queue is closed; cancel this task to abort running reconciles."""
        async with asyncio.TaskGroup() as self._group:
            group = self._group
            for number in range(self._concurrency):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    async def stop(self, grace: float) -> bool:
        """Close the queue and wait at most `grace` seconds; return whether all reconciles finished.

        A cancelled reconcile does not count as finished, because its requests may still arrive.
        Handlers that have exceeded their time limit are not waited for.
        """
        self.queue.close()
        try:
            async with asyncio.timeout(grace):
                while self._active:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            return False
        return not self._was_aborted

    async def _work(self) -> None:
        active = self._metrics.reconciles_active.labels(self.name)
        while True:
            try:
                key = await self.queue.get()
            except QueueClosed:
                return
            release = True
            self._active += 1
            loan = _Loan(self._replace_worker)
            token = lend_worker.set(loan.make)
            running_controller.set(self.name)
            running_key.set(str(key))
            hide_values()
            with active.track_inprogress(), reconcile_span(self.name, key):
                try:
                    release = await self._process(key)
                finally:
                    lend_worker.reset(token)
                    loan.end()
                    self._active -= 1
                    self._idle.set()
                    if release:
                        self.queue.done(key)
            if loan.is_made:
                return
            # A reconcile that waits for nothing, such as that of an object that is gone, and a
            # queue that is not empty would not let go of the event loop until all keys are done.
            await asyncio.sleep(0)

    # A slow author call must not keep the objects of other tenants waiting. The number of such
    # calls per tenant is limited where they are admitted.
    def _replace_worker(self) -> None:
        """Start another worker; the worker that waits for a slow call ends after its reconcile."""
        if self._group is not None:
            self._group.create_task(self._work(), name=f"{self.name}-replacement")

    async def _process(self, key: K) -> bool:
        """Reconcile once.

        Returns False if a handler is still running, which releases the key when it ends.
        """
        began = time.monotonic()
        try:
            result = await self._reconcile(key)
        except StillRunningError as error:
            self._handle_failure(key, error, began)
            # Until then the key stays in process: otherwise the next reconcile would run at the
            # same time as the hanging call, on the same object.
            error.when_ended(lambda: self.queue.done(key))
            return False
        except DeferredError as deferred:
            self._defer(key, deferred)
            return True
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                self._was_aborted = True
                raise
            # The worker itself was not cancelled: the reconcile raised the error.
            self._handle_failure(key, error, began)
            return True
        except Exception as error:
            self._handle_failure(key, error, began)
            return True
        self._finish(key, result, time.monotonic() - began)
        return True

    def _finish(self, key: K, result: Result, seconds: float) -> None:
        """Count a reconcile that has succeeded, and queue the next one that it requests."""
        self._seconds.observe(seconds)
        self._count("success" if result.requeue_after is None else "requeue_after")
        # Not after a DeferredError: a postponed reconcile says nothing about earlier failures.
        self.queue.forget(key)
        if result.failed:
            self._terminal_failures.inc()
        if result.requeue_after is not None:
            self.queue.add_after(key, result.requeue_after, result.priority)
        _log.debug(
            "reconciled",
            controller=self.name,
            key=str(key),
            seconds=round(seconds, 3),
            requeue_seconds=result.requeue_after and round(result.requeue_after, 2),
        )

    def _defer(self, key: K, deferred: DeferredError) -> None:
        _log.debug("reconcile is deferred", controller=self.name, key=str(key), why=str(deferred))
        if deferred.is_throttled:
            self._metrics.reconciles_deferred.labels(self.name).inc()
        self._count("requeue" if deferred.seconds is None else "requeue_after")
        # Read before `done`, after which the queue has forgotten the priority of this reconcile.
        priority = self.queue.priority_of(key)
        if deferred.subscribe is not None:
            deferred.subscribe(lambda: self.queue.add(key, priority), priority)
        if deferred.seconds is not None:
            self.queue.add_after(key, deferred.seconds, priority)

    def _count(self, result: str, error: BaseException | None = None) -> None:
        self._results[result].inc()
        record_result(result, error)

    def _handle_failure(self, key: K, error: BaseException, began: float) -> None:
        took = time.monotonic() - began
        self._seconds.observe(took)
        self._count("error", error)
        self._failures.inc()
        self._metrics.reconcile_errors.labels(self.name, error_label(error)).inc()
        wait = error.retry_after if isinstance(error, RetryAfterError) else None
        delay = self.queue.add_rate_limited(key, at_least=wait or 0.0)
        values: dict[str, Any] = {
            "controller": self.name,
            "key": str(key),
            "retry_seconds": round(delay, 2),
        }
        # Conflicts are a normal part of optimistic locking: the next reconcile reads the newer
        # object, and the user need not do anything.
        if isinstance(error, ConflictError) and error.is_of_runtime:
            _log.debug("object has changed meanwhile", error=read_message(error), **values)
        elif isinstance(error, (RetryAfterError, StillRunningError)):
            _log.warning("reconcile failed", error=read_message(error), **values)
        else:
            trace = self._tracebacks.of(error)
            _log.error("reconcile failed", error=describe_error(error), exc_info=trace, **values)
