"""Cases and environments for control plane providers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from capsmith_runtime.controlplane.controllers import ControlPlaneControllers
from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.controlplane.managed.controller import ManagedControlPlaneKind
from capsmith_runtime.controlplane.managed.controllers import ManagedControlPlaneControllers
from capsmith_runtime.controlplane.secrets.cluster_secrets import ClusterAccess
from capsmith_runtime.testing.adjustments import find_members_double
from capsmith_runtime.testing.conformance.base import Case, Conformance, KindCase, kind_cases
from capsmith_runtime.testing.controlplane.environment import ControlPlaneEnvironment
from capsmith_runtime.testing.controlplane.managed_environment import ManagedControlPlaneEnvironment
from capsmith_runtime.testing.provider import HostingDouble, ProviderUnderTest
from capsmith_runtime.workload.client import ClusterUnreachableError

Override = Callable[..., None]


class ControlPlaneConformance(Conformance):
    """Base class for scenarios that run a control plane provider's manager."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[ControlPlaneKind]]:
        """Return a case for each combination of kind and core version."""
        return kind_cases(provider, ControlPlaneControllers, lambda group: group.kinds)

    @pytest.fixture
    def env(
        self,
        case: KindCase[ControlPlaneKind],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> ControlPlaneEnvironment:
        """Return a management cluster with a control plane that consists of Machines.

        The workload cluster's API server responds immediately, and has a Node for each Machine.
        """
        env = ControlPlaneEnvironment(case.provider, case.component, case.core_version, case.kind)

        async def workload(self: ClusterAccess, cluster: object) -> object:
            if env.is_unreachable:
                raise ClusterUnreachableError("the API server does not respond", is_of_runtime=True)
            return env.workload

        monkeypatch.setattr(ClusterAccess, "workload", workload)
        double = find_members_double()
        if double is not None:
            env.machines.members = double(tmp_path)
            env.machines.members.start(monkeypatch)
        return env

    @pytest.fixture
    def override(self, monkeypatch: pytest.MonkeyPatch) -> Override:
        """Return a function that overrides methods of the reconciler class until the test ends."""

        def put(env: ControlPlaneEnvironment, **methods: Any) -> None:
            for name, method in methods.items():
                monkeypatch.setattr(env.kind.reconciler, name, method)

        return put


class ManagedControlPlaneConformance(Conformance):
    """Base class for scenarios that run a manager for managed control planes."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[ManagedControlPlaneKind]]:
        """Return a case for each combination of kind and core version."""
        return kind_cases(provider, ManagedControlPlaneControllers, lambda group: group.kinds)

    @pytest.fixture
    def hosting(self, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostingDouble:
        """Return a test double for the service that runs the control planes."""
        assert case.provider.hosting is not None, "PROVIDER has no hosting"
        double = case.provider.hosting(tmp_path)
        double.start(monkeypatch)
        return double

    @pytest.fixture
    def env(
        self, case: KindCase[ManagedControlPlaneKind], hosting: HostingDouble
    ) -> ManagedControlPlaneEnvironment:
        """Return a management cluster with a managed control plane."""
        return ManagedControlPlaneEnvironment(
            case.provider, case.component, case.core_version, kind=case.kind, hosting=hosting
        )
