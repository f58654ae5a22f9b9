"""Cases and environments for kinds that implement Remediation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.remediation.caches import RemediationKind
from capsmith_runtime.remediation.controllers import RemediationControllers
from capsmith_runtime.testing.conformance.base import Case
from capsmith_runtime.testing.conformance.infrastructure.base import WithInfrastructure
from capsmith_runtime.testing.provider import InfrastructureDouble, ProviderUnderTest
from capsmith_runtime.testing.remediation.environment import RemediationEnvironment


@dataclass(frozen=True, kw_only=True)
class RemediationCase(Case):
    """A conformance test's case for one kind that implements Remediation."""

    component: Component
    controllers: InfrastructureControllers
    kind: RemediationKind

    @property
    def kinds(self) -> Sequence[str]:
        """Return the name of the kind, as the only item."""
        return (self.kind.resource.kind,)


class RemediationConformance(WithInfrastructure):
    """Base class for scenarios that run a manager with kinds that implement Remediation."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[RemediationCase]:
        """Return a case for each combination of kind and core version."""
        return [
            RemediationCase(
                provider=provider,
                core_version=version,
                component=component,
                controllers=controllers,
                kind=kind,
            )
            for component, controllers, kind in _list_kinds(provider)
            for version in provider.core_versions
        ]

    @pytest.fixture
    def env(
        self, case: RemediationCase, infrastructure: InfrastructureDouble
    ) -> RemediationEnvironment:
        """Return a management cluster with the provider's kinds."""
        return RemediationEnvironment(
            case.provider,
            case.component,
            case.core_version,
            infrastructure=infrastructure,
            controllers=case.controllers,
            kind=case.kind,
        )


def _list_kinds(
    provider: ProviderUnderTest,
) -> Iterator[tuple[Component, InfrastructureControllers, RemediationKind]]:
    for component, controllers in provider.groups_of(InfrastructureControllers):
        for group in controllers.additional:
            if isinstance(group, RemediationControllers):
                yield from ((component, controllers, kind) for kind in group.kinds)
