"""Dumps of a process: what they show, and that a blocked event loop does not prevent them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from capsmith_runtime.kube import state_dump
from capsmith_runtime.kube.state_dump import (
    describe_heap,
    describe_process,
    describe_tasks,
    describe_threads,
)
from tests.runtime.support.filled_tuple import fill_during_get_objects

SECRET = "hunter2"


async def inner(password: str, event: asyncio.Event) -> None:
    await event.wait()


async def outer(event: asyncio.Event) -> None:
    await inner(SECRET, event)


async def test_tasks_show_the_calls_in_which_they_wait() -> None:
    event = asyncio.Event()
    task = asyncio.create_task(outer(event), name="AcmeMachine-3")
    await asyncio.sleep(0)
    (line,) = [each for each in describe_tasks(asyncio.get_running_loop()) if "-3: " in each]
    event.set()
    await task

    calls = line.removeprefix("AcmeMachine-3: ").split(" > ")
    assert [each.rpartition(":")[0] for each in calls] == [
        f"{__name__}.outer",
        f"{__name__}.inner",
        "asyncio.locks.Event.wait",
    ]


async def test_a_failure_of_the_description_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[str]:
        raise RuntimeError("no heap")

    monkeypatch.setattr(state_dump, "describe_heap", fail)
    with pytest.raises(RuntimeError, match="no heap"):
        await describe_process()


def call_hook(entered: threading.Event, event: threading.Event) -> None:
    entered.set()
    event.wait()


def test_threads_show_the_calls_in_which_they_are() -> None:
    entered, event = threading.Event(), threading.Event()
    thread = threading.Thread(target=call_hook, args=(entered, event), name="hook-open")
    thread.start()
    entered.wait()
    lines = [each for each in describe_threads() if each.startswith("hook-open: ")]
    event.set()
    thread.join()

    assert len(lines) == 1
    assert f"{__name__}.call_hook" in lines[0]


async def test_no_values_are_shown() -> None:
    event = asyncio.Event()
    task = asyncio.create_task(outer(event), name="open")
    await asyncio.sleep(0)
    text = await describe_process()
    event.set()
    await task

    assert [line for line in text.splitlines() if not line.startswith(" ")] == [
        "tasks",
        "threads",
        "memory",
    ]
    assert f"{__name__}.inner" in text
    assert SECRET not in text


@pytest.fixture
def tracing() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_memory_is_shown_by_type() -> None:
    lines = describe_heap()
    assert any(line.endswith(" objects of builtins.dict") for line in lines)
    assert "PYTHONTRACEMALLOC" in lines[-1]


def test_threads_go_on_while_memory_is_described() -> None:
    """A tuple to which the description refers cannot be filled by the thread that creates it."""
    with fill_during_get_objects() as filled:
        describe_heap()
    assert filled.error is None


@pytest.mark.usefixtures("tracing")
def test_memory_is_shown_by_line_if_allocations_are_traced() -> None:
    kept = bytearray(50_000_000)
    lines = describe_heap()

    assert any(f"{len(kept) // 10**6}0" in line and __file__ in line for line in lines)


PROGRAM = """
import asyncio, os, sys, threading
from capsmith_runtime.kube import log
from capsmith_runtime.kube.state_dump import dump_on_signal

async def main():
    dump_on_signal(asyncio.get_running_loop())
    print("ready", flush=True)
    BODY

log.configure(2, "text")
asyncio.run(main())
"""


@contextmanager
def process(body: str) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.replace("BODY", body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert started.stdout
        assert started.stdout.readline() == "ready\n"
        yield started
    finally:
        started.kill()
        started.communicate()


def read_until(stream: Iterator[str] | None, part: str) -> list[str]:
    lines: list[str] = []
    assert stream is not None
    for line in stream:
        lines.append(line)
        if part in line:
            return lines
    raise AssertionError(f"the process ended without {part}: {lines}")


def test_a_signal_logs_everything_each_time() -> None:
    with process("await asyncio.Event().wait()") as started:
        for _ in range(2):
            started.send_signal(signal.SIGUSR1)
            lines = read_until(started.stderr, "end of dump")
            for part in ("dump task state=", "dump thread state=", "dump memory state="):
                assert any(part in line for line in lines), part
        assert started.poll() is None


BUSY_THREADS = """
    def work():
        while True:
            sum(len(str(number)) for number in range(100))
            threading.Event().wait(0.0001)

    for _ in range(8):
        threading.Thread(target=work, daemon=True).start()
    await asyncio.Event().wait()
"""


def test_signals_do_not_end_a_process_whose_threads_run() -> None:
    """Their stacks change while the handler of a signal runs."""
    with process(BUSY_THREADS.strip()) as started:
        for _ in range(100):
            started.send_signal(signal.SIGUSR1)
            read_until(started.stderr, "end of dump")


BUSY_LOOP = """
    class Freed:
        def __del__(self):
            pass

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while True:
        for _ in range(20):
            sorted(range(20), key=lambda number: [Freed() for _ in range(5)] and -number)
        print(flush=True)
"""


def test_signals_do_not_end_a_process_whose_event_loop_is_busy() -> None:
    """The stack of its own thread changes as well while the handler of a signal runs."""
    with process(BUSY_LOOP.strip()) as started:
        assert started.stdout
        for _ in range(1000):
            started.send_signal(signal.SIGUSR1)
            assert started.stdout.readline(), "the process has ended"


BLOCKED = """
    event = threading.Event()

    def hold():
        print("holding", flush=True)
        event.wait()

    threading.Thread(target=hold, name="hook-create").start()
    event.wait()
"""


def test_a_blocked_event_loop_shows_the_stacks_of_all_threads() -> None:
    with process(BLOCKED.strip()) as started:
        assert started.stdout
        assert started.stdout.readline() == "holding\n"
        started.send_signal(signal.SIGUSR1)
        read_until(started.stderr, "SIGUSR1")
        lines = [read_until(started.stderr, ":")[0] for _ in range(2)]

    found = {line.split(":")[0].strip(): line for line in lines}
    assert "__main__.main:" in found["MainThread"]
    assert "__main__.main.<locals>.hold:" in found["hook-create"]
