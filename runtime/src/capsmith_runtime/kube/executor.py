"""Calls to the author's code, synchronous or asynchronous, with limits on time and concurrency.

A thread cannot be stopped from outside.  A handler that exceeds its timeout while one of its
threads is running is therefore abandoned but tracked: its key stays in process until the thread
ends, so that no object is reconciled twice at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, cast

from capsmith_runtime.kube.caller_lines import NamespaceLines
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.handler_calls import (
    HandlerCall,
    HandlerCalls,
    NamespaceCalls,
    find_namespace,
)
from capsmith_runtime.kube.log import describe_error, get_logger
from capsmith_runtime.kube.metrics import CallMetrics, Metrics
from capsmith_runtime.kube.tracing import call_span

T = TypeVar("T")

_log = get_logger("hooks")
_CANCEL_SECONDS = 1.0
EXHAUSTED_SECONDS: Final = 180.0
"""Seconds for which all threads may hang before the process counts as unhealthy.

After that time, only a restart can help.
"""
SLOW_SECONDS: Final = 0.5
"""Seconds after which a call counts as slow: another worker or thread may take its place."""
ANSWERED_SECONDS: Final = 3600.0
"""Seconds for which a tenant counts as responsive after one of its calls has ended."""
LENT_THREADS: Final = 4
"""Maximum number of extra threads for slow calls, as a multiple of the executor's ``threads``."""


def _lend_nothing() -> None:
    """Do nothing, because no worker waits for the call."""


lend_worker: contextvars.ContextVar[Callable[[], None]] = contextvars.ContextVar(
    "lend_worker", default=_lend_nothing
)
"""Function that lets another worker start while this context's worker waits for a slow call."""
running_controller: contextvars.ContextVar[str] = contextvars.ContextVar(
    "running_controller", default=""
)
"""Name of the controller whose worker runs this context, or empty outside reconciles."""
running_key: contextvars.ContextVar[str] = contextvars.ContextVar("running_key", default="")
"""Key of the object that this context reconciles, or empty outside reconciles."""


class HookTimeoutError(Exception):
    """Raised if a handler exceeded its time limit and was cancelled."""


class HooksExhaustedError(Exception):
    """Raised if no thread is free for a handler, because hanging handlers occupy all of them."""


class NamespaceBusyError(HooksExhaustedError):
    """Raised if the slow calls of a handler's namespace use all threads that they may."""


class StillRunningError(HookTimeoutError):
    """Raised if a handler exceeded its time limit but could not be stopped."""

    def __init__(self, message: str, call: HandlerCall) -> None:
        super().__init__(message)
        self._call = call

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop when the handler ends."""
        self._call.when_ended(callback)


def create_shared_context() -> contextvars.Context:
    """Return a copy of the current context for a task that several reconciles may share.

    The task's calls are still attributed to the object of the current reconcile, but a slow call
    does not start another worker, because no worker waits for the task alone.
    """
    context = contextvars.copy_context()
    context.run(lend_worker.set, _lend_nothing)
    return context


class HandlerThread(threading.Thread):
    """A thread that runs a single synchronous call for an event loop.

    Event loops with a virtual clock use this type to recognise the calls that need real time.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, target: Callable[[], None], name: str
    ) -> None:
        # A daemon thread per call: a pool's threads would keep a stopping process alive.
        super().__init__(target=target, name=name, daemon=True)
        self.loop = loop


class HandlerExecutor:
    """Calls handlers with a timeout in seconds; `threads` limits concurrent synchronous calls.

    Calls belong to tenants, such as the identities of clouds.  While all threads are busy, one
    tenant's slow calls do not count against the limit of the others.
    """

    def __init__(self, metrics: Metrics, *, threads: int = 32, timeout: float = 300.0) -> None:
        self.calls = HandlerCalls()
        self.metrics = metrics
        self.threads = threads
        self._call_metrics = CallMetrics(metrics)
        self._slots = asyncio.Semaphore(threads)
        self._lent = 0
        self._timeout = timeout
        self._exhausted_since: float | None = None
        self._answered: dict[str, float] = {}
        self._namespaces = NamespaceCalls()
        self.waiting = NamespaceLines(self._is_crowded)
        """The callers that wait because their namespace is crowded."""

    @property
    def is_healthy(self) -> bool:
        """Return whether handlers can run.

        Returns False if as many calls as `threads` have been hanging for minutes and a restart may
        help, because no thread is left or because calls of all tenants hang. A single tenant whose
        cloud never responds does not make the process unhealthy.
        """
        since = self._exhausted_since
        if since is None or monotonic() - since < EXHAUSTED_SECONDS:
            return True
        holders = self.calls.slot_holders
        can_lend = self._lent < LENT_THREADS * self.threads
        if not can_lend and sum(call.is_abandoned for call in holders) >= self.threads:
            return False
        return bool(self._answered.keys() - self.calls.hanging_tenants)

    def is_crowded(self, tenant: str) -> bool:
        """Return whether slow calls of a tenant's namespace use all threads that they may."""
        return self._is_crowded(find_namespace(tenant))

    def _is_crowded(self, namespace: str) -> bool:
        before = monotonic() - SLOW_SECONDS
        return self._namespaces.are_at_limit(namespace, self._all_threads, began_before=before)

    @property
    def _all_threads(self) -> int:
        return self.threads * (1 + LENT_THREADS)

    async def call(self, hook: Callable[..., T | Awaitable[T]], *args: Any, tenant: str = "") -> T:
        """Call a handler and return its result.

        Raises the handler's exception, HookTimeoutError, StillRunningError or HooksExhaustedError.
        """
        call = HandlerCall(getattr(hook, "__qualname__", repr(hook)), self.calls, tenant)
        # Start at 0: if a counter appears with a higher value, Prometheus does not see an increase.
        self.metrics.hook_timeouts.labels(call.name)
        measured = self._call_metrics.measure(running_controller.get(), call.name, tenant)
        with measured, call_span(call.name, tenant):
            result = await _log_call(call.name, self._call(call, hook, args))
        self._note_answer(tenant)
        return result

    async def call_in_turn(
        self, hook: Callable[..., T | Awaitable[T]], *args: Any, tenant: str
    ) -> T:
        """Call a handler as :meth:`call` does, but wait while its namespace is crowded.

        For calls that no worker waits for.
        """
        while True:
            try:
                return await self.call(hook, *args, tenant=tenant)
            except NamespaceBusyError:
                await self.waiting.wait(find_namespace(tenant))

    async def _call(
        self, call: HandlerCall, hook: Callable[..., T | Awaitable[T]], args: tuple[Any, ...]
    ) -> T:
        if inspect.iscoroutinefunction(hook):
            return await self._bounded(call, _start_task(call, hook, args))
        answer = await self._bounded(call, await self._start_thread(call, hook, args))
        if not inspect.isawaitable(answer):
            return answer
        # The handler is asynchronous, but a decorator hides it.
        return await self._bounded(call, _start_task(call, lambda: answer, ()))

    async def _bounded(self, call: HandlerCall, running: asyncio.Future[T]) -> T:
        try:
            await asyncio.wait({running}, timeout=min(SLOW_SECONDS, self._timeout))
            if not running.done() and self._timeout > SLOW_SECONDS:
                lend_worker.get()()
                await asyncio.wait({running}, timeout=self._timeout - SLOW_SECONDS)
        except asyncio.CancelledError:
            if isinstance(running, asyncio.Task) and not running.done():
                self.calls.was_cancelled = True
            running.cancel()
            raise
        if running.done():
            return running.result()
        return await self._expire(call, running)

    async def _expire(self, call: HandlerCall, running: asyncio.Future[T]) -> T:
        self.metrics.hook_timeouts.labels(call.name).inc()
        message = f"{call.name} did not answer within {self._timeout:g} s"
        if isinstance(running, asyncio.Task):
            running.cancel()
            # A coroutine may suppress the cancellation, and threads that it started with
            # asyncio.to_thread are not cancelled at all.
            await asyncio.wait({running}, timeout=_CANCEL_SECONDS)
            if running.done() and not call.is_busy:
                raise HookTimeoutError(message)
        self.metrics.hooks_abandoned.inc()
        self.calls.abandon(call)
        if self._exhausted_since is None and self.calls.abandoned >= self.threads:
            self._exhausted_since = monotonic()
        call.when_ended(lambda: self._ended(call, running))
        _log.error(
            "hook hangs; its object waits until the hook ends", hook=call.name, identity=call.tenant
        )
        raise StillRunningError(message, call)

    def _ended(self, call: HandlerCall, running: asyncio.Future[Any]) -> None:
        self.metrics.hooks_abandoned.dec()
        if self.calls.abandoned < self.threads:
            self._exhausted_since = None
        error = None if running.cancelled() else running.exception()
        text = describe_error(error) if error else None
        _log.warning("hanging hook has ended", hook=call.name, error=text)

    async def _start_thread(
        self, call: HandlerCall, hook: Callable[..., T], args: tuple[Any, ...]
    ) -> asyncio.Future[T]:
        await self._take_slot(call)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        # A new thread starts with an empty context: the handler would lose all context variables,
        # such as those of tracing libraries.
        context = call.context()

        def settle(answer: T | None, error: Exception | None) -> None:
            self._return_slot(call)
            if future.cancelled():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(cast(T, answer))

        def run() -> None:
            outcome = context.run(call_safely, call.name, hook, args)
            # The loop is closed if the process stops without waiting for this thread.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, *outcome)
            call.end()

        call.begin()
        try:
            HandlerThread(loop, run, f"hook-{call.name}").start()
        except BaseException:
            call.end()
            self._return_slot(call)
            raise
        return future

    async def _take_slot(self, call: HandlerCall) -> None:
        """Wait for a free thread.

        Raises HooksExhaustedError if hanging calls of all tenants occupy the threads, and
        NamespaceBusyError as soon as slow calls of its namespace use all threads that they may.
        """
        end = monotonic() + self._timeout
        namespace = find_namespace(call.tenant)
        busy = NamespaceBusyError(f"calls of namespace {namespace} use many threads")
        while True:
            # Checked again after each wait: calls that began together were not slow at first.
            if self._is_crowded(namespace):
                raise busy
            if self._slots.locked() and self._take_over_slot(call.tenant):
                break
            left = end - monotonic()
            try:
                async with asyncio.timeout(min(SLOW_SECONDS, left)):
                    await self._slots.acquire()
            except TimeoutError:
                if left > SLOW_SECONDS:
                    continue
                message = f"all {self.threads} hook threads are in use: {call.name}"
                raise HooksExhaustedError(message) from None
            # Others may have begun during the wait.  While no slot is lent, all threads together
            # are fewer than one namespace may use.
            if not self._lent or not self._namespaces.are_at_limit(namespace, self._all_threads):
                break
            self._slots.release()
            raise busy
        call.holds_slot, call.began = True, monotonic()
        self._namespaces.begin(call)

    def _take_over_slot(self, tenant: str) -> bool:
        """Stop counting the oldest slow call of another tenant against the limit of threads.

        ``tenant`` is the tenant that needs the thread.  Returns whether it has the slot of that
        call, which goes to no other waiting caller: its namespace might have reached its limit.
        """
        latest = monotonic() - SLOW_SECONDS
        can_lend = self._lent < LENT_THREADS * self.threads
        if not can_lend or self._namespaces.are_at_limit(find_namespace(tenant), self._all_threads):
            return False
        for call in self.calls.slot_holders:
            if call.began <= latest and call.tenant != tenant:
                call.holds_slot = False
                self._lent += 1
                return True
        return False

    def _return_slot(self, call: HandlerCall) -> None:
        self._namespaces.end(call)
        if call.holds_slot:
            call.holds_slot = False
            self._slots.release()
        else:
            self._lent -= 1
        self.waiting.wake(find_namespace(call.tenant))

    def _note_answer(self, tenant: str) -> None:
        """Record that a call for ``tenant`` has ended.

        The tenant counts as responsive for an hour.
        """
        now = monotonic()
        self._answered.pop(tenant, None)
        self._answered[tenant] = now
        eldest = next(iter(self._answered))
        if now - self._answered[eldest] > ANSWERED_SECONDS:
            del self._answered[eldest]


def handler_of(error: BaseException) -> str:
    """Return the name of the handler that raised ``error``, or an empty string if none did."""
    cause: BaseException | None = error
    seen = set[int]()
    # The causes may form a circle: `raise error from error` is allowed.
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        trace = cause.__traceback__
        while trace is not None:
            # The handler's frame is the one below its caller, however deep in an SDK the error was
            # raised.
            caller, trace = trace.tb_frame.f_code, trace.tb_next
            if trace is not None and caller in (await_safely.__code__, call_safely.__code__):
                return trace.tb_frame.f_code.co_qualname
        cause = cause.__cause__
    return ""


def _start_task(
    call: HandlerCall, hook: Callable[..., Awaitable[T]], args: tuple[Any, ...]
) -> asyncio.Task[T]:
    call.begin()
    handler = await_safely(call.name, hook, args)
    task = asyncio.get_running_loop().create_task(handler, context=call.context())
    task.add_done_callback(lambda _: call.end())
    return task


async def await_safely(name: str, hook: Callable[..., Awaitable[T]], args: tuple[Any, ...]) -> T:
    """Call an asynchronous function of the author and return its result.

    Raises RuntimeError for an exception that would end the event loop or the calling task, such as
    SystemExit, or that ``except Exception`` does not catch.  ``name`` is the function's name in the
    error.
    """
    try:
        return await hook(*args)
    except asyncio.CancelledError as caught:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _harmless(name, caught) from caught
    except (Exception, GeneratorExit):
        # A coroutine that is closed before its end gets a GeneratorExit, which has to leave it.
        raise
    except BaseException as caught:
        raise _harmless(name, caught) from caught


def call_safely(
    name: str, hook: Callable[..., T], args: tuple[Any, ...]
) -> tuple[T | None, Exception | None]:
    """Call a function of the author in this thread, and return its result or its exception.

    An exception that no future can hold, or that would end the event loop, becomes a RuntimeError.
    ``name`` is the function's name in the error.
    """
    try:
        return hook(*args), None
    except BaseException as caught:
        if isinstance(caught, Exception) and not isinstance(caught, StopIteration):
            return None, caught
        return None, _harmless(name, caught)  # no future can hold a StopIteration


def _harmless(name: str, caught: BaseException) -> RuntimeError:
    """Wrap an exception that would otherwise end the event loop or the worker.

    SystemExit would end the event loop, a cancellation the worker.
    """
    return RuntimeError(f"{name} raised {describe_error(caught)}")


_TRACEBACK_SECONDS: Final = 60.0


class TracebackLimiter:
    """Allows one traceback a minute for each handler and exception type.

    During an outage every object fails with the same error.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, type[BaseException]], float] = {}

    def of(self, error: BaseException) -> BaseException | None:
        """Return ``error`` as the value for `exc_info`, or None if it was just logged."""
        key, now = (handler_of(error), type(error)), self._clock()
        if now - self._logged.get(key, -_TRACEBACK_SECONDS) < _TRACEBACK_SECONDS:
            return None
        self._logged[key] = now
        return error


async def _log_call(method: str, call: Awaitable[T]) -> T:
    """Await a call within a reconcile; log its start, duration and result type."""
    key = running_key.get()
    if not key:
        return await call
    log = _log.bind(controller=running_controller.get(), key=key, method=method)
    log.debug("call starts")
    began = monotonic()
    outcome: object = None
    try:
        outcome = result = await call
    except BaseException as error:
        outcome = error
        raise
    finally:
        result_type = type(outcome).__name__
        log.debug("call ends", result=result_type, seconds=round(monotonic() - began, 3))
    return result
