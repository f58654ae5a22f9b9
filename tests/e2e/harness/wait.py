"""Waiting with a bound: every wait of the tests goes through here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 180.0
"""Seconds for whatever crosses a manager, core or a lease.

On a busy machine each of them may take many times as long as alone, and a manager may have to be
started again; a wait that succeeds does not pay for its bound.
"""


class PassingError(Exception):
    """What may be different the next moment, such as an object that went away while it was read."""


class NotYet(AssertionError):
    """Raised by a probe to say why it is not satisfied; shown when time runs out."""


def eventually(
    probe: Callable[[], T], *, timeout: float = PATIENCE, what: str = "", interval: float = 0.1
) -> T:
    """Call `probe` until it returns something true, and return that.

    A probe may raise AssertionError (also NotYet) to explain itself, and what it reads may pass
    away under its eyes. Any other exception is a fault and ends the wait at once.
    """
    deadline = time.monotonic() + timeout
    reason: object = "the probe never ran"
    while True:
        try:
            answer = probe()
            if answer:
                return answer
            reason = f"last answer: {answer!r}"
        except (AssertionError, PassingError) as error:
            reason = error
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout:g} s: {what or probe.__name__}: {reason}")
        time.sleep(interval)


def steadily(probe: Callable[[], object], *, seconds: float, interval: float = 0.2) -> None:
    """Call `probe`, which asserts, again and again for a while: for what must not happen."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        probe()
        time.sleep(interval)


def settled(
    observe: Callable[[], object], *, seconds: float, timeout: float = PATIENCE, what: str
) -> None:
    """Wait until what is observed has not changed for a while: things must come to rest."""
    deadline = time.monotonic() + timeout
    last, since = _observed(observe), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.2)
        now = _observed(observe)
        if now != last:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} still changing: {last!r} became {now!r}")
            last, since = now, time.monotonic()


def _observed(observe: Callable[[], object]) -> object:
    """What passes away while it is looked at is not at rest: that equals nothing but itself."""
    try:
        return observe()
    except PassingError as error:
        return error
