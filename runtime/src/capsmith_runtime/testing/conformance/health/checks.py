"""Health checks pass in a new manager, and no outage of the infrastructure restarts it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from capsmith_runtime.health.controllers import HealthCheckFactory
from capsmith_runtime.testing.conformance.base import Case, Conformance
from capsmith_runtime.testing.faults import Faults
from capsmith_runtime.testing.provider import ProviderUnderTest, SimulatesFaults

OUTAGES = {"error": Faults(error=1.0), "limit": Faults(limit=1.0)}


@dataclass(frozen=True, kw_only=True)
class HealthCase(Case):
    """A test case for the author's health checks in one component."""

    component: str
    factory: HealthCheckFactory

    @property
    def id(self) -> str:
        """Return the component's type, because the case does not depend on core."""
        return self.component


class _HealthConformance(Conformance):
    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[HealthCase]:
        """Return a case for each component, because each has a manager."""
        return [
            HealthCase(provider=provider, core_version="", component=name, factory=group)
            for name, component in provider.components.items()
            for group in component.groups
            if isinstance(group, HealthCheckFactory)
        ]

    @pytest.fixture
    def infrastructure(
        self, case: HealthCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> object:
        """Return a test double for the infrastructure, or None if the provider has none."""
        if case.provider.infrastructure is None:
            return None
        double = case.provider.infrastructure(tmp_path)
        double.start(monkeypatch)
        return double


class TestHealthChecks(_HealthConformance):
    """A manager that has just started is alive and ready."""

    def test_a_new_manager_is_alive_and_ready(
        self, case: HealthCase, infrastructure: object
    ) -> None:
        """Both checks succeed for a new, healthy manager.

        A liveness check is ignored until it has succeeded once.
        """
        checks = case.factory.checks()
        _call(checks.livez)
        _call(checks.readyz)


class TestLiveness(_HealthConformance):
    """Outages of the infrastructure; requires a test double with ``simulate``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[HealthCase]:
        """Return a case for each component, or none if the test double cannot simulate outages."""
        return super().cases(provider) if hasattr(provider.infrastructure, "simulate") else []

    @pytest.mark.parametrize("outage", OUTAGES)
    def test_an_outage_of_the_infrastructure_restarts_nothing(
        self, case: HealthCase, infrastructure: object, outage: str
    ) -> None:
        """The liveness check succeeds while every call to the infrastructure fails.

        A restart does not end an outage: managers would restart until it ends.
        """
        checks = case.factory.checks()
        _call(checks.livez)
        assert isinstance(infrastructure, SimulatesFaults)
        infrastructure.simulate(OUTAGES[outage])
        _call(checks.livez)


def _call(check: Callable[[], Awaitable[None] | None]) -> None:
    async def run() -> None:
        result: Any = check()
        if inspect.isawaitable(result):
            await result

    asyncio.run(run())
