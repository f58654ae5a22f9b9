"""What a run is doing, on standard error, once it takes longer than a second; on terminals only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from threading import Lock

    from rich.status import Status

DELAY_SECONDS: Final = 1.0


@contextlib.contextmanager
def working(text: str, delay: float = DELAY_SECONDS) -> Iterator[None]:
    """Show ``text`` while the block runs, after ``delay`` seconds, and remove it in the end."""
    if not sys.stderr.isatty():
        yield
        return
    # Imported here: a run in a pipe does not pay for it.
    import threading

    shown = _Shown(text, threading.Lock())
    timer = threading.Timer(delay, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        shown.stop()


class _Shown:
    """A line with a spinner; once stopped, it stays hidden."""

    def __init__(self, text: str, lock: Lock) -> None:
        self._text = text
        self._lock = lock
        self._status: Status | None = None
        self._has_ended = False

    def start(self) -> None:
        # Imported here, in the timer's thread: a run of less than a second does not pay for it.
        from rich.console import Console
        from rich.status import Status
        from rich.text import Text

        with self._lock:
            if not self._has_ended:
                self._status = Status(Text(self._text), console=Console(stderr=True))
                self._status.start()

    def stop(self) -> None:
        with self._lock:
            self._has_ended = True
            if self._status is not None:
                self._status.stop()
