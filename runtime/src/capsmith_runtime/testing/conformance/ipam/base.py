"""Cases and environments of IPAM providers."""

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
    """Scenarios with one running manager of IPAM providers."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[PoolKind]]:
        """Return each kind with each version of core."""
        return kind_cases(provider, IPAMControllers, lambda group: group.kinds)

    @pytest.fixture
    def env(
        self, case: KindCase[PoolKind], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> IPAMEnvironment:
        """A management cluster with pools of addresses."""
        if case.provider.address_system is not None:
            case.provider.address_system(tmp_path).start(monkeypatch)
        return IPAMEnvironment(case.provider, case.component, case.core_version, case.kind)

    @pytest.fixture
    def no_grace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Delete addresses without claims at once."""
        monkeypatch.setattr(addresses, "GRACE_SECONDS", 0.0)


class RangedIPAMConformance(IPAMConformance):
    """Scenarios with pools that name their addresses themselves."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[PoolKind]]:
        """Return only kinds with ranges."""
        return [case for case in super().cases(provider) if "ranges" in case.kind.features]
