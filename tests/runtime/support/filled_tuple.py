"""A tuple that another thread is filling while code looks at all objects in memory."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class FilledTuple:
    """A thread that has begun to fill a tuple, and fails if the tuple has another reference."""

    def __init__(self) -> None:
        self.error: SystemError | None = None
        self._begun, self._resumed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._fill)
        self._thread.start()
        self._begun.wait()

    def finish(self) -> None:
        """Let the thread fill the tuple, and wait for its end."""
        self._resumed.set()
        self._thread.join()

    def _fill(self) -> None:
        try:
            tuple(self._values())
        except SystemError as error:
            self.error = error

    def _values(self) -> Iterator[int]:
        self._begun.set()
        self._resumed.wait()
        yield 0


@contextmanager
def fill_during_get_objects() -> Iterator[FilledTuple]:
    """Fill a tuple as soon as code of the block has got all objects from the garbage collector.

    Another thread may continue there, unless no Python code runs before the objects are let go.
    """
    filled = FilledTuple()

    def resume(_: FrameType, event: str, function: object) -> None:
        if event == "c_return" and function is gc.get_objects:
            filled.finish()

    sys.setprofile(resume)
    try:
        yield filled
    finally:
        sys.setprofile(None)
        filled.finish()
