"""Which resources keep an infrastructure cluster that is being deleted."""

from __future__ import annotations

import pytest

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.resource import Deleted, ResourceState
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.resource.environment import ResourceEnvironment
from tests.runtime.infrastructure.scripted_provider import NoInfrastructure
from tests.runtime.resource.scripted_resources import (
    CLUSTER,
    COMPONENT,
    CONTROLLERS,
    GROUP,
    MACHINE,
    PROVIDER,
    REPOSITORY,
    SECURITY_GROUP,
    SECURITY_GROUPS,
    ClusterReconciler,
    SecurityGroupReconciler,
)

NAMESPACE = "default"


def _environment() -> ResourceEnvironment:
    return ResourceEnvironment(
        PROVIDER,
        COMPONENT,
        "v1beta2",
        infrastructure=NoInfrastructure(REPOSITORY),
        controllers=CONTROLLERS,
        kind=SECURITY_GROUPS,
    )


def _found(env: ResourceEnvironment, kind: str, name: str) -> JSON | None:
    return env.api.find(kind, NamespacedName(NAMESPACE, name))


def _add_group(env: ResourceEnvironment, name: str, kind: str, owner: str) -> None:
    """Add a security group with an owner; it is labelled with its Cluster."""
    obj = _found(env, kind, owner)
    assert obj is not None
    reference = {
        "apiVersion": obj["apiVersion"],
        "kind": kind,
        "name": owner,
        "uid": obj["metadata"]["uid"],
    }
    metadata = {
        "namespace": NAMESPACE,
        "name": name,
        "labels": {"cluster.x-k8s.io/cluster-name": "c1"},
        "ownerReferences": [reference],
    }
    version = f"{GROUP}/v1beta1"
    env.api.add(
        {"apiVersion": version, "kind": SECURITY_GROUP, "metadata": metadata, "spec": {"rules": []}}
    )


def test_an_infrastructure_cluster_waits_for_the_resources_of_its_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = _environment()
    normal = staticmethod(lambda resource: ResourceState())
    monkeypatch.setattr(SecurityGroupReconciler, "normal", normal, raising=False)
    for reconciler in (SecurityGroupReconciler, ClusterReconciler):
        delete = staticmethod(lambda scope: Deleted())
        monkeypatch.setattr(reconciler, "delete", delete, raising=False)

    async def scenario() -> None:
        cluster = env.core.add_cluster()
        env.core.infrastructure_is_ready(cluster)
        machine = env.core.add_machine(cluster, "m1")
        _add_group(env, "of-machine", MACHINE, "m1")
        _add_group(env, "of-group", SECURITY_GROUP, "of-machine")
        _add_group(env, "of-cluster", CLUSTER, "c1")
        await env.quiet()
        env.api.remove(CLUSTER, cluster)
        env.api.remove("Machine", machine)
        env.api.remove(MACHINE, machine)
        await env.quiet()
        assert _found(env, MACHINE, "m1") is None
        obj = _found(env, CLUSTER, "c1")
        assert obj is not None
        assert condition(obj, "Ready") == ("False", "WaitingForMachineDeletion")
        for name in ("of-machine", "of-group"):
            env.api.remove(SECURITY_GROUP, NamespacedName(NAMESPACE, name))
        await env.quiet()
        assert _found(env, CLUSTER, "c1") is None
        assert _found(env, SECURITY_GROUP, "of-cluster") is not None

    env.run(scenario)
