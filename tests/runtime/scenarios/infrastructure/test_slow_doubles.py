"""Faults of an infrastructure whose calls take longer than those of a simulation in memory."""

from __future__ import annotations

import importlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from capsmith_runtime.testing.conformance.infrastructure import cloud_faults
from capsmith_runtime.testing.conformance.infrastructure.base import InfrastructureConformance
from tests.runtime.scenarios.providers import provider

ACME = provider("acme")
_Double: Any = ACME.infrastructure
_Cloud = importlib.import_module(_Double.__module__).SimulatedCloud
CALL_SECONDS = 0.3
"""More than a call may take in a scenario about calls that hang, if all calls are fast."""


class SlowCalls:
    """The simulated cloud's test double, with searches that take as long as an HTTP client's."""

    def __init__(self, folder: Path) -> None:
        self._double = _Double(folder)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._double, name)

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        find = _Cloud.find_server

        def find_slowly(*args: object) -> object:
            time.sleep(CALL_SECONDS)
            return find(*args)

        monkeypatch.setattr(_Cloud, "find_server", find_slowly)
        self._double.start(monkeypatch)

    def simulate(self, faults: object) -> None:
        self._double.simulate(faults)


PROVIDER = replace(ACME, infrastructure=SlowCalls)


class TestSlowCalls(InfrastructureConformance):
    """Only calls that hang are ended, not those that are slow."""

    test_a_call_that_hangs_is_reported_and_repeated = (
        cloud_faults.TestInfrastructureCalls.test_a_call_that_hangs_is_reported_and_repeated
    )
