"""Keep pauses of the garbage collector short in a process that caches many objects.

A full collection visits every object in memory and stops the event loop meanwhile: for more than
100 ms with thousands of cached Kubernetes objects.  Cached objects contain no reference cycles, so
reference counting alone frees them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from typing import Any, Final

PAUSE_SECONDS: Final = 0.02
"""Processor time of a full collection after which its survivors are not visited again."""
_OLDEST: Final = 2


class PauseLimiter:
    """Exclude the survivors of a slow full collection from later ones.

    A reference cycle that they become part of is not freed.  That is rare: between two slow
    collections there are as many new objects as PAUSE_SECONDS are enough for.
    """

    def __init__(self, seconds: float = PAUSE_SECONDS) -> None:
        self._seconds = seconds
        self._began = 0.0

    def start(self) -> None:
        """Begin to observe collections."""
        gc.callbacks.append(self._observe)

    def stop(self) -> None:
        """Cease to observe collections, and visit all objects again."""
        gc.callbacks.remove(self._observe)
        gc.unfreeze()

    def _observe(self, phase: str, info: Mapping[str, Any]) -> None:
        if info["generation"] < _OLDEST:
            return
        # A collection runs in one thread, with the interpreter locked.
        if phase == "start":
            self._began = time.thread_time()
        elif time.thread_time() - self._began > self._seconds:
            gc.freeze()
