"""SIGTERM that arrives before the process that has to end is there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator

import pytest

from capsmith.clusters.node.signals import SigtermForwarder, hold_sigterm


@pytest.fixture
def sigterm() -> Iterator[SigtermForwarder]:
    former = signal.getsignal(signal.SIGTERM)
    yield SigtermForwarder()
    signal.signal(signal.SIGTERM, former)


def test_an_early_signal_is_forwarded_later(sigterm: SigtermForwarder) -> None:
    sigterm.install()
    os.kill(os.getpid(), signal.SIGTERM)
    assert sigterm.is_requested
    sent: list[str] = []
    sigterm.forward_to(lambda: sent.append("first"))
    os.kill(os.getpid(), signal.SIGTERM)
    assert sent == ["first", "first"]


def test_a_signal_that_was_held_arrives(sigterm: SigtermForwarder) -> None:
    with hold_sigterm():
        # To this thread, because others of the process do not hold it.
        signal.raise_signal(signal.SIGTERM)
        sigterm.install()
    assert sigterm.is_requested


def test_processes_inherit_that_the_signal_is_held() -> None:
    masks = []
    for _ in range(2):
        with hold_sigterm():
            done = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True)
        masks += re.findall(r"SigBlk:\s*([0-9a-f]+)", done.stdout)
    assert [int(each, 16) >> (signal.SIGTERM - 1) & 1 for each in masks] == [1, 1]
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
