"""Scenarios with a test double in which clusters have nothing, as with machines on given hosts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capsmith_runtime.testing.conformance import conformance_tests
from capsmith_runtime.testing.provider import InfrastructureDouble
from tests.runtime.scenarios.providers import provider

ACME = provider("acme")
assert ACME.infrastructure is not None
_Double: type[InfrastructureDouble] = ACME.infrastructure


class WithoutClusters:
    """The simulated cloud's test double, which does not count clusters."""

    def __init__(self, folder: Path) -> None:
        self._double = _Double(folder)

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._double.start(monkeypatch)

    def servers(self) -> list[str]:
        return self._double.servers()

    def clusters(self) -> list[str]:
        raise NotImplementedError("nothing is created for a cluster")


PROVIDER = replace(ACME, infrastructure=WithoutClusters)

_TESTS = conformance_tests(PROVIDER)
globals().update(
    {
        name: _TESTS[name]
        for name in ("TestInfraCluster", "TestDeletionOrder", "TestInfrastructureFaults")
    }
)
