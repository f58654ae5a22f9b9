"""Builders for unit tests of validators and defaulters; they need no API server."""

from capsmith_runtime.testing.admission.requests import admission_object
from capsmith_runtime.testing.core import spec_from

__all__ = [
    "admission_object",
    "spec_from",
]
