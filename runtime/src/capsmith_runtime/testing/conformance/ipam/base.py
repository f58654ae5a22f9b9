"""Cases and environments for IPAM providers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from capsmith_runtime.ipam import addresses
from capsmith_runtime.ipam.controllers import IPAMControllers
from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.testing.conformance.base import Conformance, KindCase, kind_cases
from capsmith_runtime.testing.ipam.environment import IPAMEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest


class IPAMConformance(Conformance):
    """Base class for scenarios that run an IPAM provider's manager."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[PoolKind]]:
        """Return a case for each combination of kind and core version."""
        return kind_cases(provider, IPAMControllers, lambda group: group.kinds)

    @pytest.fixture
    def env(
        self, case: KindCase[PoolKind], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> IPAMEnvironment:
        """Return a management cluster with address pools."""
        env = IPAMEnvironment(case.provider, case.component, case.core_version, case.kind)
        if case.provider.address_system is not None:
            env.address_system = case.provider.address_system(tmp_path)
            env.address_system.start(monkeypatch)
        return env

    @pytest.fixture
    def no_grace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the manager delete addresses without claims immediately, without a grace period."""
        monkeypatch.setattr(addresses, "GRACE_SECONDS", 0.0)


class RangedIPAMConformance(IPAMConformance):
    """Base class for scenarios with pools that allocate from ranges in their spec."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[PoolKind]]:
        """Return only the cases of kinds whose pools have ranges."""
        return [case for case in super().cases(provider) if "ranges" in case.kind.features]
