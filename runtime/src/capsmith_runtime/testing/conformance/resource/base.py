"""Cases and environments for kinds that implement Resource."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.resource.caches import ResourceKind
from capsmith_runtime.resource.controllers import ResourceControllers, StandaloneResourceControllers
from capsmith_runtime.testing.conformance.base import Case
from capsmith_runtime.testing.conformance.infrastructure.base import WithInfrastructure
from capsmith_runtime.testing.provider import InfrastructureDouble, ProviderUnderTest
from capsmith_runtime.testing.resource.environment import (
    BaseResourceEnvironment,
    ResourceEnvironment,
    StandaloneResourceEnvironment,
)


@dataclass(frozen=True, kw_only=True)
class ResourceCase(Case):
    """A test case for one kind that implements Resource."""

    component: Component
    controllers: InfrastructureControllers | None
    """The infrastructure's controllers, or None if the provider has no infrastructure."""
    kind: ResourceKind

    @property
    def kinds(self) -> Sequence[str]:
        """Return the name of the kind, as the only item."""
        return (self.kind.resource.kind,)


class ResourceConformance(WithInfrastructure):
    """Base class for scenarios that run a manager with kinds that implement Resource."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[ResourceCase]:
        """Return a case for each combination of kind and core version."""
        return [
            ResourceCase(
                provider=provider,
                core_version=version,
                component=component,
                controllers=controllers,
                kind=kind,
            )
            for component, controllers, kind in _kinds(provider)
            for version in provider.core_versions
        ]

    @pytest.fixture
    def env(
        self, case: ResourceCase, infrastructure: InfrastructureDouble
    ) -> BaseResourceEnvironment:
        """Return a management cluster with the provider's kinds."""
        if case.controllers is None:
            return StandaloneResourceEnvironment(
                case.provider,
                case.component,
                case.core_version,
                infrastructure=infrastructure,
                kind=case.kind,
            )
        return ResourceEnvironment(
            case.provider,
            case.component,
            case.core_version,
            infrastructure=infrastructure,
            controllers=case.controllers,
            kind=case.kind,
        )


def _kinds(
    provider: ProviderUnderTest,
) -> Iterator[tuple[Component, InfrastructureControllers | None, ResourceKind]]:
    for component, controllers in provider.groups_of(InfrastructureControllers):
        for group in controllers.additional:
            if isinstance(group, ResourceControllers):
                yield from ((component, controllers, kind) for kind in group.kinds)
    for component, standalone in provider.groups_of(StandaloneResourceControllers):
        yield from ((component, None, kind) for kind in standalone.kinds)
