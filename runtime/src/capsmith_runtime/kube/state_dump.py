"""A description of the running process: its asyncio tasks, its threads and its memory use.

It contains lines of code and the names of tasks, threads and types, but no values, which may be
secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import sys
import threading
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from types import FrameType
from typing import Any, Final

from capsmith_runtime.kube.log import get_logger

_log = get_logger("dump")

FRAMES: Final = 30
"""Maximum number of frames shown for each task and thread."""
TASKS: Final = 2000
TYPES: Final = 25
"""Maximum number of types, and of memory-allocating lines of code, to show."""
SIGNAL: Final = "SIGUSR1"
_AWAITED: Final = ("cr_await", "gi_yieldfrom", "ag_await")
_FRAME: Final = ("cr_frame", "gi_frame", "ag_frame")


def describe_tasks(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Return a line for each unfinished task: its name, and the calls in which it is waiting.

    After :data:`TASKS` lines, only the number of the remaining tasks follows.
    """
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    lines = [f"{task.get_name()}: {' > '.join(_calls(task))}" for task in tasks[:TASKS]]
    if len(tasks) > TASKS:
        lines.append(f"and {len(tasks) - TASKS} more")
    return lines


def describe_threads() -> list[str]:
    """Return a line for each thread: its name and its call stack."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return [
        f"{names.get(ident, ident)}: {' > '.join(_stack(frame))}"
        for ident, frame in sorted(sys._current_frames().items())
    ]


def describe_heap() -> list[str]:
    """Return lines that describe what occupies memory.

    All objects are visited, which may take a second, so call this function in a thread.
    """
    lines = [
        f"maximum resident memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} KiB",
        f"garbage collector: counts {gc.get_count()}, frozen {gc.get_freeze_count()} objects,"
        f" collections {[each['collections'] for each in gc.get_stats()]}",
    ]
    counts = Counter[str]()
    for kind, number in _count_types().items():
        counts[_type_name(kind)] += number
    lines += [f"{number} objects of {name}" for name, number in counts.most_common(TYPES)]
    if not tracemalloc.is_tracing():
        return [
            *lines,
            "start the manager with PYTHONTRACEMALLOC=1 to see where memory is allocated",
        ]
    found = tracemalloc.take_snapshot().statistics("lineno")[:TYPES]
    return [
        *lines,
        *(f"{each.size} bytes in {each.count} blocks: {_place(each)}" for each in found),
    ]


async def describe_process() -> str:
    """Return a report on the tasks, threads and memory of this process, with a heading for each."""
    sections = {
        "tasks": describe_tasks(asyncio.get_running_loop()),
        "threads": describe_threads(),
        "memory": await asyncio.to_thread(describe_heap),
    }
    return "".join(
        f"{name}\n" + "".join(f"  {line}\n" for line in lines) for name, lines in sections.items()
    )


def dump_on_signal(loop: asyncio.AbstractEventLoop) -> None:
    """Log the state of the process whenever it receives SIGUSR1.

    The stacks of all threads are also written to standard error immediately, even if the event loop
    is blocked and logs nothing, unless it waits in C code that does not look for signals.
    """
    running = set[asyncio.Task[None]]()

    def start() -> None:
        task = loop.create_task(log_process(), name="dump")
        running.add(task)
        task.add_done_callback(running.discard)

    number = signal.Signals[SIGNAL]
    loop.add_signal_handler(number, start)
    # Replaces the handler of the event loop, which does nothing: C code tells the loop.  In Python,
    # between two instructions: `faulthandler` reads stacks that are just being changed, even of its
    # own thread, which can end the process.
    signal.signal(number, _StackWriter(sys.stderr.fileno()))


class _StackWriter:
    """Handler of a signal that writes the stacks of all threads to a file."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._is_running = False
        self._is_requested = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Write the stacks, once more if another signal interrupts this very function."""
        self._is_requested = True
        if self._is_running:
            return
        self._is_running = True
        while self._is_requested:
            self._is_requested = False
            self._write()
        self._is_running = False

    def _write(self) -> None:
        # An exception would be raised in whatever the main thread does.
        with contextlib.suppress(Exception):
            lines = (f"{SIGNAL}: the stacks of all threads", *describe_threads())
            text = "".join(f"{line}\n" for line in lines).encode(errors="replace")
            # Without the stream's buffer, which the signal may have interrupted.
            while text:
                text = text[os.write(self._file, text) :]


async def log_process() -> None:
    """Log the tasks, threads and memory of this process, with one log record for each line."""
    for line in describe_tasks(asyncio.get_running_loop()):
        _log.info("task", state=line)
    for line in describe_threads():
        _log.info("thread", state=line)
    for line in await asyncio.to_thread(describe_heap):
        _log.info("memory", state=line)
    _log.info("end of dump")


def _calls(task: asyncio.Task[Any]) -> Iterator[str]:
    """Yield the calls of a task, the outermost first."""
    waiting: Any = task.get_coro()
    for _ in range(FRAMES):
        frame = next((getattr(waiting, each) for each in _FRAME if hasattr(waiting, each)), None)
        if frame is None:
            return
        yield _call(frame, frame.f_lineno)
        waiting = next(
            (getattr(waiting, each) for each in _AWAITED if hasattr(waiting, each)), None
        )


def _stack(frame: FrameType) -> Iterator[str]:
    """Yield the innermost calls of a thread, the outermost of them first."""
    for each, line in reversed(list(traceback.walk_stack(frame))[:FRAMES]):
        yield _call(each, line)


def _call(frame: FrameType, line: int) -> str:
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}:{line}"


# One call of C code, during which no other thread runs: CPython cannot resize a tuple that has
# another reference, so a thread that is filling one would fail.
def _count_types() -> Counter[type]:
    return Counter(map(type, chain.from_iterable(map(gc.get_objects, (None,)))))


def _type_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _place(statistic: tracemalloc.Statistic) -> str:
    frame = statistic.traceback[0]
    return f"{frame.filename}:{frame.lineno}"
