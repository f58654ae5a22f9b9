"""Cases and environments of kinds that implement Resource."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.resource.caches import ResourceKind
from capsmith_runtime.resource.controllers import ResourceControllers
from capsmith_runtime.testing.conformance.base import Case
from capsmith_runtime.testing.conformance.infrastructure.base import WithInfrastructure
from capsmith_runtime.testing.provider import InfrastructureDouble, ProviderUnderTest
from capsmith_runtime.testing.resource.environment import ResourceEnvironment


@dataclass(frozen=True, kw_only=True)
class ResourceCase(Case):
    """A kind that implements Resource."""

    component: Component
    controllers: InfrastructureControllers
    kind: ResourceKind

    @property
    def kinds(self) -> Sequence[str]:
        """The kind."""
        return (self.kind.resource.kind,)


class ResourceConformance(WithInfrastructure):
    """Scenarios with one running manager."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[ResourceCase]:
        """Return each kind with each version of core."""
        return [
            ResourceCase(
                provider=provider,
                core_version=version,
                component=component,
                controllers=controllers,
                kind=kind,
            )
            for component, controllers in provider.groups_of(InfrastructureControllers)
            for version in provider.core_versions
            for group in controllers.additional
            if isinstance(group, ResourceControllers)
            for kind in group.kinds
        ]

    @pytest.fixture
    def env(self, case: ResourceCase, infrastructure: InfrastructureDouble) -> ResourceEnvironment:
        """A management cluster with the kinds of the provider."""
        return ResourceEnvironment(
            case.provider,
            case.component,
            case.core_version,
            infrastructure=infrastructure,
            controllers=case.controllers,
            kind=case.kind,
        )
