"""Counts calls: a measure of work that is the same on each machine, unlike time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def counted_calls(*events: str) -> Iterator[list[int]]:
    """Count calls; the list holds one number.

    ``events`` are those of ``sys.setprofile`` that count: "call" for functions of Python, which is
    the default, and "c_call" for functions in C.
    """
    counting = frozenset(events or ("call",))
    count = [0]

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        count[0] += event in counting

    sys.setprofile(profile)
    try:
        yield count
    finally:
        sys.setprofile(None)
