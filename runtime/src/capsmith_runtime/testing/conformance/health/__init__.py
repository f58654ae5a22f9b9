"""Conformance tests for health checks."""

from capsmith_runtime.testing.conformance.health.checks import TestHealthChecks, TestLiveness

__all__ = ["TestHealthChecks", "TestLiveness"]
