"""Conformance tests for the conversion between API versions whose fields differ."""

from capsmith_runtime.testing.conformance.conversion.version_fields import TestVersionFields

__all__ = [
    "TestVersionFields",
]
