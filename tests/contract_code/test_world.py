"""How one object leads to another in the caches, and what a watch filter leaves out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
from capsmith_generated.contract.core_v1beta2 import CoreV1Beta2
from capsmith_generated.contract.model import Condition
from capsmith_generated.controllers.credentials import CredentialsResolver
from capsmith_generated.controllers.kinds import (
    SECRET,
    IdentityKind,
    InfraClusterKind,
    InfraMachineKind,
    Registry,
)
from capsmith_generated.controllers.world import Scope, World
from capsmith_generated.reconcilers import InfraClusterReconciler, InfraMachineReconciler
from capsmith_generated.results import InfraClusterState, InfraMachineState, Waiting
from capsmith_generated.runtime.client import (
    JSON,
    KubeClient,
    Page,
    ResourceType,
    Selection,
    WatchEvent,
)
from capsmith_generated.runtime.metrics import Metrics

GROUP = "infrastructure.example.com"
CLUSTER_LABEL = {"cluster.x-k8s.io/cluster-name": "c"}


def _type(kind: str, namespaced: bool = True) -> ResourceType:
    return ResourceType(GROUP, "v1", kind, kind.lower() + "s", namespaced)


def _registry() -> Registry:
    cluster = InfraClusterKind(
        resource=_type("FooCluster"),
        finalizer="foocluster.example.com",
        features=frozenset(),
        spec=object,
        reconciler=InfraClusterReconciler,
    )
    machine = InfraMachineKind(
        resource=_type("FooMachine"),
        finalizer="foomachine.example.com",
        features=frozenset(),
        spec=object,
        reconciler=InfraMachineReconciler,
    )
    return Registry(
        label="infrastructure-foo",
        namespace="foo-system",
        infra_clusters=(cluster,),
        infra_machines=(machine,),
        identity=IdentityKind(resource=_type("FooIdentity", False), keys=("token",)),
    )


class _Lists:
    """A client whose lists hold some objects, whatever is selected by labels."""

    def __init__(self, objects: tuple[JSON, ...]) -> None:
        self._objects = objects

    async def list_page(self, resource: ResourceType, selection: Selection, **_: Any) -> Page:
        found = [obj for obj in self._objects if obj["kind"] == resource.kind]
        return Page([] if selection.labels else found, "1", "")

    async def watch(self, *_: Any, **__: Any) -> AsyncGenerator[WatchEvent, None]:
        await asyncio.Event().wait()
        yield WatchEvent("BOOKMARK", {})


def _world(*objects: JSON, watch_filter: str = "") -> World:
    scope = Scope(watch_filter=watch_filter, own_namespace="foo-system")
    client = cast(KubeClient, _Lists(objects))
    world = World(client, Metrics(), _registry(), CoreV1Beta2(), scope)

    async def fill() -> None:
        running = [asyncio.create_task(informer.run()) for informer in world.informers]
        for informer in world.informers:
            await informer.synced.wait()
        for task in running:
            task.cancel()

    asyncio.run(fill())
    return world


def _object(resource: ResourceType, name: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    if resource.namespaced:
        metadata["namespace"] = "ns"
    metadata |= parts.pop("metadata", {})
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**head, "metadata": metadata, **parts}


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": CLUSTER_LABEL},
        {
            "ownerReferences": [
                {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "c"}
            ]
        },
    ],
    ids=["label", "owner"],
)
def test_the_infrastructure_of_a_cluster_that_is_gone_is_found(metadata: dict[str, Any]) -> None:
    world = _world(_object(_type("FooCluster"), "other-name", metadata=metadata))

    found = world.orphaned_infra_cluster("ns", "c")

    assert found is not None
    assert found["metadata"]["name"] == "other-name"
    assert world.orphaned_infra_cluster("ns", "d") is None
    assert world.orphaned_infra_cluster("ns", None) is None


def test_identities_are_read_whatever_the_watch_filter_but_written_by_it() -> None:
    identity = _object(
        _type("FooIdentity", False),
        "id",
        spec={"secretRef": {"name": "s"}, "allowedNamespaces": {}},
    )
    secret = _object(SECRET, "s", metadata={"namespace": "foo-system"}, data={"token": "eA=="})
    world = _world(identity, secret, watch_filter="mine")
    reference = {"identityRef": {"kind": "FooIdentity", "name": "id"}}
    cluster = _object(_type("FooCluster"), "c", spec=reference)

    assert CredentialsResolver(world, "foo-system").of_cluster(cluster) == {"token": "x"}
    assert not world.scope.covers(identity)
    labels = {"labels": {"cluster.x-k8s.io/watch-filter": "mine"}}
    assert world.scope.covers(_object(_type("FooIdentity", False), "id", metadata=labels))
    assert Scope().covers(identity)


def test_an_identity_of_another_kind_is_none() -> None:
    resolver = CredentialsResolver(_world(), "foo-system")
    reference = {"identityRef": {"kind": "Secret", "name": "id"}}

    found = resolver.of_cluster(_object(_type("FooCluster"), "c", spec=reference))

    assert isinstance(found, Waiting)
    assert "FooIdentity" in found.message


@pytest.mark.parametrize(
    "types", [["Ready"], ["Paused"], ["A", "A"], [f"T{number}" for number in range(31)]]
)
def test_conditions_that_are_not_the_authors(types: list[str]) -> None:
    conditions = [Condition(type=name, status=True, reason="Fine") for name in types]

    with pytest.raises(ValueError, match="condition"):
        InfraClusterState(conditions=conditions)
    with pytest.raises(ValueError, match="condition"):
        InfraMachineState(provider_id="foo://1", conditions=conditions)
