"""Conformance tests for add-on providers."""

from capsmith_runtime.testing.conformance.addon.addons import TestAddons
from capsmith_runtime.testing.conformance.addon.faults import TestAddonFaults

__all__ = [
    "TestAddonFaults",
    "TestAddons",
]
