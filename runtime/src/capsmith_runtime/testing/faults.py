"""A simulated cloud's faults, under the module name that providers' tests import."""

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
