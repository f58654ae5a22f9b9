"""Show on a terminal what a running command is doing, and its progress."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from capsmith.printable import make_printable
from capsmith.progress import Progress, listen

if TYPE_CHECKING:
    from threading import Condition, Lock

    from rich.console import Console, ConsoleOptions
    from rich.measure import Measurement
    from rich.status import Status
    from rich.text import Text

DELAY_SECONDS: Final = 1.0
LINE_SECONDS: Final = 5.0
"""Seconds between lines that stay on the screen."""
PROGRESS: Final = "CAPSMITH_PROGRESS"
"""Environment variable. If its value is ``lines``, progress is printed as lines that stay on the
screen.
"""


@contextlib.contextmanager
def show_working(
    text: str, delay: float = DELAY_SECONDS, interval: float = LINE_SECONDS
) -> Iterator[None]:
    """Return a context manager that shows ``text`` and the progress of the work inside it.

    The text appears on standard error after ``delay`` seconds, only on a terminal, and is removed
    on exit.  If the terminal cannot remove text, or if ``CAPSMITH_PROGRESS`` is ``lines``, a
    permanent line is printed every ``interval`` seconds instead, unless nothing has changed.
    """
    # In a log, the line and its control characters would remain.
    if not sys.stderr.isatty():
        yield
        return
    # Imported here, so that a run in a pipe does not import it.
    import threading

    with listen() as progress:

        def describe(width: int) -> str:
            return _describe(text, progress, width)

        shown: _Shown = (
            _Lines(describe, interval, threading.Condition())
            if _wants_lines()
            else _Animation(describe, threading.Lock())
        )
        timer = threading.Timer(delay, shown.start)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            shown.stop()


def _wants_lines() -> bool:
    """Return whether progress must not be drawn over: for screen readers, and simple terminals."""
    return os.environ.get(PROGRESS) == "lines" or os.environ.get("TERM") == "dumb"


def _describe(text: str, progress: Progress, width: int) -> str:
    """Return the text and the current step. The text is shortened, so that both fit."""
    step = progress.describe()
    shown = make_printable(text)
    if not step:
        return shown
    room = max(width - len(step) - 2, _SHORTEST)
    if len(shown) > room:
        shown = f"{shown[: room - 1]}\N{HORIZONTAL ELLIPSIS}"
    return f"{shown}: {make_printable(step)}"


class _Shown(Protocol):
    def start(self) -> None:
        """Show the text. The timer's thread calls this."""

    def stop(self) -> None:
        """Remove the text, or never show it."""


Describe = Callable[[int], str]
"""Function that returns the text to show in a line with the given number of columns."""
_SHORTEST = 12


class _Lines:
    """A line for each news; they stay on the screen, and are read out once each."""

    def __init__(self, describe: Describe, interval: float, end: Condition) -> None:
        self._describe = describe
        self._interval = interval
        self._end = end
        self._has_ended = False

    def start(self) -> None:
        last = ""
        # No line can follow the end: both hold the lock.
        with self._end:
            while not self._has_ended:
                if (text := self._describe(sys.maxsize)) != last:
                    print(text, file=sys.stderr, flush=True)
                    last = text
                self._end.wait(self._interval)

    def stop(self) -> None:
        with self._end:
            self._has_ended = True
            self._end.notify()


class _Animation:
    """A line with a spinner; once stopped, it stays hidden."""

    def __init__(self, describe: Describe, lock: Lock) -> None:
        self._describe = describe
        self._lock = lock
        self._status: Status | None = None
        self._has_ended = False

    def start(self) -> None:
        # Imported here, in the timer's thread, so that a run of less than a second does not import
        # it.
        from rich.console import Console
        from rich.status import Status

        # The timer's thread may get here just as the block ends: without the lock and the flag, the
        # line would appear after its removal and remain.
        with self._lock:
            if not self._has_ended:
                self._status = Status(self, console=Console(stderr=True))
                self._status.start()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the current text, in one line. rich calls this whenever it draws."""
        from rich.text import Text

        text = self._describe(options.max_width)
        yield Text(text, no_wrap=True, overflow="ellipsis")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return that the text may take all columns that there are."""
        from rich.measure import Measurement

        return Measurement(_SHORTEST, options.max_width)

    def stop(self) -> None:
        with self._lock:
            self._has_ended = True
            if self._status is not None:
                self._status.stop()
