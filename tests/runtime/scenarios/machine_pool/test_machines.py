"""The life of a pool with Machines: how its machines come and go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from capsmith_runtime.infrastructure.api import (
    InfraMachineDeleteScope,
    InfraMachineReconciler,
    InfraMachineScope,
    InfraMachineState,
)
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.machine_pool.base import (
    PoolMachinesCase,
    PoolMachinesConformance,
)
from capsmith_runtime.testing.core_machine_pool import VERSION
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.fake_core import GROUP
from capsmith_runtime.testing.machine_pool.environment import (
    PoolMachinesEnvironment,
    SlowApi,
    is_pooled,
)
from capsmith_runtime.testing.provider import InfrastructureDouble, replace_group
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("pools")


class ScriptedMachines(InfraMachineReconciler[Any]):
    """Create nothing, and record the arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None, str | None]] = []

    async def reconcile_normal(self, machine: InfraMachineScope[Any]) -> InfraMachineState:
        text = (await machine.bootstrap_data_async()).text
        self.calls.append((text, machine.machine.version, machine.failure_domain))
        return InfraMachineState(provider_id=f"scripted://{machine.external_id}")

    async def reconcile_delete(self, machine: InfraMachineDeleteScope[Any]) -> Any:
        raise AssertionError("no scenario deletes")


@run_with("pools")
class TestPoolMachineReconciliation(PoolMachinesConformance):
    """The arguments of a reconciler for a machine of a pool; a scripted reconciler records them."""

    @pytest.fixture
    def author(self) -> ScriptedMachines:
        """Return the reconciler of machines."""
        return ScriptedMachines()

    @pytest.fixture
    def env(
        self,
        case: PoolMachinesCase,
        infrastructure: InfrastructureDouble,
        author: ScriptedMachines,
    ) -> PoolMachinesEnvironment:
        """Return a management cluster with a running cluster and the scripted reconciler."""
        scripted = [
            replace(each, reconciler=cast(Any, lambda: author))
            for each in case.controllers.machines
        ]
        controllers = replace(case.controllers, machines=tuple(scripted))
        return PoolMachinesEnvironment(
            case.provider,
            replace_group(case.component, case.controllers, controllers),
            case.core_version,
            infrastructure=infrastructure,
            controllers=controllers,
            kind=case.kind,
        )

    @scenario
    async def test_a_machine_gets_the_settings_of_its_pool(
        self, env: PoolMachinesEnvironment, author: ScriptedMachines
    ) -> None:
        """Proves: IM-06, IM-21."""
        env.add_pool(1, failureDomains=["zone-7"])
        await env.eventually("it was asked", lambda: len(env.ids()) == 1)
        env.write_bootstrap("second")
        env.scale(2)
        await env.eventually("it was asked again", lambda: len(env.ids()) == 2)
        text, *settings = author.calls[0]
        assert "# first" in text.splitlines()
        assert settings == [VERSION, "zone-7"]
        assert "# second" in author.calls[-1][0].splitlines()


@run_with("pools", "two-contracts")
class TestPoolMachines(PoolMachinesConformance):
    """What the library does for the machines of a pool."""

    @scenario
    async def test_a_machine_waits_for_the_data_of_its_pool(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """No server is created before the MachinePool names bootstrap data.

        Proves: IM-19, IM-21.
        """
        env.machines.hold_machines = True
        env.add_pool(1)
        await env.eventually("it is made", lambda: len(env.infra_machines()) == 1)
        env.change_pool({"template": {"spec": {"bootstrap": {"dataSecretName": None}}}})
        await env.quiet()
        # A Machine of a pool names no Secret, or one without a name: that means nothing.
        env.machines.hold_machines = False
        expected = ("False", "WaitingForBootstrapData")
        await env.eventually(
            "it says so", lambda: condition(env.infra_machines()[0], "Ready") == expected
        )
        assert env.infrastructure.servers() == []
        env.name_bootstrap()
        await env.settled(1)

    @scenario
    async def test_machines_are_in_the_scope_of_their_pool(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """Machines have the watch filter's label from their pool, so one manager handles both.

        Proves: MP-20, MG-01.
        """
        await env.stop()
        env.add_pool(1)
        label = {"metadata": {"labels": {f"{GROUP}/watch-filter": "mine"}}}
        env.api.change(env.kind.resource.kind, env.pool, label)
        env.api.change(env.core.cluster_kind.resource.kind, env.cluster, label)
        env.start(watch_filter="another")
        await env.quiet()
        assert env.infra_machines() == []
        await env.stop()
        env.start(watch_filter="mine")
        await env.settled(1)
        (machine,) = env.infra_machines()
        assert label["metadata"]["labels"].items() <= machine["metadata"]["labels"].items()

    @scenario
    async def test_a_name_in_use_is_skipped(self, env: PoolMachinesEnvironment) -> None:
        """A pool skips the name of a machine that does not belong to it.

        Proves: SM-09.
        """
        kind = env.kind.machines
        env.api.add(
            {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "metadata": {"namespace": env.pool.namespace, "name": "p1-1"},
                "spec": env.manifests.sample_spec(kind.kind),
            }
        )
        env.add_pool(3)
        await env.settled(3)
        assert len([m for m in env.api.all(kind.kind) if is_pooled(m)]) == 3


@run_with("pools", "two-contracts")
class TestPoolMachinesWithSlowCaches(PoolMachinesConformance):
    """A pool with Machines whose caches lag behind."""

    slow = True

    @scenario
    async def test_a_pool_is_kept_until_caches_show_its_machines(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A deleted pool keeps its finalizer although caches do not show its machines yet.

        Proves: SM-08.
        """
        assert isinstance(env.api, SlowApi)
        env.api.lags[env.kind.machines.kind] = 1.0
        env.machines.hold_machines = True
        env.add_pool(2)
        await env.eventually("they are made", lambda: len(env.infra_machines()) == 2)
        await env.quiet()
        env.api.remove(env.kind.resource.kind, env.pool)
        await env.gone()

    @scenario
    async def test_a_machine_that_the_cache_lacks_is_deleted_with_its_node(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """Scaling down deletes a Machine, which drains its Node, although no cache shows it yet.

        Proves: MP-10.
        """
        env.machines.hold_machines = True
        env.add_pool(2)
        await env.eventually("they are made", lambda: len(env.infra_machines()) == 2)
        await env.quiet()
        assert isinstance(env.api, SlowApi)
        env.api.lags["Machine"] = 10.0
        env.machines.hold_machines = False
        await env.eventually("core has them", lambda: len(env.api.all("Machine")) == 2)
        env.scale(1)
        await env.eventually("one is gone", lambda: len(env.infra_machines()) == 1)
        deleted = [kind for verb, kind, _ in env.api.requests if verb == "delete"]
        assert deleted == ["Machine"]

    @scenario
    async def test_a_pool_is_deleted_with_all_its_machines(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A pool that is deleted while it grows leaves no machine behind.

        Proves: MP-15, SM-08.
        """
        env.add_pool(6)
        # In the middle of it: some machines are there, some are on their way.
        await env.eventually("it begins", lambda: len(env.infra_machines()) >= 2)
        env.api.change("MachinePool", env.machine_pool, {"metadata": {"finalizers": ["core/pool"]}})
        env.api.remove("MachinePool", env.machine_pool)
        env.api.remove(env.kind.resource.kind, env.pool)
        await env.gone()


@run_with("pools", "two-contracts")
class TestPoolMachineReplacement(PoolMachinesConformance):
    """Machines that core has not, or whose infrastructure is gone."""

    @scenario
    async def test_a_machine_without_infrastructure_is_removed(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A Machine without an infrastructure machine is deleted.

        Core may create a Machine for an infrastructure machine that is already gone.
        """
        env.add_pool(1)
        await env.settled(1)
        (machine,) = env.api.all("Machine")
        metadata = machine["metadata"]
        left = {name: metadata[name] for name in ("namespace", "labels", "ownerReferences")}
        left |= {"name": "p1-77", "finalizers": metadata["finalizers"]}
        env.api.add({**machine, "metadata": left, "status": {}})
        key = NamespacedName(env.pool.namespace, "p1-77")
        await env.eventually("it is gone", lambda: env.api.find("Machine", key) is None)
        await env.settled(1)

    @scenario
    async def test_a_machine_in_deletion_is_replaced_before_it_is_gone(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A user deletes only the infrastructure machine, and a finalizer of another owner stays.

        Proves: MP-10.
        """
        env.add_pool(2)
        await env.settled(2)
        kind, key = env.kind.machines.kind, NamespacedName(env.pool.namespace, min(env.names()))
        machine = env.api.find(kind, key)
        assert machine is not None
        kept = [*machine["metadata"]["finalizers"], "example.com/backup"]
        env.api.change(kind, key, {"metadata": {"finalizers": kept}})
        await env.quiet()
        env.api.remove(kind, key)
        await env.eventually("it is replaced", lambda: len(env.infra_machines()) == 3)
        env.api.change(kind, key, {"metadata": {"finalizers": None}})
        await env.settled(2)

    @scenario
    async def test_a_pool_shrinks_although_core_creates_no_machines(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A pool can shrink even if core creates no Machines for it.

        Core creates none while the workload cluster is unreachable.
        """
        env.machines.hold_machines = True
        env.add_pool(4)
        await env.eventually("they are made", lambda: len(env.infra_machines()) == 4)
        await env.quiet()
        assert env.infrastructure.servers() == []
        env.scale(1)
        await env.eventually("they are gone", lambda: len(env.infra_machines()) == 1)
        env.machines.hold_machines = False
        await env.settled(1)
