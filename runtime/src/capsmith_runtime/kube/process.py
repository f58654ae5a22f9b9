"""End the process at once, whatever its threads do."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Final

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
