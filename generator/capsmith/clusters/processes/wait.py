"""Wait with a timeout until a state is reached, or check that a state does not change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 180.0
"""Default timeout, in seconds, for waits that involve a manager, core or a lease.

On a busy machine, such a step may take many times as long as on an idle one, and a manager may
restart.  A long timeout does not slow down a wait that succeeds.
"""


class PassingError(Exception):
    """A transient failure, such as an object deleted while it is read; waits ignore it."""


class NotYet(PassingError):
    """Raised by a probe that is not yet satisfied. A timeout reports the message as the reason."""


def eventually(
    probe: Callable[[], T],
    *,
    timeout: float = PATIENCE,
    what: str = "",
    interval: float | None = None,
) -> T:
    """Call `probe` every `interval` seconds until it returns a true value, and return that value.

    By default, the interval grows with the elapsed time, from 0.1 to 0.5 seconds: pass an interval
    if the state may last only for a moment.  A probe that is not satisfied may raise NotYet, any
    other PassingError or AssertionError with the reason.  Any other exception ends the wait
    immediately.  Raises TimeoutError with `what` and the last reason after `timeout` seconds.
    """
    began = time.monotonic()
    reason: object = "the probe never ran"
    while True:
        try:
            answer = probe()
            if answer:
                return answer
            reason = f"last answer: {answer!r}"
        except (AssertionError, PassingError) as error:
            reason = error
        waited = time.monotonic() - began
        if waited > timeout:
            raise TimeoutError(f"not within {timeout:g} s: {what or probe.__name__}: {reason}")
        time.sleep(_next_interval(waited) if interval is None else interval)


def _next_interval(waited: float) -> float:
    """Return the seconds until the next call of a probe, after ``waited`` seconds of waiting."""
    # The result is delayed by at most a twentieth of the wait, and a long wait does not keep the
    # API server busy.
    return min(max(0.1, waited / 20), 0.5)


def steadily(probe: Callable[[], object], *, seconds: float, interval: float = 0.2) -> None:
    """Call `probe` repeatedly for `seconds`.

    `probe` must raise an exception if the state changes. The exception is not caught.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        probe()
        time.sleep(interval)


def settled(
    observe: Callable[[], object], *, seconds: float, timeout: float = PATIENCE, what: str
) -> None:
    """Wait until the value that `observe` returns has stayed the same for `seconds`.

    Raises TimeoutError with `what` if the value still changes after `timeout` seconds.
    """
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
    """Return the result of ``observe`` or its PassingError, which equals no other value."""
    try:
        return observe()
    except PassingError as error:
        return error
