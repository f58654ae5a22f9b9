"""Conformance tests for runtime extensions."""

from capsmith_runtime.testing.conformance.extension.server import (
    TestRuntimeExtensionHooks,
    TestRuntimeExtensionManifests,
)

__all__ = [
    "TestRuntimeExtensionHooks",
    "TestRuntimeExtensionManifests",
]
