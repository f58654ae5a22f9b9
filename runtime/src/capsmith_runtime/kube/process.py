"""Functions that exit the process, and a limit on the pauses of its garbage collector.

A process that has lost its lease must exit immediately: another leader may act on the same objects.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

EndProcess = Callable[[int], None]
"""Function that exits the process with an exit code; tests pass one that returns."""

_FLUSH_SECONDS: Final = 1.0


def exit_process(code: int) -> None:
    """Flush the logs and exit the process, without joining threads or running exit handlers."""
    try:
        run_briefly(logging.shutdown)
    finally:
        # Neither sys.exit nor a return: both join threads and run exit handlers, and one that hangs
        # may be the reason for this call.
        os._exit(code)


def exit_process_later(seconds: float, code: int, end: EndProcess = exit_process) -> None:
    """Exit the process if it is still running after ``seconds``, as when an exit handler hangs.

    Returns immediately.
    """
    timer = threading.Timer(seconds, end, (code,))
    timer.daemon = True
    timer.start()


def run_briefly(function: Callable[[], object]) -> None:
    """Run a function that may block, such as logging to a full pipe.

    The caller waits at most one second.
    """
    thread = threading.Thread(target=function, name="run-briefly", daemon=True)
    thread.start()
    thread.join(_FLUSH_SECONDS)


# A process that was frozen, by SIGSTOP, a debugger or the freezer of a cgroup, continues with all
# its threads at the same moment.  One of them may send a request for an object that another leader
# has deleted since then.  The kernel delivers the signal of an expired timer before any thread
# continues; a thread that watches the clock would only be one of many.
SetAlarm = Callable[[float], None]
"""Function that kills the process after the given seconds unless called again; 0 cancels that."""

_LEAST_SECONDS: Final = 0.001


def set_process_alarm(seconds: float) -> None:
    """End this process with exit code 14 after ``seconds`` of real time; 0 cancels the alarm.

    It uses the timer and signal of `signal.alarm`, and does nothing on platforms without them.
    """
    if hasattr(signal, "setitimer") and _handles_alarms():
        signal.setitimer(signal.ITIMER_REAL, seconds)


def set_no_alarm(seconds: float) -> None:
    """Do nothing; replaces `set_process_alarm` where the process must survive a lost lease."""


def seconds_until(moment: float, now: float) -> float:
    """Return the seconds from ``now`` until ``moment``, and at least 0.001.

    The result is never 0, which would cancel an alarm.
    """
    return max(moment - now, _LEAST_SECONDS)


@cache
def _handles_alarms() -> bool:
    """Make the alarm signal call `_exit` of the C library, and return whether that succeeded.

    It needs no Python thread.  The signal's default action would end any process except a
    container's first one.
    """
    try:
        library = ctypes.CDLL(None)
        library.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
        library.signal.restype = ctypes.c_void_p
        end = ctypes.cast(library._exit, ctypes.c_void_p)
        failed = ctypes.c_void_p(-1).value
        return bool(library.signal(int(signal.SIGALRM), end) != failed)
    except (AttributeError, OSError, TypeError):
        return False


PAUSE_SECONDS: Final = 0.02
"""CPU seconds that a full garbage collection may take.

If one takes longer, the objects that survive it are excluded from later collections.
"""
_OLDEST: Final = 2
_LEAST_SHARE: Final = 4
"""Divisor for the minimum share of objects to exclude: 4 means a quarter of them.

Excluding fewer is not worth visiting all objects.
"""


# A full collection visits every object in memory and stops the event loop, for more than 100 ms
# with thousands of cached Kubernetes objects.  Cached objects contain no reference cycles,
# so reference counting alone frees them.
class GcPauseLimiter:
    """Excludes the survivors of a slow full garbage collection from later collections.

    Excluded objects that form reference cycles, such as SDK clients that were in use at the time,
    are not freed.  All objects are therefore visited once more before more of them are excluded:
    the memory kept needlessly never exceeds the memory in use at the last exclusion.
    """

    def __init__(self, seconds: float = PAUSE_SECONDS) -> None:
        self._seconds = seconds
        self._began = 0.0
        self._is_thawed = False

    def start(self) -> None:
        """Start watching the garbage collector of this process."""
        gc.callbacks.append(self._observe)

    def stop(self) -> None:
        """Stop watching the garbage collector, and unfreeze the frozen objects."""
        gc.callbacks.remove(self._observe)
        gc.unfreeze()

    def _observe(self, phase: str, info: Mapping[str, Any]) -> None:
        if info["generation"] < _OLDEST:
            return
        # A collection runs in one thread, with the interpreter locked.
        if phase == "start":
            self._began = time.thread_time()
        elif self._is_thawed:
            self._is_thawed = False
            gc.freeze()
        elif time.thread_time() - self._began > self._seconds:
            # As one call of C code: while a list of all objects exists, no other thread may run,
            # because one that is filling a tuple of the list would fail.
            frozen, visited = gc.get_freeze_count(), sum(map(len, map(gc.get_objects, (_OLDEST,))))
            if frozen < visited // _LEAST_SHARE:
                gc.freeze()
            elif visited >= frozen // _LEAST_SHARE:
                gc.unfreeze()
                self._is_thawed = True
