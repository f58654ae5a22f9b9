"""Conformance of validation and defaulting."""

from capsmith_runtime.testing.conformance.admission.webhooks import (
    TestAdmissionDefaulting,
    TestAdmissionManifests,
    TestAdmissionValidation,
)

__all__ = [
    "TestAdmissionDefaulting",
    "TestAdmissionManifests",
    "TestAdmissionValidation",
]
