"""The life of a machine pool that the author's reconciler manages as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolDeleteScope,
    InfraMachinePoolReconciler,
    InfraMachinePoolScope,
    InfraMachinePoolState,
    Instance,
)
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.machine_pool.base import MachinePoolConformance, PoolCase
from capsmith_runtime.testing.conformance.machine_pool.pools import TERMINAL_FAILURE_FIELDS
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.machine_pool.environment import MachinePoolEnvironment
from capsmith_runtime.testing.provider import InfrastructureDouble
from tests.runtime.scenarios.machine_pool.environment import build_environment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("pools")
ELSEWHERE = "cluster.x-k8s.io/replicas-managed-by"


class ScriptedPools(InfraMachinePoolReconciler[Any]):
    """Report the number of instances that the scenario sets; fail if it sets none."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.data: list[str] = []

    async def reconcile_normal(self, pool: InfraMachinePoolScope[Any]) -> InfraMachinePoolState:
        self.data.append((await pool.bootstrap_data_async()).text)
        count = self.answers[-1] if pool.replicas_managed_elsewhere else self.answers[0]
        instances = [Instance(provider_id=f"scripted://{number:02}") for number in range(count)]
        return InfraMachinePoolState(instances=instances[::-1])

    async def reconcile_delete(self, pool: InfraMachinePoolDeleteScope[Any]) -> Any:
        raise AssertionError("no scenario deletes")

    def has_read(self, text: str) -> bool:
        """Return whether the last call has read bootstrap data with a text."""
        return bool(self.data) and f"# {text}" in self.data[-1].splitlines()


@run_with("pools", "two-contracts")
class TestMachinePoolReconciliation(MachinePoolConformance):
    """The effect of a reconciler's results; a scripted reconciler returns them."""

    @pytest.fixture
    def author(self) -> ScriptedPools:
        """Return the reconciler, whose results a test sets."""
        return ScriptedPools()

    @pytest.fixture
    def env(
        self, case: PoolCase, infrastructure: InfrastructureDouble, author: ScriptedPools
    ) -> MachinePoolEnvironment:
        """Return a management cluster with a running cluster and the scripted reconciler."""
        return build_environment(case, infrastructure, author)

    @scenario
    async def test_the_number_may_be_managed_elsewhere(
        self, env: MachinePoolEnvironment, author: ScriptedPools
    ) -> None:
        """Proves: MP-17."""
        author.answers = [3, 5]
        env.add_pool(3)
        await env.eventually("the first answer", lambda: len(env.ids()) == 3)
        env.note({ELSEWHERE: "an-autoscaler"})
        await env.eventually("core follows", lambda: env.replicas() == 5)
        env.note({ELSEWHERE: "false"})
        author.answers = [4]
        env.scale(4)
        await env.eventually("the infrastructure follows", lambda: len(env.ids()) == 4)
        author.answers = [6]
        env.write_bootstrap("a look more")
        await env.eventually("another answer", lambda: len(env.ids()) == 6)
        assert env.replicas() == 4

    @scenario
    async def test_new_bootstrap_data_trigger_a_reconcile(
        self, env: MachinePoolEnvironment, author: ScriptedPools
    ) -> None:
        """Proves: MP-19."""
        author.answers = [1]
        env.add_pool(1)
        await env.eventually("it was read", lambda: author.has_read("first"))
        await env.quiet()
        env.write_bootstrap("second")
        await env.eventually("it was read again", lambda: author.has_read("second"))

    @scenario
    async def test_failures_are_reported_by_the_condition_only(
        self, env: MachinePoolEnvironment
    ) -> None:
        """Proves: MP-13."""
        env.add_pool(1)
        expected = ("False", "InternalError")
        await env.eventually("it says so", lambda: condition(env.infra_pool(), "Ready") == expected)
        assert not TERMINAL_FAILURE_FIELDS & env.infra_pool()["status"].keys()
