"""Durations: text in contract v1beta1, whole seconds in v1beta2."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.conversion.values import CONVERSIONS, MISSING, ValueContext

CONTEXT = ValueContext(status={})
SECONDS = CONVERSIONS["seconds"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("10s", 10), ("1h30m", 5400), ("0s", 0), ("1000000h", 2**31 - 1), ("soon", MISSING)],
)
def test_a_duration_becomes_seconds(old: str, new: Any) -> None:
    """Proves: CP-14."""
    assert SECONDS.forward(old, CONTEXT) == new


@pytest.mark.parametrize(("new", "old"), [(5400, "1h30m0s"), (-1, MISSING), ("10s", MISSING)])
def test_seconds_become_a_duration(new: Any, old: Any) -> None:
    """Proves: CP-15."""
    assert SECONDS.backward(new, CONTEXT) == old
