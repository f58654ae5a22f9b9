"""Cases and environments of add-ons whose reconciler tests control."""

from __future__ import annotations

import pytest

from capsmith_runtime.addon.addons import AddonKind
from capsmith_runtime.testing.conformance.addon.base import AddonConformance
from capsmith_runtime.testing.conformance.base import KindCase
from tests.runtime.scenarios.addon.environment import ScriptedEnvironment


class ScriptedConformance(AddonConformance):
    """Scenarios with one running manager of scripted add-ons."""

    @pytest.fixture
    def env(
        self, case: KindCase[AddonKind], monkeypatch: pytest.MonkeyPatch
    ) -> ScriptedEnvironment:
        """Return a management cluster with add-ons."""
        return ScriptedEnvironment(
            case.provider, case.component, case.core_version, kind=case.kind, patch=monkeypatch
        )
