"""Order of deletions: whatever is deleted first, machines can still delete their servers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from capsmith_runtime.infrastructure import (
    Deleted,
    InfraClusterDeleteScope,
    InfraMachineState,
    Waiting,
)
from capsmith_runtime.kube.client import NamespacedName, key_of
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import InfrastructureCase
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    MachineScope,
    ScriptedClusterReconciler,
    ScriptedMachines,
    ScriptFactory,
    ready_condition,
)

PROVIDER = scripted_provider.PROVIDER
WATCH_FILTER = "cluster.x-k8s.io/watch-filter"
WAITING_FOR_MACHINES = ("False", "WaitingForMachineDeletion")


def _delete_with_credentials(machine: MachineScope) -> Deleted:
    assert machine.credentials["token"]
    return Deleted()


class TestScriptedDeletions(ScriptedMachines):
    """An infrastructure cluster goes last, and a machine can be deleted without it."""

    @classmethod
    def cases(cls, provider: Any) -> Sequence[InfrastructureCase]:
        return super().cases(provider)[:1]

    @scenario
    async def test_an_infrastructure_cluster_waits_for_its_last_machine(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        delete: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        calls: list[str] = []

        def reconcile_delete(self: object, cluster: InfraClusterDeleteScope[Any]) -> Deleted:
            calls.append(cluster.name)
            return Deleted()

        monkeypatch.setattr(ScriptedClusterReconciler, "reconcile_delete", reconcile_delete)
        delete(_delete_with_credentials)
        normal(lambda machine: InfraMachineState(provider_id=f"acme://{machine.name}"))
        cluster = await env.running_cluster()
        machines = [await env.running_machine(cluster, name) for name in ("m1", "m2")]
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually(
            "it waits",
            lambda: condition(env.core.infra_cluster(cluster), "Ready") == WAITING_FOR_MACHINES,
        )
        _delete_machine(env, machines[0])
        await env.eventually("m1 is gone", lambda: env.is_gone(env.machine_kind, machines[0]))
        await env.quiet()
        assert not calls
        _delete_machine(env, machines[1])
        # Quiet after less than a second: an event has led to the deletion, and no period.
        await env.quiet()
        assert env.is_gone(env.machine_kind, machines[1])
        assert env.is_gone(env.cluster_kind, cluster)
        assert calls == ["c1"]

    @scenario
    async def test_a_machine_without_finalizer_has_nothing_to_wait_for(
        self, env: InfrastructureEnvironment
    ) -> None:
        cluster = await env.running_cluster()
        machine = env.core.add_machine(cluster)
        await env.stop()
        metadata = {"ownerReferences": None, "finalizers": None}
        env.api.change(env.machine_kind.resource.kind, machine, {"metadata": metadata})
        env.start()
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually("it is gone", lambda: env.is_gone(env.cluster_kind, cluster))

    @scenario
    async def test_machines_of_other_managers_count(self, env: InfrastructureEnvironment) -> None:
        """A live list finds machines that the watch filter keeps from the cache."""
        cluster = await env.running_cluster()
        machine = await env.running_machine(cluster)
        await env.stop()
        label = {"metadata": {"labels": {WATCH_FILTER: "shard"}}}
        env.api.change(env.cluster_kind.resource.kind, cluster, label)
        env.start(watch_filter="shard")
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually(
            "it waits",
            lambda: condition(env.core.infra_cluster(cluster), "Ready") == WAITING_FOR_MACHINES,
        )
        finalizers = {"metadata": {"finalizers": None}}
        env.api.change(env.machine_kind.resource.kind, machine, finalizers)
        env.api.remove(env.machine_kind.resource.kind, machine)
        await env.eventually("it is gone", lambda: env.is_gone(env.cluster_kind, cluster))

    @scenario
    async def test_a_machine_is_deleted_after_its_infrastructure_cluster(
        self, env: InfrastructureEnvironment, delete: ScriptFactory
    ) -> None:
        delete(_delete_with_credentials)
        cluster = await env.running_cluster()
        machine = await env.running_machine(cluster)
        _force_away(env, cluster)
        _delete_machine(env, machine)
        await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, machine))

    @scenario
    async def test_an_identity_is_kept_until_its_last_machine_is_gone(
        self, env: InfrastructureEnvironment, delete: ScriptFactory
    ) -> None:
        results: list[Deleted | Waiting] = [Waiting("Busy", "the server does not stop", None)]
        delete(lambda machine: machine.credentials["token"] and results[0])
        cluster = await env.running_cluster()
        machine = await env.running_machine(cluster)
        _force_away(env, cluster)
        (identity,) = env.api.all("AcmeIdentity")
        env.api.remove("AcmeIdentity", key_of(identity))
        _delete_machine(env, machine)
        await env.eventually("it waits", lambda: ready_condition(env, machine)[1] == "Busy")
        await env.quiet()
        assert env.api.all("AcmeIdentity")
        results[0] = Deleted()
        annotations = {"metadata": {"annotations": {"changed": "by a user"}}}
        env.api.change(env.machine_kind.resource.kind, machine, annotations)
        await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, machine))
        await env.eventually("the identity is gone", lambda: not env.api.all("AcmeIdentity"))

    @scenario
    async def test_any_order_of_deletions_ends(
        self, env: InfrastructureEnvironment, delete: ScriptFactory
    ) -> None:
        delete(_delete_with_credentials)
        (identity,) = env.api.all("AcmeIdentity")
        kinds = ("Cluster", "Machine", "AcmeCluster", "AcmeMachine", "AcmeIdentity")
        for number, order in enumerate(itertools.permutations(kinds)):
            if not env.api.all("AcmeIdentity"):
                env.api.add(
                    {key: identity[key] for key in ("apiVersion", "kind", "spec")}
                    | {"metadata": {"name": identity["metadata"]["name"]}}
                )
            cluster = env.core.add_cluster(f"c{number}")
            await env.cluster_is_provisioned(cluster)
            env.core.infrastructure_is_ready(cluster)
            machine = await env.running_machine(cluster, f"m{number}")
            keys = {
                "Cluster": cluster,
                "Machine": machine,
                "AcmeCluster": cluster,
                "AcmeMachine": machine,
                "AcmeIdentity": key_of(identity),
            }
            for kind in order:
                env.api.remove(kind, keys[kind])
                await asyncio.sleep(number % 5 * 0.002)
            for kind in kinds:
                await env.eventually(
                    f"{kind} is gone, in the order {order}",
                    partial(_is_gone, env, kind, keys[kind]),
                )


def _is_gone(env: InfrastructureEnvironment, kind: str, key: NamespacedName) -> bool:
    return env.api.find(kind, key) is None


def _delete_machine(env: InfrastructureEnvironment, machine: NamespacedName) -> None:
    env.api.remove("Machine", machine)
    env.api.remove(env.machine_kind.resource.kind, machine)


def _force_away(env: InfrastructureEnvironment, cluster: NamespacedName) -> None:
    """Remove an infrastructure cluster although its machines exist."""
    kind = env.cluster_kind.resource.kind
    env.api.remove(kind, cluster)
    env.api.change(kind, cluster, {"metadata": {"finalizers": None}})
