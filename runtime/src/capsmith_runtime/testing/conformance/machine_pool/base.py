"""Cases and environments for machine pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.machine_pool.controllers import MachinePoolKinds
from capsmith_runtime.infrastructure.machine_pool.kinds import MachinePoolMachinesKind
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.testing.conformance.base import Case
from capsmith_runtime.testing.conformance.infrastructure.base import WithInfrastructure
from capsmith_runtime.testing.machine_pool.environment import (
    MachinePoolEnvironment,
    PoolMachinesEnvironment,
)
from capsmith_runtime.testing.provider import InfrastructureDouble, ProviderUnderTest


@dataclass(frozen=True, kw_only=True)
class PoolCase(Case):
    """A test case for one kind of machine pool."""

    component: Component
    controllers: InfrastructureControllers
    kind: Kind[Any]

    @property
    def kinds(self) -> Sequence[str]:
        """Return the name of the pool's kind."""
        return (self.kind.resource.kind,)


@dataclass(frozen=True, kw_only=True)
class PoolMachinesCase(PoolCase):
    """A test case for one kind of machine pool with Machines."""

    kind: MachinePoolMachinesKind


class MachinePoolConformance(WithInfrastructure):
    """Base class for scenarios with pools that the author's reconciler manages as a whole."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[PoolCase]:
        """Return a case for each combination of kind and core version."""
        return [
            PoolCase(
                provider=provider,
                core_version=version,
                component=component,
                controllers=controllers,
                kind=kind,
            )
            for component, controllers in provider.groups_of(InfrastructureControllers)
            for version in provider.core_versions
            for kind in _kinds(controllers).whole
        ]

    @pytest.fixture
    def env(self, case: PoolCase, infrastructure: InfrastructureDouble) -> MachinePoolEnvironment:
        """Return a management cluster with a running cluster."""
        return MachinePoolEnvironment(
            case.provider,
            case.component,
            case.core_version,
            infrastructure=infrastructure,
            controllers=case.controllers,
            kind=case.kind,
            slow=self.slow,
        )


class PoolMachinesConformance(WithInfrastructure):
    """Base class for scenarios with pools whose machines have Machines."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[PoolMachinesCase]:
        """Return a case for each combination of kind and core version."""
        return [
            PoolMachinesCase(
                provider=provider,
                core_version=version,
                component=component,
                controllers=controllers,
                kind=kind,
            )
            for component, controllers in provider.groups_of(InfrastructureControllers)
            for version in provider.core_versions
            for kind in _kinds(controllers).with_machines
        ]

    @pytest.fixture
    def env(
        self, case: PoolMachinesCase, infrastructure: InfrastructureDouble
    ) -> PoolMachinesEnvironment:
        """Return a management cluster with a running cluster."""
        return PoolMachinesEnvironment(
            case.provider,
            case.component,
            case.core_version,
            infrastructure=infrastructure,
            controllers=case.controllers,
            kind=case.kind,
            slow=self.slow,
        )


def _kinds(controllers: InfrastructureControllers) -> MachinePoolKinds:
    return controllers.pools if isinstance(controllers.pools, MachinePoolKinds) else NO_POOLS


NO_POOLS = MachinePoolKinds()
