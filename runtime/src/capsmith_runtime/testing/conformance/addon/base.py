"""Cases and environments for add-on providers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from capsmith_runtime.addon.addons import AddonKind
from capsmith_runtime.addon.controllers import AddonControllers
from capsmith_runtime.testing.addon.environment import AddonDouble, AddonEnvironment
from capsmith_runtime.testing.conformance.base import Conformance, KindCase, kind_cases
from capsmith_runtime.testing.provider import ProviderUnderTest


class AddonConformance(Conformance):
    """Base class for scenarios that run an add-on provider's manager."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[AddonKind]]:
        """Return a case for each combination of kind and core version."""
        return kind_cases(provider, AddonControllers, lambda group: group.kinds)

    @pytest.fixture
    def double(
        self, case: KindCase[AddonKind], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> AddonDouble:
        """Return a new test double of what add-ons install, which reconcilers use."""
        assert case.provider.addons is not None, "ProviderUnderTest needs addons="
        double = case.provider.addons(tmp_path)
        assert isinstance(double, AddonDouble), f"{type(double).__name__} needs installed()"
        double.start(monkeypatch)
        return double

    @pytest.fixture
    def env(
        self,
        case: KindCase[AddonKind],
        double: AddonDouble,
        monkeypatch: pytest.MonkeyPatch,
    ) -> AddonEnvironment:
        """Return a management cluster with add-ons, and workload clusters in memory."""
        return AddonEnvironment(
            case.provider,
            case.component,
            case.core_version,
            kind=case.kind,
            double=double,
            patch=monkeypatch,
        )
