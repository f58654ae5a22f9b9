"""Pools whose machines webhooks, policies and users change: nothing is replaced for that."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.machine_pool import machines
from capsmith_runtime.testing.conformance.machine_pool.base import (
    PoolMachinesCase,
    PoolMachinesConformance,
)
from capsmith_runtime.testing.machine_pool.environment import PoolMachinesEnvironment
from capsmith_runtime.testing.provider import InfrastructureDouble
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("pools")


class WithPolicy(PoolMachinesConformance):
    """Scenarios with a policy that changes one field of each new machine."""

    @pytest.fixture
    def env(
        self, case: PoolMachinesCase, infrastructure: InfrastructureDouble
    ) -> PoolMachinesEnvironment:
        """Return a management cluster with a running cluster and with the policy."""
        env = PoolMachinesEnvironment(
            case.provider,
            case.component,
            case.core_version,
            infrastructure=infrastructure,
            controllers=case.controllers,
            kind=case.kind,
            slow=self.slow,
        )
        env.change_new_machines({case.kind.machine_fields[-1]: 33})
        return env


@run_with("pools")
class TestPoolMachinesWithPolicy(WithPolicy, machines.TestPoolMachines):
    """The life of a pool."""


@run_with("pools")
class TestPoolMachinesWithSlowCachesAndPolicy(WithPolicy, machines.TestPoolMachinesWithSlowCaches):
    """The life of a pool, with caches that lag behind."""


@run_with("pools")
class TestPoolMachineReplacementWithPolicy(WithPolicy, machines.TestPoolMachineReplacement):
    """Which machines are replaced."""


@run_with("pools")
class TestChangedMachines(PoolMachinesConformance):
    """Machines that a webhook and then a user changes."""

    @scenario
    async def test_machines_that_others_change_are_kept(self, env: PoolMachinesEnvironment) -> None:
        """Webhooks and policies that change new machines, and edits of one, replace no machine."""
        env.add_pool(3)
        found = env.other_field()
        assert found is not None
        name, value = found
        env.change_new_machines({name: value})
        await env.settled(3)
        assert {machine["spec"].get(name) for machine in env.infra_machines()} == {value}
        edited = min(env.names())
        env.edit_machine(edited, {name: env.infra_pool()["spec"][name]})
        await env.settled(3)
        env.edit_machine(edited, {name: value})
        await env.settled(3)
        assert len(env.created()) == 3


@run_with("pools")
class TestAdoption(PoolMachinesConformance):
    """Machines of an earlier version of the runtime, which have no record of their pool's spec."""

    @scenario
    async def test_machines_without_record_get_one(self, env: PoolMachinesEnvironment) -> None:
        env.add_pool(3)
        await env.settled(3)
        annotation = env.kind.spec_annotation
        before = _records(env)
        assert None not in before.values()
        field = env.kind.machine_fields[-1]
        env.api.change(env.kind.resource.kind, env.pool, {"spec": {field: 40}})
        await env.settled(3)
        created = len(env.created())
        await env.stop()
        for name in env.names():
            key = NamespacedName(env.pool.namespace, name)
            body: dict[str, Any] = {"metadata": {"annotations": {annotation: None}}}
            env.api.change(env.kind.machines.kind, key, body)
        env.start()
        await env.eventually("they are recorded", lambda: None not in _records(env).values())
        await env.settled(3)
        assert len(env.created()) == created

        # From now on a change by others differs from one of the pool.
        env.edit_machine(min(env.names()), {field: 50})
        await env.settled(3)
        assert len(env.created()) == created
        env.api.change(env.kind.resource.kind, env.pool, {"spec": {field: 60}})
        await env.eventually("all are new", lambda: len(env.created()) == created + 3)
        await env.settled(3)


def _records(env: PoolMachinesEnvironment) -> dict[str, str | None]:
    found = (each["metadata"] for each in env.infra_machines())
    annotation = env.kind.spec_annotation
    return {each["name"]: (each.get("annotations") or {}).get(annotation) for each in found}
