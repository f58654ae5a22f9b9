"""Lifecycle of a machine pool that the author's reconciler manages as a whole."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import pytest

from capsmith_runtime.contract.machine_pool_status import INSTANCE_STATUS
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.cloud_faults import (
    FAILURES,
    fails,
    simulates_faults,
)
from capsmith_runtime.testing.conformance.machine_pool.base import MachinePoolConformance, PoolCase
from capsmith_runtime.testing.core_machine_pool import VERSION
from capsmith_runtime.testing.faults import NONE, Faults
from capsmith_runtime.testing.machine_pool.environment import ELSEWHERE, MachinePoolEnvironment
from capsmith_runtime.testing.provider import (
    KnowsVersions,
    ProviderUnderTest,
    ScalesPools,
    SimulatesFaults,
    simulate,
)

NEXT_VERSION = "v1.35.0"
AUTOSCALER_STEPS = 100
STEP_SECONDS = 0.005
SLOW_CALL_SECONDS = 0.05
"""Maximum duration of a call, several steps, so that the autoscaler acts between two calls."""
TERMINAL_FAILURE_FIELDS = {"failureReason", "failureMessage"}


class TestMachinePool(MachinePoolConformance):
    """Lifecycle of a machine pool that the author's reconciler manages as a whole."""

    @scenario
    async def test_a_pool_grows_and_shrinks(self, env: MachinePoolEnvironment) -> None:
        """The number of servers follows ``replicas``, and provider ids are sorted and unique.

        Proves: MP-01, MP-03, MP-04, MP-06.
        """
        env.add_pool(0)
        await env.settled(0)
        for count in (3, 1, 2):
            before = env.ids()
            env.scale(count)
            await env.settled(count)
            assert env.ids() == sorted(set(env.ids()))
            kept = min(len(before), count)
            assert len(set(before) & set(env.ids())) == kept
        status = env.infra_pool()["status"]
        assert len(status.get("instances", env.ids())) == 2
        assert not TERMINAL_FAILURE_FIELDS & status.keys()

    @scenario
    async def test_both_flags_have_the_same_value(self, env: MachinePoolEnvironment) -> None:
        """``ready`` and ``initialization.provisioned`` have the same value.

        Proves: MP-01, MP-02, MP-14.
        """
        env.add_pool(1)
        await env.settled(1)
        obj = env.infra_pool()
        new = obj["status"].get("initialization", {"provisioned": True})
        assert obj["status"]["ready"] is new["provisioned"] is True
        assert env.shows(obj, "Ready", "True")

    @scenario
    async def test_a_pool_waits_for_bootstrap_data(self, env: MachinePoolEnvironment) -> None:
        """No server is created before the bootstrap data exist; Ready says what is missing.

        Proves: IM-19, IM-20.
        """
        env.add_pool(2, bootstrap=False)
        expected = ("False", "WaitingForBootstrapData")
        await env.eventually("it says so", lambda: env.shows(env.infra_pool(), "Ready", *expected))
        assert env.infrastructure.servers() == []
        # A CRD may have the default false.
        assert not env.infra_pool().get("status", {}).get("ready")

        env.write_bootstrap("late")
        env.name_bootstrap()
        await env.settled(2)

    @scenario
    async def test_another_reconcile_changes_nothing(self, env: MachinePoolEnvironment) -> None:
        """After a restart, a manager changes neither a pool that is up to date nor its servers.

        Proves: SM-09.
        """
        env.add_pool(3)
        await env.settled(3)
        before = env.infra_pool(), env.infrastructure.servers()
        for _ in range(3):
            await env.restart()
            await env.quiet()
        assert (env.infra_pool(), env.infrastructure.servers()) == before

    @scenario
    async def test_a_paused_pool_is_left_alone(self, env: MachinePoolEnvironment) -> None:
        """While its Cluster is paused, a pool is neither scaled nor deleted.

        Proves: MP-20, SM-01.
        """
        env.add_pool(1)
        await env.settled(1)
        env.core.pause(env.cluster)
        await env.quiet()
        env.scale(3)
        await env.quiet()
        assert len(env.infrastructure.servers()) == 1

        env.api.remove(env.kind.resource.kind, env.pool)
        await env.quiet()
        assert len(env.infrastructure.servers()) == 1
        env.core.pause(env.cluster, False)
        await _gone(env)

    @scenario
    async def test_a_pool_is_deleted_after_its_owners(self, env: MachinePoolEnvironment) -> None:
        """A pool can be deleted even if its MachinePool and Cluster no longer exist.

        Proves: MP-15, SM-08.
        """
        env.add_pool(3)
        await env.settled(3)
        env.api.remove("MachinePool", env.machine_pool)
        env.api.remove("Cluster", env.cluster)
        env.api.remove(env.kind.resource.kind, env.pool)
        await _gone(env)


async def _gone(env: MachinePoolEnvironment) -> None:
    key: NamespacedName = env.pool
    kind = env.kind.resource.kind
    await env.eventually("it is gone", lambda: env.api.find(kind, key) is None)
    assert env.infrastructure.servers() == []


class TestMachinePoolInstances(MachinePoolConformance):
    """Status of each machine in a pool; requires ``instanceStatus`` in provider.yaml."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[PoolCase]:
        """Return the cases for the kinds with ``instanceStatus``, whose machines have a status."""
        return [case for case in super().cases(provider) if INSTANCE_STATUS in case.kind.features]

    @scenario
    async def test_a_machine_keeps_its_own_status(self, env: MachinePoolEnvironment) -> None:
        """A machine that stays in the pool keeps its status while others come and go.

        For each machine, report what belongs to its provider id, not to its position in the list.

        Proves: MP-06.
        """
        env.add_pool(3)
        await env.settled(3)
        before = env.instances()
        for count in (1, 3):
            env.scale(count)
            await env.settled(count)
            found = env.instances()
            assert set(found) == set(env.ids()), "status.instances lists other machines"
            kept = before.keys() & found.keys()
            assert kept, "no machine was kept"
            assert {each: found[each] for each in kept} == {each: before[each] for each in kept}


class TestMachinePoolUpgrade(MachinePoolConformance):
    """Kubernetes upgrades of pools; requires a test double with the method ``versions``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[PoolCase]:
        """Return a case for each kind and core version, or none without ``versions``."""
        return super().cases(provider) if hasattr(provider.infrastructure, "versions") else []

    @scenario
    async def test_a_new_version_reaches_all_servers(self, env: MachinePoolEnvironment) -> None:
        """All servers get the new Kubernetes version; no machine is reported to have it before.

        Core does not upgrade the machines of a pool, and the status of a Node cannot be seen from
        here: only the infrastructure knows the version of a server.

        Proves: MP-03, MP-06, TP-10.
        """
        double = env.infrastructure
        assert isinstance(double, KnowsVersions)
        env.add_pool(3)
        await env.settled(3)
        assert list(double.versions().values()) == [VERSION] * 3

        env.upgrade(NEXT_VERSION)
        await env.eventually("all are upgraded", lambda: _is_upgraded(env, double))
        await env.settled(3)
        before = env.infra_pool(), env.infrastructure.servers()
        await env.restart()
        await env.quiet()
        assert (env.infra_pool(), env.infrastructure.servers()) == before


def _is_upgraded(env: MachinePoolEnvironment, double: KnowsVersions) -> bool:
    """Return whether 3 servers run the new version, and fail if more machines are said to."""
    reported = [entry.get("version") for entry in env.list_instances()]
    # Read after the status: servers may be replaced between the two.
    count = list(double.versions().values()).count(NEXT_VERSION)
    assert reported.count(NEXT_VERSION) <= count, "reported too early"
    return len(env.infrastructure.servers()) == count == 3


class TestMachinePoolAutoscaler(MachinePoolConformance):
    """Pools with an autoscaler of their own; requires a test double with ``scale_pools``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[PoolCase]:
        """Return a case for each kind and core version, or none without ``scale_pools``."""
        return super().cases(provider) if hasattr(provider.infrastructure, "scale_pools") else []

    @scenario
    async def test_a_pool_follows_its_own_autoscaler(self, env: MachinePoolEnvironment) -> None:
        """While another autoscaler sets the size, ``replicas`` follows the pool.

        Proves: MP-17.
        """
        double = env.infrastructure
        assert isinstance(double, ScalesPools)
        env.add_pool(3)
        await env.settled(3)
        env.note({ELSEWHERE: "an-autoscaler"})
        for size in (5, 2):
            double.scale_pools(size)
            await env.settled(size)
            assert env.replicas() == size
        env.scale(4)
        await env.eventually("core follows again", lambda: env.replicas() == 2)
        await env.settled(2)
        env.note({ELSEWHERE: "false"})
        env.scale(3)
        await env.settled(3)

    @scenario
    async def test_a_reconcile_does_not_overrule_the_autoscaler(
        self, env: MachinePoolEnvironment
    ) -> None:
        """A size that the autoscaler sets during a reconcile stays.

        A reconciler that writes back a size that it has read undoes the autoscaler's change.

        Proves: MP-17.
        """
        double = env.infrastructure
        assert isinstance(double, ScalesPools)
        env.add_pool(2)
        await env.settled(2)
        env.note({ELSEWHERE: "an-autoscaler"})
        _slow_down(double)
        for step in range(AUTOSCALER_STEPS):
            size = 1 + step % 7
            double.scale_pools(size)
            # Core writes ``replicas``, which starts another reconcile.
            env.scale(9 + step)
            await asyncio.sleep(STEP_SECONDS)
            assert double.pool_sizes() == [size], "a reconcile has changed the size"
        await env.settled(size)


def _slow_down(double: object) -> None:
    """Make the calls of reconcilers take some time if the test double can simulate that."""
    if isinstance(double, SimulatesFaults):
        with contextlib.suppress(NotImplementedError):
            double.simulate(Faults(slow=SLOW_CALL_SECONDS))


class TestMachinePoolCalls(MachinePoolConformance):
    """Failing calls for pools; requires a test double with the method ``simulate``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[PoolCase]:
        """Return a case for each kind and core version, or none without ``simulate``."""
        return super().cases(provider) if simulates_faults(provider) else []

    @pytest.mark.parametrize("failure", FAILURES)
    @scenario
    async def test_a_failing_pool_is_reported_and_repeated(
        self, env: MachinePoolEnvironment, failure: str
    ) -> None:
        """A failed call is reported and retried, and no server is lost or duplicated.

        Proves: SM-09.
        """
        simulate(env.infrastructure, FAILURES[failure])
        env.add_pool(3)
        await fails(env, env.infra_pool)
        simulate(env.infrastructure, NONE)
        await env.settled(3)
        ids = env.ids()

        simulate(env.infrastructure, FAILURES[failure])
        env.scale(5)
        await fails(env, env.infra_pool)
        simulate(env.infrastructure, NONE)
        await env.settled(5)
        assert set(ids) < set(env.ids())

        simulate(env.infrastructure, FAILURES[failure])
        env.api.remove(env.kind.resource.kind, env.pool)
        await fails(env, env.infra_pool)
        simulate(env.infrastructure, NONE)
        await env.eventually("it is gone", lambda: _is_gone(env))
        assert env.infrastructure.servers() == []


def _is_gone(env: MachinePoolEnvironment) -> bool:
    return env.api.find(env.kind.resource.kind, env.pool) is None
