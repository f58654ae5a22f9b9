"""Which changes wake which machines, in a cluster with many of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from capsmith_runtime.contract.constants import CONTROL_PLANE_LABEL
from capsmith_runtime.controlplane.control_plane import find_control_plane_machines
from capsmith_runtime.infrastructure import WatchedMachines
from capsmith_runtime.infrastructure.cluster_machines import list_machines
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.controllers import (
    InfrastructureControllers,
    InfrastructureGroup,
)
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.requeue import Priority
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.testing import clock
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_pools
from tests.runtime.infrastructure.scripted_provider import COMPONENT, PROVIDER, NoInfrastructure
from tests.runtime.support.woken import TURN_SECONDS, Woken, counted_decodings, woken

MACHINE, CLUSTER, IDENTITY = "AcmeMachine", "AcmeCluster", "AcmeIdentity"
PROVISIONED = [f"m{number}" for number in range(20)]
WAITING = "waiting"

Scenario = Callable[[InfrastructureEnvironment, NamespacedName, Woken], Awaitable[None]]


def run(scenario: Scenario) -> None:
    """Run a scenario in a cluster with provisioned machines, and one that is not provisioned."""

    async def play() -> None:
        env = _environment()
        cluster = env.core.add_cluster()
        env.core.infrastructure_is_ready(cluster)
        for name in PROVISIONED:
            key = env.core.add_machine(cluster, name)
            env.api.change(MACHINE, key, {"spec": {"providerID": f"acme://{name[1:]}"}})
        env.core.add_machine(cluster, WAITING)
        async with woken(env.component, env.api) as found:
            await found.forget()
            await scenario(env, cluster, found)

    clock.run(play())


def _environment() -> InfrastructureEnvironment:
    controllers = COMPONENT.groups[0]
    assert isinstance(controllers, InfrastructureControllers)
    return InfrastructureEnvironment(
        PROVIDER,
        COMPONENT,
        "v1beta2",
        infrastructure=NoInfrastructure(PROVIDER.repository),
        controllers=controllers,
        cluster_kind=controllers.clusters[0],
        machine_kind=controllers.machines[0],
    )


def _large_cluster() -> tuple[InfrastructureEnvironment, NamespacedName]:
    """Return an environment with a cluster of 1,000 machines, and the cluster's key."""
    env = _environment()
    cluster = env.core.add_cluster()
    for number in range(1000):
        env.core.add_machine(cluster, f"m{number}", bootstrap=False)
    return env, cluster


def test_after_a_start_unfinished_machines_come_first() -> None:
    """They may have been created, or deleted, while no manager ran."""

    async def play() -> None:
        env = _environment()
        cluster = env.core.add_cluster()
        condition = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
        condition["lastTransitionTime"] = "2030-01-01T00:00:00Z"
        ready = {"status": {"conditions": [condition]}}
        for name in PROVISIONED:
            env.api.change(MACHINE, env.core.add_machine(cluster, name), ready)
        key = env.core.add_machine(cluster, "deleted")
        env.api.change(MACHINE, key, {**ready, "metadata": {"finalizers": ["example.com/test"]}})
        env.api.remove(MACHINE, key)
        env.core.add_machine(cluster, WAITING)
        async with woken(env.component, env.api) as found:
            assert await found.keys(MACHINE) == ["deleted", WAITING, *PROVISIONED]

    clock.run(play())


def test_a_change_of_a_cluster_reads_none_of_its_provisioned_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cluster labels change often, and a cluster may have thousands of machines."""

    async def labels(env: InfrastructureEnvironment, cluster: NamespacedName, found: Woken) -> None:
        with counted_decodings(monkeypatch) as decodings:
            env.api.change("Cluster", cluster, {"metadata": {"labels": {"a": "1"}}})
            assert await found.keys(MACHINE) == [WAITING, *PROVISIONED]
        assert decodings[0] < len(PROVISIONED) / 2

    run(labels)


def test_objects_that_name_an_identity_in_vain_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any user can create them in any number, and each of them reconciles the identity."""

    async def scenario(
        env: InfrastructureEnvironment, cluster: NamespacedName, found: Woken
    ) -> None:
        obj = env.core.infra_cluster(cluster)
        identity, reference = NamespacedName("", "another"), obj["spec"]["identityRef"]
        used = env.api.find(IDENTITY, NamespacedName("", reference["name"]))
        assert used is not None
        spec = {**used["spec"], "allowedNamespaces": {"list": [cluster.namespace]}}
        env.api.add({**used, "metadata": {"name": identity.name}, "spec": spec, "status": {}})
        for number in range(100):
            metadata = {"namespace": "other", "name": f"c{number}"}
            spec = {**obj["spec"], "identityRef": {**reference, "name": identity.name}}
            env.api.add({**obj, "metadata": metadata, "spec": spec, "status": {}})
        await found.forget()
        found.queues[IDENTITY].add(identity)
        with counted_decodings(monkeypatch) as decodings:
            await found.reconcile(IDENTITY)
        assert decodings[0] < 50

    run(scenario)


def test_a_namespace_reads_no_objects_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Namespaces of tests and previews come and go all day."""

    async def scenario(
        env: InfrastructureEnvironment, cluster: NamespacedName, found: Woken
    ) -> None:
        with counted_decodings(monkeypatch) as decodings:
            env.api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
            assert await found.keys(MACHINE) == []
        assert decodings[0] < len(PROVISIONED) / 2
        labels = {"metadata": {"labels": {"team": "x"}}}
        env.api.change("Namespace", NamespacedName("", cluster.namespace), labels)
        assert set(await found.keys(MACHINE)) == {WAITING, *PROVISIONED}

    run(scenario)


def _context(found: Woken) -> InfrastructureContext:
    groups = (each for each in found.builder.groups if isinstance(each, InfrastructureGroup))
    return next(groups)._context


def test_members_of_a_control_plane_are_found_without_reading_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Load balancers list them, control planes scale them, and a cluster has thousands of workers.

    Two machines are members: one has the label of control planes, the other's Machine has it.
    """
    label = {"metadata": {"labels": {CONTROL_PLANE_LABEL: ""}}}

    async def scenario(
        env: InfrastructureEnvironment, cluster: NamespacedName, found: Woken
    ) -> None:
        env.api.change(MACHINE, NamespacedName(cluster.namespace, "m1"), label)
        for name in ("m1", "m2"):
            env.api.change("Machine", NamespacedName(cluster.namespace, name), label)
        await found.forget()
        context, core = _context(found), found.builder.caches
        watched = WatchedMachines.CONTROL_PLANE
        with counted_decodings(monkeypatch) as decodings:
            listed = await list_machines(context, cluster, watched)
            _, others = find_control_plane_machines(core, {}, *cluster)
        assert [view.name for view in listed] == ["m1", "m2"]
        assert sorted(obj["metadata"]["name"] for obj in others) == ["m1", "m2"]
        assert decodings[0] < len(PROVISIONED)

    run(scenario)


def test_a_list_of_all_machines_lets_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        env, cluster = _large_cluster()
        turns = [0]

        async def others(decodings: list[int]) -> None:
            while True:
                turns.append(decodings[0])
                await asyncio.sleep(0)

        async with woken(env.component, env.api) as found:
            context = _context(found)
            with counted_decodings(monkeypatch) as decodings:
                other = asyncio.create_task(others(decodings))
                listed = await list_machines(context, cluster, WatchedMachines.ALL)
                other.cancel()
        assert len(listed) == 1000
        # Up to three objects are decoded for each machine: itself, and its Machine twice.
        assert max(after - before for before, after in pairwise(turns)) <= 3 * 250

    asyncio.run(play())


def test_the_first_list_lets_others_run() -> None:
    """Thousands of changes at a time would delay the renewal of the lease and probes."""

    async def play() -> None:
        env, _ = _large_cluster()
        turns = [0]

        async def others() -> None:
            while True:
                turns.append(0)
                await asyncio.sleep(0)

        def handled(change: Delta) -> None:
            turns[-1] += 1

        async with woken(env.component, env.api) as found:
            client = found.builder.caches.client
            informer = Informer(client, found.builder.caches.machines.resource, Metrics())
            informer.add_handler(handled)
            tasks = [asyncio.create_task(each) for each in (others(), informer.run())]
            await informer.synced.wait()
            for task in tasks:
                task.cancel()
        assert sum(turns) == 1000
        assert max(turns) <= 250

    # The others never pause, so the virtual clock would stand still.
    asyncio.run(play())


def _annotate(**annotations: str) -> JSON:
    return {"metadata": {"annotations": annotations}}


def test_annotations_of_a_cluster_wake_only_machines_that_wait() -> None:
    """GitOps tools keep their records there: 5,000 machines were reconciled for each of them."""

    async def scenario(
        env: InfrastructureEnvironment, cluster: NamespacedName, found: Woken
    ) -> None:
        env.api.change("Cluster", cluster, _annotate(team="x"))
        assert await found.keys(MACHINE) == [WAITING]
        env.api.change(CLUSTER, cluster, _annotate(team="x"))
        assert await found.keys(MACHINE) == []
        assert await found.keys(CLUSTER) == [cluster.name]

    run(scenario)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"paused": True}},
        {"spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}}},
        {"status": {"initialization": {"controlPlaneInitialized": True}}},
        {"metadata": {"labels": {"team": "x"}}},
    ],
    ids=["paused", "endpoint", "initialized", "labels"],
)
def test_what_reconcilers_read_wakes_machines_that_wait_before_others(change: JSON) -> None:
    """All machines of the cluster, but the provisioned ones behind what else has changed."""

    async def scenario(
        env: InfrastructureEnvironment, cluster: NamespacedName, found: Woken
    ) -> None:
        env.api.change("Cluster", cluster, change)
        await asyncio.sleep(TURN_SECONDS)
        found.queues[MACHINE].add(NamespacedName("default", "of-another-cluster"))
        names = await found.keys(MACHINE)
        urgent, rest = names[:2], names[2:]
        assert set(urgent) == {WAITING, "of-another-cluster"}
        assert set(rest) == set(PROVISIONED)

    run(scenario)


def test_new_credentials_wake_machines_that_wait_before_others() -> None:
    async def scenario(
        env: InfrastructureEnvironment, cluster: NamespacedName, found: Woken
    ) -> None:
        infra_cluster = env.core.infra_cluster(cluster)
        identity = env.api.find(
            "AcmeIdentity", NamespacedName("", infra_cluster["spec"]["identityRef"]["name"])
        )
        assert identity is not None
        secret = NamespacedName(env.component.namespace, identity["spec"]["secretRef"]["name"])
        found.queues[IDENTITY].add(NamespacedName("", identity["metadata"]["name"]))
        await found.reconcile(IDENTITY)
        env.api.change("Secret", secret, {"metadata": {"labels": {"team": "x"}}})
        await asyncio.sleep(TURN_SECONDS)
        await found.reconcile(IDENTITY)
        assert await found.keys(MACHINE) == []
        env.api.change("Secret", secret, {"data": {"token": "bmV3"}})
        await asyncio.sleep(TURN_SECONDS)
        await found.reconcile(IDENTITY)
        names = await found.keys(MACHINE)
        assert names[0] == WAITING
        assert set(names[1:]) == set(PROVISIONED)

    run(scenario)


def test_the_spec_of_an_infrastructure_cluster_wakes_machines() -> None:
    async def scenario(
        env: InfrastructureEnvironment, cluster: NamespacedName, found: Woken
    ) -> None:
        env.api.change(CLUSTER, cluster, {"spec": {"region": "south"}})
        names = await found.keys(MACHINE)
        assert names[0] == WAITING
        assert set(names[1:]) == set(PROVISIONED)

    run(scenario)


def test_a_machine_without_news_is_looked_at_with_low_priority() -> None:
    async def scenario(
        env: InfrastructureEnvironment, cluster: NamespacedName, found: Woken
    ) -> None:
        reconcilers: dict[str, Any] = {}
        for group in found.builder.groups:
            reconcilers |= dict(group.reconcilers())
        result = await reconcilers[MACHINE](NamespacedName(cluster.namespace, "m1"))
        assert result.requeue_after is not None
        assert result.priority is Priority.LOW

    run(scenario)


def test_a_machine_enqueues_the_pool_that_owns_it() -> None:
    """Its labels may be lost: only the owner reference names the pool."""
    kind = scripted_pools.POOL
    owner = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
    machine: JSON = {
        "apiVersion": kind.machines.api_version,
        "kind": kind.machines.kind,
        "metadata": {
            "namespace": "default",
            "name": "p1-0",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other"},
                {**owner, "name": "p1", "uid": "p1"},
            ],
        },
        "spec": {"size": "small", "image": "i"},
    }

    async def play() -> None:
        env = scripted_pools.environment()
        async with woken(scripted_pools.COMPONENT, env.api) as found:
            env.api.add(machine)
            assert await found.keys(kind.resource.kind) == ["p1"]

    clock.run(play())
