"""A thread that ends the process if its lease was not renewed, although it may still work.

The event loop renews the lease, and notices when that fails.  A blocking call in an asynchronous
handler stops both.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Final

from capsmith_runtime.kube.leaderelection import LeaderElector
from capsmith_runtime.kube.log import get_logger

EndProcess = Callable[[int], None]
"""Ends the process with an exit code; tests pass a function that returns."""

_FLUSH_SECONDS: Final = 1.0


def exit_process(code: int) -> None:
    """End the process without joining a thread or running exit handlers; logs are flushed."""
    try:
        run_briefly(logging.shutdown)
    finally:
        os._exit(code)


def exit_process_later(seconds: float, code: int, end: EndProcess = exit_process) -> None:
    """End the process if it still runs after some seconds, e.g. because an exit handler hangs."""
    timer = threading.Timer(seconds, end, (code,))
    timer.daemon = True
    timer.start()


def run_briefly(function: Callable[[], object]) -> None:
    """Run a function that may block, such as logging into a full pipe, for a second at most."""
    thread = threading.Thread(target=function, name="run-briefly", daemon=True)
    thread.start()
    thread.join(_FLUSH_SECONDS)


_log = get_logger("leader")


class LeaseWatchdog:
    """Watches the lease of an elector between `start` and `stop`."""

    def __init__(self, elector: LeaderElector, end_process: EndProcess) -> None:
        self._elector = elector
        self._end_process = end_process
        self._stopped = threading.Event()
        self._loop_thread: int | None = None

    def start(self) -> None:
        """Start the thread; call this in the thread of the event loop."""
        self._loop_thread = threading.get_ident()
        threading.Thread(target=self._run, name="lease-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Let the thread end."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._elector.timings.retry / 2):
            if self._elector.is_overdue:
                try:
                    run_briefly(self._report)
                finally:
                    self._end_process(1)
                return

    def _report(self) -> None:
        frame = sys._current_frames().get(self._loop_thread or 0)
        stack = "".join(traceback.format_stack(frame)) if frame else ""
        _log.error(
            "the event loop is blocked, and the lease was not renewed: the process ends",
            stack=stack,
        )
