"""A simulated cloud's faults, under the module name that providers' tests import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capsmith_runtime.fault_injection import (
    HANG_SECONDS,
    NONE,
    RETRY_SECONDS,
    VARIABLE,
    CloudUnavailable,
    Faults,
    LoginRefused,
    NoCapacity,
    RateLimited,
    inject_faults,
)

__all__ = [
    "FAILURES",
    "FAULTY_SECONDS",
    "HANG_SECONDS",
    "NONE",
    "RETRY_SECONDS",
    "VARIABLE",
    "CloudUnavailable",
    "Faults",
    "LoginRefused",
    "NoCapacity",
    "RateLimited",
    "inject_faults",
]

FAULTY_SECONDS: Final = 10.0
"""Time during which calls of a service fail, long enough for several attempts with back-off."""
FAILURES: Final[Mapping[str, Faults]] = {
    "error": Faults(error=1.0),
    "limit": Faults(limit=1.0),
    "lost": Faults(lost=1.0),
    "refuse": Faults(refuse=1.0),
}
"""Faults by which all calls of a service fail, each with its name in the tests."""
