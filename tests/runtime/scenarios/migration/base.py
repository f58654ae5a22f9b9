"""Cases and environments of the migration of stored objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.migration import controllers
from capsmith_runtime.testing.conformance.base import Case, Conformance
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.runtime.scenarios.migration.environment import MigrationEnvironment, names_of


@dataclass(frozen=True, kw_only=True)
class ComponentCase(Case):
    """One component whose objects may be stored in several versions."""

    type: str
    component: Component

    @property
    def id(self) -> str:
        """Return the type of the component."""
        return self.type


class MigrationConformance(Conformance):
    """Scenarios with objects that are stored in an older version; the scenario starts a manager."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[ComponentCase]:
        """Return each component that migrates objects."""
        return [
            ComponentCase(
                provider=provider,
                core_version=provider.manifests.contract,
                type=name,
                component=component,
            )
            for name, component in provider.components.items()
            if names_of(component)
        ]

    @pytest.fixture
    def env(self, case: ComponentCase, monkeypatch: pytest.MonkeyPatch) -> MigrationEnvironment:
        """Return a management cluster without a manager, in which migrations do not wait."""
        monkeypatch.setattr(controllers, "SETTLE_SECONDS", 0.02)
        monkeypatch.setattr(controllers, "PAUSE_SECONDS", 0.001)
        monkeypatch.setattr(controllers, "RETRY_SECONDS", (0.02, 0.1))
        return MigrationEnvironment(case.provider, case.component)
