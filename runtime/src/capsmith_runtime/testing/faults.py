"""Faults of a simulated cloud, under the module name that tests of providers import."""

from capsmith_runtime.fault_injection import (
    HANG_SECONDS,
    NONE,
    RETRY_SECONDS,
    VARIABLE,
    CloudUnavailable,
    Faults,
    LoginRefused,
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
    "LoginRefused",
    "RateLimited",
    "inject_faults",
]
