"""Faults of a simulated cloud, under the name by which tests of providers import them."""

from capsmith_runtime.fault_injection import (
    HANG_SECONDS,
    NONE,
    RETRY_SECONDS,
    VARIABLE,
    CloudUnavailable,
    Faults,
    RateLimited,
    inject_faults,
)

__all__ = [
    "HANG_SECONDS",
    "NONE",
    "RETRY_SECONDS",
    "VARIABLE",
    "CloudUnavailable",
    "Faults",
    "RateLimited",
    "inject_faults",
]
