"""Conformance tests for kinds that implement Resource."""

from capsmith_runtime.testing.conformance.resource.clusters import (
    TestResourcesOfClusters,
    TestStandaloneResources,
)
from capsmith_runtime.testing.conformance.resource.faults import TestResourceFaults
from capsmith_runtime.testing.conformance.resource.resources import TestResources

__all__ = [
    "TestResourceFaults",
    "TestResources",
    "TestResourcesOfClusters",
    "TestStandaloneResources",
]
