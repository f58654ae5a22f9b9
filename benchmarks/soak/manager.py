"""``python -m benchmarks.soak.manager PACKAGE ...``: a provider's manager that is observed.

Environment:
  SOAK_BLOCKS  file for callbacks that block the event loop, as lines of JSON
  SOAK_CLOCK   file with the seconds by which this process's wall clock is wrong
  SOAK_TENANTS folder with the faults of tenants, each of which has a cloud of its own
"""

from __future__ import annotations

import asyncio
import datetime
import gc
import json
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.soak.tenant_cloud import separate_tenants

BLOCK_SECONDS = 0.02
"""Shorter callbacks are not recorded."""


def record_blocks(path: Path) -> None:
    """Record each callback that blocks the event loop, with the processor time that it takes.

    The share of the garbage collector, which runs in whichever callback allocates, is recorded too.
    """
    run, collector = asyncio.Handle._run, _CollectorTime()

    def timed(handle: asyncio.Handle) -> None:
        began, used, collected = time.perf_counter(), time.thread_time(), collector.seconds
        run(handle)
        seconds = time.perf_counter() - began
        if seconds > BLOCK_SECONDS:
            processor = time.thread_time() - used
            block = {"at": time.monotonic(), "seconds": seconds, "processor": processor}
            block["collector"] = collector.seconds - collected
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**block, "what": _name(handle)}) + "\n")

    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]


class _CollectorTime:
    """Counts the processor time that the garbage collector takes, its other callbacks included."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0
        gc.callbacks.insert(0, self._begin)

    def _begin(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._began = time.thread_time()
            # Last again, in case that callbacks were added meanwhile.
            if gc.callbacks[-1] != self._end:
                if self._end in gc.callbacks:
                    gc.callbacks.remove(self._end)
                gc.callbacks.append(self._end)

    def _end(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "stop":
            self.seconds += time.thread_time() - self._began


def _name(handle: asyncio.Handle) -> str:
    task = getattr(getattr(handle, "_callback", None), "__self__", None)
    if isinstance(task, asyncio.Task):
        return f"{task.get_name()}: {getattr(task.get_coro(), '__qualname__', '')}"
    return repr(handle)[:200]


def shift_clock(path: Path) -> None:
    """Make wall clocks of this process wrong; monotonic clocks, as in reality, stay right."""
    real, true_time = datetime.datetime, time.time

    def offset() -> float:
        try:
            return float(path.read_text(encoding="utf-8") or 0)
        except FileNotFoundError:
            return 0.0

    class Kind(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real)

    class Shifted(real, metaclass=Kind):  # type: ignore[misc, valid-type]
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return real.now(tz) + datetime.timedelta(seconds=offset())

    datetime.datetime = Shifted  # type: ignore[misc]
    time.time = lambda: true_time() + offset()


def main() -> None:
    if blocks := os.environ.get("SOAK_BLOCKS"):
        record_blocks(Path(blocks))
    if clock := os.environ.get("SOAK_CLOCK"):
        shift_clock(Path(clock))
    package = sys.argv.pop(1)
    if tenants := os.environ.get("SOAK_TENANTS"):
        separate_tenants(package, Path(tenants))
    runpy.run_module(package, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
