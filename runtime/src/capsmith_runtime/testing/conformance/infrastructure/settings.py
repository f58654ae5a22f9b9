"""Machines work with every value of the feature gates and flags that provider.yaml declares."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from capsmith_runtime.features import list_feature_gates
from capsmith_runtime.flags import list_flags
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest, list_clusters


@dataclass(frozen=True, kw_only=True)
class SettingsCase(InfrastructureCase):
    """A pair of kinds, and one setting with a non-default value."""

    setting: str
    value: object

    @property
    def kinds(self) -> Sequence[str]:
        """Return the kinds and the setting."""
        return (*super().kinds, f"{self.setting}={self.value}")

    @contextlib.contextmanager
    def set(self) -> Iterator[None]:
        """Return a context manager that gives the setting the case's value."""
        gates = {gate.name: gate for gate in list_feature_gates()}
        if self.setting in gates:
            with gates[self.setting].set_for_test(bool(self.value)):
                yield
        else:
            (flag,) = (each for each in list_flags() if each.name == self.setting)
            with flag.set_for_test(self.value):
                yield


class TestSettings(InfrastructureConformance):
    """One machine for each non-default value of each feature gate and flag."""

    needs_machines = False

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return a case for each value, with the first pair of kinds."""
        first = super().cases(provider)[:1]
        values: list[tuple[str, object]] = [
            (gate.name, not gate.default) for gate in list_feature_gates()
        ]
        values += [
            (flag.name, value) for flag in list_flags() for value in flag.list_other_values()
        ]
        return [
            SettingsCase(**{**vars(each), "setting": name, "value": value})
            for each in first
            for name, value in values
        ]

    @pytest.fixture(autouse=True)
    def setting(self, case: SettingsCase) -> Iterator[None]:
        """Set the case's setting during the test."""
        with case.set():
            yield

    @scenario
    async def test_a_machine_is_created_and_deleted(self, env: InfrastructureEnvironment) -> None:
        """A cluster and a machine are provisioned and deleted, and nothing is left.

        If the provider has no machines, only the cluster is.
        """
        cluster = await env.running_cluster()
        if env.has_machines:
            key = await env.running_machine(cluster)
            assert len(env.infrastructure.servers()) == 1
            env.api.remove(env.machine_kind.resource.kind, key)
            await env.eventually("the machine is gone", lambda: env.is_gone(env.machine_kind, key))
        assert env.infrastructure.servers() == []
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually("the cluster is gone", lambda: env.is_gone(env.cluster_kind, cluster))
        assert list_clusters(env.infrastructure) == []
