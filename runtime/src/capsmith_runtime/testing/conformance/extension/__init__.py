"""Conformance of runtime extensions."""

from capsmith_runtime.testing.conformance.extension.server import (
    TestRuntimeExtension,
    TestRuntimeExtensionHooks,
    TestRuntimeExtensionManifests,
)

__all__ = [
    "TestRuntimeExtension",
    "TestRuntimeExtensionHooks",
    "TestRuntimeExtensionManifests",
]
