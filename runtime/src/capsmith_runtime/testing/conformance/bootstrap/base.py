"""Cases and environments for bootstrap providers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from capsmith_runtime.bootstrap.controller import BootstrapConfigKind
from capsmith_runtime.bootstrap.controllers import BootstrapControllers
from capsmith_runtime.testing.bootstrap.environment import BootstrapEnvironment
from capsmith_runtime.testing.conformance.base import Conformance, KindCase, kind_cases
from capsmith_runtime.testing.provider import ProviderUnderTest


class BootstrapConformance(Conformance):
    """Base class for scenarios that run a bootstrap provider's manager."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[BootstrapConfigKind]]:
        """Return a case for each combination of kind and core version."""
        return kind_cases(provider, BootstrapControllers, lambda group: group.kinds)

    @pytest.fixture
    def env(self, case: KindCase[BootstrapConfigKind]) -> BootstrapEnvironment:
        """Return a management cluster with bootstrap configurations."""
        return BootstrapEnvironment(case.provider, case.component, case.core_version, case.kind)
