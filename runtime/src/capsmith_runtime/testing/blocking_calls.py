"""Find calls of an author's code that block: the event loop, or the thread of a method.

Python reports such calls to audit hooks, before they begin.  Only calls on the thread of a test's
event loop count, and only while a method of the author is running: a test double may block.  A
method in a thread of its own may block, too; its longer sleeps are recorded for scenarios in which
an SDK should not wait.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, SupportsIndex

from capsmith_runtime.kube.executor import HandlerThread
from capsmith_runtime.kube.handler_calls import find_handler_name

Sleep = Callable[[SupportsIndex | float], None]
_WAITS: Final = frozenset({"time.sleep", "os.system", "socket.getaddrinfo", "http.client.send"})
"""Audit events of calls that block in any case."""
_WAITERS: Final = frozenset({subprocess.run.__code__, subprocess.call.__code__})
"""Functions that wait for the process that they start."""
_LONG_SECONDS: Final = 0.4
"""Least duration of a sleep that is recorded; test doubles that simulate slow calls sleep less."""
_found: dict[str, str] = {}
"""The event at each place."""
_sleeps: dict[str, float] = {}
"""The seconds of the longest sleep of a synchronous method, at each place."""


def find_blocking_calls() -> list[str]:
    """Return what was found since the last call of this function, without repetitions."""
    _install()
    found = [f"{place} calls {event}" for place, event in _found.items()]
    _found.clear()
    return found


def find_long_sleeps() -> list[str]:
    """Return where synchronous methods have slept since the last call of this function."""
    _install()
    found = [f"{seconds:.1f} s{place}" for place, seconds in dict(_sleeps).items()]
    _sleeps.clear()
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
    if not _blocks(event, args):
        return
    if asyncio._get_running_loop() is None:
        _record_sleep(event, args)
        return
    name = find_handler_name()
    if name:
        # One request is several events: the first one names them all.
        _found.setdefault(f"{name}{_place()}", event)


def _record_sleep(event: str, args: tuple[object, ...]) -> None:
    match event, args:
        case "time.sleep", (int() | float() as seconds, *_) if seconds >= _LONG_SECONDS:
            if isinstance(threading.current_thread(), HandlerThread):
                place = _place()
                _sleeps[place] = max(seconds, _sleeps.get(place, 0.0))


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
