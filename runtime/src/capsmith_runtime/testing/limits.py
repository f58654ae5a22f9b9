"""Limits of the conformance tests, which authors may change in ``tests/conftest.py``."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

WAIT_SECONDS: Final = 120.0
MACHINE_REQUESTS: Final = 3
SCENARIO_WAITS: Final = 10
"""Time limit for a whole test, as a multiple of the time limit for a single wait."""


class Limits(NamedTuple):
    """The conformance tests' limits: seconds for a wait, and writes to provision a machine."""

    wait_seconds: float = WAIT_SECONDS
    machine_requests: int = MACHINE_REQUESTS

    def hint(self, name: str) -> str:
        """Return a sentence on how to raise a limit, for a failing test's message."""
        call = f"capsmith_runtime.testing.limits.set_limits({name}=...)"
        return (
            f"If your infrastructure needs more, call {call} in tests/conftest.py;"
            " see docs/author-api.md, Conformance tests."
        )


_limits = Limits()


def limits() -> Limits:
    """Return the conformance tests' limits, which :func:`set_limits` can replace."""
    return _limits


def set_limits(
    *, wait_seconds: float = WAIT_SECONDS, machine_requests: int = MACHINE_REQUESTS
) -> None:
    """Replace the limits for all conformance tests; call this in ``tests/conftest.py``.

    Each expected state must be reached within ``wait_seconds`` on the virtual clock, and a whole
    test may take ten times as long. Provisioning a machine may take at most ``machine_requests``
    writes: for the finalizer, the provider id, the status, and each partial result. Raises
    ValueError for a limit that is not positive.
    """
    global _limits
    if not 0 < wait_seconds < math.inf:
        raise ValueError(f"wait_seconds must be positive, not {wait_seconds}")
    if machine_requests < 1:
        raise ValueError(f"machine_requests must be positive, not {machine_requests}")
    _limits = Limits(wait_seconds, machine_requests)
