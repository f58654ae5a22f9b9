"""Find calls of an author's asynchronous code that block the event loop.

Python reports such calls to audit hooks, before they begin.  Only calls on the thread of a test's
event loop count, and only while a method of the author is running: a test double may block.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, SupportsIndex

from capsmith_runtime.kube.handler_calls import find_handler_name

Sleep = Callable[[SupportsIndex | float], None]
_WAITS: Final = frozenset({"time.sleep", "os.system", "socket.getaddrinfo", "http.client.send"})
"""Audit events of calls that block in any case."""
_WAITERS: Final = frozenset({subprocess.run.__code__, subprocess.call.__code__})
"""Functions that wait for the process that they start."""
_found: dict[str, str] = {}
"""The event at each place."""


def find_blocking_calls() -> list[str]:
    """Return what was found since the last call of this function, without repetitions."""
    _install()
    found = [f"{place} calls {event}" for place, event in _found.items()]
    _found.clear()
    return found


@functools.cache
def _install() -> None:
    """Add the audit hook; Python cannot remove one."""
    sys.addaudithook(_hear)
    if sys.version_info < (3, 13):
        # Older releases report no event for it.
        time.sleep = _announce(time.sleep)


def _announce(sleep: Sleep) -> Sleep:
    @functools.wraps(sleep)
    def announced(seconds: SupportsIndex | float, /) -> None:
        _hear("time.sleep", (seconds,))
        sleep(seconds)

    return announced


def _hear(event: str, args: tuple[object, ...]) -> None:
    if not _blocks(event, args) or asyncio._get_running_loop() is None:
        return
    name = find_handler_name()
    if name:
        # One request is several events: the first one names them all.
        _found.setdefault(f"{name}{_place()}", event)


def _blocks(event: str, args: tuple[object, ...]) -> bool:
    match event, args:
        case "time.sleep", (seconds, *_):
            return bool(seconds)
        case "socket.connect", (socket.socket() as connection, *_):
            is_stream = connection.type == socket.SOCK_STREAM
            return is_stream and connection.gettimeout() != 0.0
        case "subprocess.Popen", _:
            return any(frame.f_code in _WAITERS for frame in _frames())
    return event in _WAITS


def _place() -> str:
    """Return the innermost line outside of libraries on the stack, as " in FILE:LINE"."""
    for frame in _frames():
        file = frame.f_code.co_filename
        if not _is_library(file):
            return f" in {file}:{frame.f_lineno}"
    return ""


def _frames() -> list[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _is_library(file: str) -> bool:
    return "-packages" in file or file.startswith(("<", sys.base_prefix)) or file == __file__
