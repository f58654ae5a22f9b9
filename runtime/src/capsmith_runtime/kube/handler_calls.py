"""The author's running calls and their threads, tracked until the last of them ends."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import ParamSpec, TypeVar

from capsmith_runtime.kube.clock import monotonic

P = ParamSpec("P")
T = TypeVar("T")

# The lease may be released only when no call is left, so a call is not over when its caller is
# cancelled: it ends with the last of its threads.  Threads that a handler starts by
# `asyncio.to_thread` or `loop.run_in_executor(None, ...)` are known, because they are threads of
# the `DaemonThreadPool` that is the event loop's default executor.  Threads of other executors are
# not.
_current: contextvars.ContextVar[HandlerCall | None] = contextvars.ContextVar(
    "handler_call", default=None
)


def find_handler_name() -> str:
    """Return the name of the handler that this context runs, or an empty string if none."""
    call = _current.get()
    return "" if call is None else call.name


class HandlerCall:
    """A call to a handler; it is busy while the handler or one of its threads is running."""

    def __init__(self, name: str, calls: HandlerCalls, tenant: str = "") -> None:
        self.name = name
        self.tenant = tenant
        self.is_abandoned = False
        self.began = monotonic()
        self.holds_slot = False
        """Whether the call's thread counts against the limit of synchronous calls."""
        self._calls = calls
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._busy = 0
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_busy(self) -> bool:
        """Return whether the handler or one of its threads is running."""
        return self._busy > 0

    def context(self) -> contextvars.Context:
        """Return a copy of the current context in which new threads belong to this call."""
        context = contextvars.copy_context()
        context.run(_current.set, self)
        return context

    def begin(self) -> None:
        """Count another thread or task of this call. Thread-safe."""
        with self._lock:
            self._busy += 1
            self._calls.add(self)

    def end(self) -> None:
        """Stop counting a thread or task of this call; the last one ends the call.  Thread-safe."""
        with self._lock:
            self._busy -= 1
            if self._busy:
                return
        # The loop is closed if the process stops without waiting for this thread.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle)

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop when the call ends, or soon if it has already ended."""
        if self._calls.has(self):
            self._callbacks.append(callback)
        else:
            self._loop.call_soon(callback)

    def _settle(self) -> None:
        with self._lock:
            if self._busy:
                return
            self._calls.discard(self)
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


class HandlerCalls:
    """The calls to author code that one executor has started and that are still running."""

    def __init__(self) -> None:
        self._running: set[HandlerCall] = set()
        self._changed = asyncio.Event()
        self.was_cancelled = False
        """Whether an asynchronous handler was ever cancelled; its side effects are unknown."""

    @property
    def names(self) -> list[str]:
        """Return the names of the running handlers."""
        # Other threads add calls: `tuple` copies the set in one step of the interpreter, while a
        # loop over the set itself could raise RuntimeError.
        return sorted(call.name for call in tuple(self._running))

    @property
    def abandoned(self) -> int:
        """Return the number of calls that have exceeded their time limit and are still running."""
        return sum(call.is_abandoned for call in tuple(self._running))

    @property
    def hanging_tenants(self) -> set[str]:
        """Return the tenants whose calls have exceeded their time limit and are still running."""
        return {call.tenant for call in tuple(self._running) if call.is_abandoned}

    @property
    def slot_holders(self) -> list[HandlerCall]:
        """Return the calls that count against the limit of synchronous calls, oldest first."""
        return sorted(
            (call for call in tuple(self._running) if call.holds_slot), key=lambda call: call.began
        )

    @property
    def have_ended(self) -> bool:
        """Return whether all handlers finished: none was cancelled or is still running."""
        return not self._running and not self.was_cancelled

    def has(self, call: HandlerCall) -> bool:
        """Return whether ``call`` is still running."""
        return call in self._running

    def add(self, call: HandlerCall) -> None:
        """Add a call that has become busy. Thread-safe."""
        self._running.add(call)

    def discard(self, call: HandlerCall) -> None:
        """Remove a call that has ended."""
        self._running.discard(call)
        self._changed.set()

    def abandon(self, call: HandlerCall) -> None:
        """Mark a call that exceeded its time limit, so that `wait` no longer waits for it."""
        call.is_abandoned = True
        self._changed.set()

    async def wait(self) -> None:
        """Wait until all calls have ended or are abandoned."""
        while not all(call.is_abandoned for call in tuple(self._running)):
            self._changed.clear()
            await self._changed.wait()


def find_namespace(tenant: str) -> str:
    """Return the namespace of the identity or Cluster that a tenant is named after, or ""."""
    return tenant.partition(" ")[2].rpartition("/")[0]


class NamespaceCalls:
    """The synchronous calls that have a thread, by namespace.

    A limit for each tenant is not enough: users may create any number of identities and Clusters in
    their namespace, all with infrastructure that never responds.  Tenants without a namespace, such
    as cluster-scoped identities, are not limited here.
    """

    def __init__(self) -> None:
        # In the order in which they began.
        self._began: dict[str, dict[HandlerCall, float]] = {}
        self._count = 0

    def begin(self, call: HandlerCall) -> None:
        """Count a call that has got a thread."""
        self._began.setdefault(find_namespace(call.tenant), {})[call] = monotonic()
        self._count += 1

    def end(self, call: HandlerCall) -> None:
        """Stop counting a call whose thread has ended."""
        namespace = find_namespace(call.tenant)
        calls = self._began[namespace]
        del calls[call]
        self._count -= 1
        if not calls:
            del self._began[namespace]

    def are_at_limit(
        self, namespace: str, threads: int, *, began_before: float = float("inf")
    ) -> bool:
        """Return whether a namespace uses all that it may of ``threads``.

        Only calls that began before the given time count.
        """
        calls = self._began.get(namespace, {})
        # Half of what other namespaces leave: however many of them have slow calls, threads are
        # left for a further one.
        limit = max(1, (threads - self._count + len(calls)) // 2)
        if not namespace or len(calls) < limit:
            return False
        latest = next(islice(calls.values(), limit - 1, limit))
        return latest < began_before


class DaemonThreadPool(ThreadPoolExecutor):
    """Default executor of an event loop; it tracks calls and never delays the process's exit.

    At most `threads` handler calls of a tenant run at the same time. The runtime's own calls, such
    as name lookups, are not limited, because hanging handlers must not block them.
    """

    def __init__(self, threads: int) -> None:
        # The base class starts threads in `submit` only, which this class replaces.
        super().__init__(threads)
        self._limit = threads
        self._guard = threading.Lock()
        self._active: Counter[str] = Counter()
        self._pending: defaultdict[str, deque[Callable[[], None]]] = defaultdict(deque)
        self._is_closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function in a thread, and return the Future of its result.

        Raises RuntimeError after `shutdown`.
        """
        if self._is_closed:
            raise RuntimeError("cannot start a thread: the event loop is closing")
        future: Future[T] = Future()
        call = _current.get()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        if call is None:
            _start_daemon(run)
            return future
        call.begin()
        # A callback instead of the end of `run`, which never runs if the future is cancelled first.
        future.add_done_callback(lambda _: call.end())
        tenant = call.tenant
        with self._guard:
            self._pending[tenant].append(run)
            if self._active[tenant] == self._limit:
                return future
            self._active[tenant] += 1
        try:
            _start_daemon(lambda: self._work(tenant))
        except BaseException:
            future.cancel()
            with self._guard:
                self._leave(tenant)
            raise
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Reject new calls, without waiting for running threads."""
        # asyncio.run calls this with wait=True; joining a thread that hangs would keep the process
        # and its lease alive.
        self._is_closed = True

    def _work(self, tenant: str) -> None:
        while True:
            with self._guard:
                if not self._pending[tenant]:
                    self._leave(tenant)
                    return
                run = self._pending[tenant].popleft()
            run()

    def _leave(self, tenant: str) -> None:
        self._active[tenant] -= 1
        if not self._active[tenant]:
            del self._active[tenant]
            if not self._pending[tenant]:
                del self._pending[tenant]


def _start_daemon(target: Callable[[], None]) -> None:
    threading.Thread(target=target, name="executor", daemon=True).start()
