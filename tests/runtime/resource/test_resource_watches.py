"""Which changes wake the owners of a resource, and the resources of a Cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing import clock
from capsmith_runtime.testing.resource.environment import ResourceEnvironment
from tests.runtime.infrastructure.scripted_provider import NoInfrastructure
from tests.runtime.resource.scripted_resources import (
    CLUSTER,
    COMPONENT,
    CONTROLLERS,
    GROUP,
    IMAGE,
    MACHINE,
    PROVIDER,
    REPOSITORY,
    SECURITY_GROUP,
    SECURITY_GROUPS,
)
from tests.runtime.support.woken import TURN_SECONDS, Woken, woken

NAMESPACE = "default"
Scenario = Callable[[ResourceEnvironment, NamespacedName, Woken], Awaitable[None]]


def run(scenario: Scenario) -> None:
    """Run a scenario in a cluster with a machine."""

    async def play() -> None:
        env = ResourceEnvironment(
            PROVIDER,
            COMPONENT,
            "v1beta2",
            infrastructure=NoInfrastructure(REPOSITORY),
            controllers=CONTROLLERS,
            kind=SECURITY_GROUPS,
        )
        cluster = env.core.add_cluster()
        env.core.add_machine(cluster, "m1")
        async with woken(env.component, env.api) as found:
            await found.forget()
            await scenario(env, cluster, found)

    clock.run(play())


def reference(env: ResourceEnvironment, kind: str, name: str, namespace: str = NAMESPACE) -> JSON:
    obj = env.api.find(kind, NamespacedName(namespace, name))
    assert obj is not None
    return {
        "apiVersion": obj["apiVersion"],
        "kind": kind,
        "name": name,
        "uid": obj["metadata"]["uid"],
    }


def add(env: ResourceEnvironment, name: str, *owners: JSON, **metadata: Any) -> NamespacedName:
    """Add a security group."""
    env.api.add(
        {
            "apiVersion": f"{GROUP}/v1beta1",
            "kind": SECURITY_GROUP,
            "metadata": {
                "namespace": NAMESPACE,
                "name": name,
                "ownerReferences": list(owners),
                **metadata,
            },
            "spec": {"rules": []},
        }
    )
    return NamespacedName(NAMESPACE, name)


def add_image(env: ResourceEnvironment, name: str) -> None:
    env.api.add(
        {
            "apiVersion": f"{GROUP}/v1beta1",
            "kind": IMAGE,
            "metadata": {"name": name},
            "spec": {"url": "https://example.com"},
        }
    )


@pytest.mark.parametrize(
    ("kind", "name"), [(CLUSTER, "c1"), (MACHINE, "m1"), (SECURITY_GROUP, "o")]
)
def test_each_change_of_a_resource_wakes_its_owner(kind: str, name: str) -> None:
    async def scenario(env: ResourceEnvironment, cluster: NamespacedName, found: Woken) -> None:
        add(env, "o")
        await found.forget()
        key = add(env, "r", reference(env, kind, name))
        assert name in await found.keys(kind)
        for body in (
            {"spec": {"rules": [{"protocol": "tcp", "port": 1}]}},
            {"status": {"groupID": "g-1"}},
            {"metadata": {"labels": {"a": "b"}}},
        ):
            await found.forget()
            env.api.change(SECURITY_GROUP, key, body)
            assert name in await found.keys(kind)
        await found.forget()
        env.api.remove(SECURITY_GROUP, key)
        assert name in await found.keys(kind)

    run(scenario)


def test_records_of_the_manager_wake_no_owner() -> None:
    async def scenario(env: ResourceEnvironment, cluster: NamespacedName, found: Woken) -> None:
        key = add(env, "r", reference(env, CLUSTER, "c1"))
        await found.forget()
        records = {"finalizers": ["f"], "annotations": {f"{GROUP}/external-id": "r.1"}}
        env.api.change(SECURITY_GROUP, key, {"metadata": records})
        assert await found.keys(CLUSTER) == []
        assert await found.keys(SECURITY_GROUP) == ["r"]

    run(scenario)


def test_a_former_owner_is_woken() -> None:
    async def scenario(env: ResourceEnvironment, cluster: NamespacedName, found: Woken) -> None:
        key = add(env, "r", reference(env, CLUSTER, "c1"))
        await found.forget()
        owners = [reference(env, MACHINE, "m1")]
        env.api.change(SECURITY_GROUP, key, {"metadata": {"ownerReferences": owners}})
        assert await found.keys(CLUSTER) == ["c1"]
        assert await found.keys(MACHINE) == ["m1"]

    run(scenario)


def test_a_cluster_scoped_owner_is_woken_and_one_of_another_group_is_not() -> None:
    async def scenario(env: ResourceEnvironment, cluster: NamespacedName, found: Woken) -> None:
        add_image(env, "i")
        await found.forget()
        foreign = {**reference(env, CLUSTER, "c1"), "apiVersion": "other.example.com/v1"}
        add(env, "r", reference(env, IMAGE, "i", ""), foreign)
        assert await found.keys(IMAGE) == ["i"]
        assert await found.keys(CLUSTER) == []

    run(scenario)


@pytest.mark.parametrize("change", ["pause", "delete"])
def test_a_cluster_wakes_its_resources(change: str) -> None:
    """Those of its label, and those that it owns through any chain of the provider's objects."""

    async def scenario(env: ResourceEnvironment, cluster: NamespacedName, found: Woken) -> None:
        other = env.core.add_cluster("c2")
        add(env, "labelled", labels={"cluster.x-k8s.io/cluster-name": "c1"})
        add(env, "of-infrastructure", reference(env, CLUSTER, "c1"))
        add(env, "of-machine", reference(env, MACHINE, "m1"))
        add(env, "of-core-machine", reference(env, "Machine", "m1"))
        add(env, "of-resource", reference(env, SECURITY_GROUP, "of-machine"))
        add(env, "of-other", reference(env, CLUSTER, "c2"))
        add(env, "alone")
        expected = {
            "labelled",
            "of-infrastructure",
            "of-machine",
            "of-core-machine",
            "of-resource",
        }
        await found.forget()
        env.api.change("Cluster", cluster, {"metadata": {"annotations": {"a": "b"}}})
        env.api.change("Cluster", cluster, {"status": {"phase": "Provisioned"}})
        assert await found.keys(SECURITY_GROUP) == []
        if change == "pause":
            env.core.pause(cluster)
        else:
            env.api.change("Cluster", cluster, {"metadata": {"finalizers": ["core"]}})
            env.api.remove("Cluster", cluster)
        assert set(await found.keys(SECURITY_GROUP)) == expected
        env.core.pause(other)
        assert await found.keys(SECURITY_GROUP) == ["of-other"]

    run(scenario)


def test_owners_in_a_circle_end_the_search() -> None:
    async def scenario(env: ResourceEnvironment, cluster: NamespacedName, found: Woken) -> None:
        first = add(env, "a")
        add(env, "b", reference(env, SECURITY_GROUP, "a"))
        owners = [reference(env, SECURITY_GROUP, "b")]
        env.api.change(SECURITY_GROUP, first, {"metadata": {"ownerReferences": owners}})
        await found.forget()
        env.core.pause(cluster)
        assert await found.keys(SECURITY_GROUP) == []

    run(scenario)


def test_new_credentials_wake_the_resources_that_use_them() -> None:
    async def scenario(env: ResourceEnvironment, cluster: NamespacedName, found: Woken) -> None:
        (identity,) = (each["metadata"]["name"] for each in env.api.all("NimbusIdentity"))
        key = add(env, "r")
        add(env, "without")
        spec = {"identityRef": {"kind": "NimbusIdentity", "name": identity}}
        env.api.change(SECURITY_GROUP, key, {"spec": spec})
        await found.reconcile("NimbusIdentity")
        await found.forget()
        (secret,) = env.api.all("Secret")[:1]
        secret_key = NamespacedName(secret["metadata"]["namespace"], secret["metadata"]["name"])
        env.api.change("Secret", secret_key, {"data": {"username": "bmV3"}})
        await asyncio.sleep(TURN_SECONDS)
        await found.reconcile("NimbusIdentity")
        assert await found.keys(SECURITY_GROUP) == ["r"]

    run(scenario)
