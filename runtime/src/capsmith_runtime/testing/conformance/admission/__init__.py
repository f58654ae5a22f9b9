"""Conformance tests for validation and defaulting."""

from capsmith_runtime.testing.conformance.admission.webhooks import (
    TestAdmissionDefaulting,
    TestAdmissionValidation,
)

__all__ = [
    "TestAdmissionDefaulting",
    "TestAdmissionValidation",
]
