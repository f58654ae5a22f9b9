"""An alarm of the kernel that ends a process whose lease has expired.

A process that was frozen, by SIGSTOP, a debugger or the freezer of a cgroup, continues with all
its threads at once.  One of them may send the request for which another leader has deleted the
object since then.  The kernel delivers the signal of an expired timer before a thread continues;
a thread that watches the clock would be one of many.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable
from functools import cache
from typing import Final

SetAlarm = Callable[[float], None]
"""Ends the process after some seconds, unless it is called again before; 0 cancels it."""

_LEAST_SECONDS: Final = 0.001


def set_process_alarm(seconds: float) -> None:
    """End this process, with exit code 14, after some seconds of real time; 0 cancels it.

    It uses the timer and the signal of `signal.alarm`.  Does nothing where these do not exist.
    """
    if hasattr(signal, "setitimer") and _handles_alarms():
        signal.setitimer(signal.ITIMER_REAL, seconds)


def no_alarm(seconds: float) -> None:
    """Set no alarm: other code of this process must not end with a lease."""


def until(moment: float, now: float) -> float:
    """Return the seconds until a moment; one that has passed is due at once."""
    return max(moment - now, _LEAST_SECONDS)


@cache
def _handles_alarms() -> bool:
    """Let the signal call `_exit` of the C library, which needs no thread of Python.

    The default action would end every process but the first one of a container.
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
