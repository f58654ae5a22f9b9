"""Signals that end a run let it remove what it has begun."""

from __future__ import annotations

import os
import signal

import pytest

from capsmith.cli.options import handle_exit


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_cleans_up_before_it_exits(number: signal.Signals) -> None:
    events: list[str] = []

    @handle_exit
    def run() -> int:
        try:
            os.kill(os.getpid(), number)
            events.append("went on")
        finally:
            events.append("cleaned up")
        return 0

    with pytest.raises(SystemExit) as exited:
        run()
    assert exited.value.code == 128 + number
    assert events == ["cleaned up"]
    assert signal.getsignal(number) is signal.SIG_DFL


def test_an_ignored_signal_stays_ignored() -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:

        @handle_exit
        def run() -> int:
            os.kill(os.getpid(), signal.SIGHUP)
            return 3

        with pytest.raises(SystemExit) as exited:
            run()
        assert exited.value.code == 3
    finally:
        signal.signal(signal.SIGHUP, previous)
