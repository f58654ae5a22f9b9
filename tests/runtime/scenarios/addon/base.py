"""Cases and environments of add-on providers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from capsmith_runtime.addon.addons import AddonKind
from capsmith_runtime.addon.controllers import AddonControllers
from capsmith_runtime.testing.conformance.base import Conformance, KindCase, kind_cases
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.runtime.scenarios.addon.environment import AddonEnvironment


class AddonConformance(Conformance):
    """Scenarios with one running manager of add-on providers."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[AddonKind]]:
        """Return each kind with each version of core."""
        return kind_cases(provider, AddonControllers, lambda group: group.kinds)

    @pytest.fixture
    def env(self, case: KindCase[AddonKind], monkeypatch: pytest.MonkeyPatch) -> AddonEnvironment:
        """Return a management cluster with add-ons."""
        return AddonEnvironment(
            case.provider,
            case.component,
            case.core_version,
            kind=case.kind,
            patch=monkeypatch,
        )
