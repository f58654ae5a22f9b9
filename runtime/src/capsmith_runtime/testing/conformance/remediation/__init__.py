"""Conformance tests for kinds that implement Remediation."""

from capsmith_runtime.testing.conformance.remediation.remediations import TestRemediations

__all__ = ["TestRemediations"]
