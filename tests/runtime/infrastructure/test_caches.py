"""Lookups of related objects in the caches, and the watch filter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from capsmith_runtime.contract import records
from capsmith_runtime.contract.model import Condition, ObjectRef
from capsmith_runtime.contract.v1beta2 import CoreV1Beta2
from capsmith_runtime.identity.references import MAX_CHAIN
from capsmith_runtime.identity.resolver import CredentialsResolver
from capsmith_runtime.infrastructure.api import (
    InfraClusterReconciler,
    InfraClusterState,
    InfraMachineReconciler,
    InfraMachineState,
)
from capsmith_runtime.infrastructure.caches import InfrastructureCaches, InfrastructureKinds
from capsmith_runtime.infrastructure.kinds import IdentityKind, InfraClusterKind, InfraMachineKind
from capsmith_runtime.infrastructure.prerequisites import ClusterInfrastructure
from capsmith_runtime.kube.client import (
    JSON,
    KubeClient,
    NamespacedName,
    Page,
    ResourceType,
    Selection,
    WatchEvent,
    key_of,
)
from capsmith_runtime.kube.encoded_objects import EncodedObjects
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.reconcile.held_ids import HeldIds
from capsmith_runtime.reconcile.kinds import SECRET, core_type
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.resource import ResourceReconciler
from capsmith_runtime.resource.caches import ResourceCaches, ResourceKind
from capsmith_runtime.testing import infrastructure as testing

GROUP = "infrastructure.example.com"
CLUSTER_LABEL = {"cluster.x-k8s.io/cluster-name": "c"}


def _type(kind: str, namespaced: bool = True) -> ResourceType:
    return ResourceType(GROUP, "v1", kind, kind.lower() + "s", namespaced)


def _kinds() -> InfrastructureKinds:
    # Caches create no reconciler, so the abstract ones will do.
    cluster = InfraClusterKind(
        resource=_type("FooCluster"),
        finalizer="foocluster.example.com",
        features=frozenset(),
        spec=object,
        reconciler=cast(type[InfraClusterReconciler[object]], InfraClusterReconciler),
    )
    machine = InfraMachineKind(
        resource=_type("FooMachine"),
        finalizer="foomachine.example.com",
        features=frozenset(),
        spec=object,
        reconciler=cast(type[InfraMachineReconciler[object]], InfraMachineReconciler),
    )
    return InfrastructureKinds(
        clusters=(cluster,),
        machines=(machine,),
        identities=(IdentityKind(resource=_type("FooIdentity", False), keys=("token",)),),
    )


class _Lists:
    """A client whose lists hold some objects, whatever is selected by labels."""

    def __init__(self, objects: tuple[JSON, ...]) -> None:
        self._objects = objects

    async def list_page(self, resource: ResourceType, selection: Selection, **_: Any) -> Page:
        found = [obj for obj in self._objects if obj["kind"] == resource.kind]
        return Page([] if selection.labels else found, "1", "")

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        (found,) = (o for o in self._objects if o["kind"] == resource.kind and key_of(o) == key)
        return found

    async def watch(self, *_: Any, **__: Any) -> AsyncGenerator[WatchEvent, None]:
        await asyncio.Event().wait()
        yield WatchEvent("BOOKMARK", {})


def _caches(
    *objects: JSON, watch_filter: str = "", kinds: InfrastructureKinds | None = None
) -> InfrastructureCaches:
    scope = WatchScope(watch_filter=watch_filter, own_namespace="foo-system")
    client = cast(KubeClient, _Lists(objects))
    core = Caches(client, Metrics(), CoreV1Beta2(), scope)
    caches = InfrastructureCaches(core, kinds or _kinds())
    asyncio.run(_fill(*caches.informers))
    return caches


async def _fill(*informers: Informer) -> None:
    running = [asyncio.create_task(informer.run()) for informer in informers]
    for informer in informers:
        await informer.synced.wait()
    for task in running:
        task.cancel()


def _object(resource: ResourceType, name: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    if resource.namespaced:
        metadata["namespace"] = "ns"
    metadata |= parts.pop("metadata", {})
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**head, "metadata": metadata, **parts}


def test_the_infrastructure_of_a_cluster_is_of_the_kind_that_it_names() -> None:
    """Objects of two kinds may have the same name."""
    kinds = _kinds()
    other = replace(kinds.clusters[0], resource=_type("BarCluster"), features=frozenset("x"))
    objects = [_object(_type(kind), "c") for kind in ("FooCluster", "BarCluster")]
    caches = _caches(*objects, kinds=replace(kinds, clusters=(*kinds.clusters, other)))

    for kind in ("BarCluster", "FooCluster"):
        cluster = testing.core_cluster(infrastructure=ObjectRef(GROUP, kind, "c"))
        cluster = replace(cluster, namespace="ns")
        resolver = CredentialsResolver(caches.identity)
        found = asyncio.run(ClusterInfrastructure.of(caches, resolver, "ns", cluster))
        assert found.infra_cluster is not None
        assert found.infra_cluster.kind == kind
        assert (
            caches.cluster_kind(cluster.infrastructure)
            is caches.kinds.clusters[kind == "BarCluster"]
        )


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
    caches = _caches(_object(_type("FooCluster"), "other-name", metadata=metadata))

    found = caches.orphaned_infra_cluster("ns", "c")

    assert found is not None
    assert found["metadata"]["name"] == "other-name"
    assert caches.orphaned_infra_cluster("ns", "d") is None
    assert caches.orphaned_infra_cluster("ns", None) is None


def test_identities_are_read_whatever_the_watch_filter_but_written_by_it() -> None:
    identity = _object(
        _type("FooIdentity", False),
        "id",
        spec={"secretRef": {"name": "s"}, "allowedNamespaces": {}},
    )
    secret = _object(SECRET, "s", metadata={"namespace": "foo-system"}, data={"token": "eA=="})
    caches = _caches(identity, secret, watch_filter="mine")
    reference = {"identityRef": {"kind": "FooIdentity", "name": "id"}}
    cluster = _object(_type("FooCluster"), "c", spec=reference)

    assert asyncio.run(CredentialsResolver(caches.identity).of_object(cluster)) == {"token": "x"}
    assert not caches.core.scope.covers(identity)
    labels = {"labels": {"cluster.x-k8s.io/watch-filter": "mine"}}
    assert caches.core.scope.covers(_object(_type("FooIdentity", False), "id", metadata=labels))
    assert WatchScope().covers(identity)


def test_an_identity_of_another_kind_is_none() -> None:
    resolver = CredentialsResolver(_caches().identity)
    reference = {"identityRef": {"kind": "Secret", "name": "id"}}

    found = asyncio.run(resolver.of_object(_object(_type("FooCluster"), "c", spec=reference)))

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


@pytest.mark.parametrize(("has_feature", "expected"), [(True, "mine"), (False, "shared")])
def test_the_identity_of_a_machine_takes_precedence(has_feature: bool, expected: str) -> None:
    """Without the feature, spec.identityRef is a field of the author."""
    kinds = _kinds()
    features = frozenset({"credentials"} if has_feature else ())
    machine = replace(kinds.machines[0], features=features)
    identities = [
        _object(
            _type("FooIdentity", False),
            name,
            spec={"secretRef": {"name": "s"}, "allowedNamespaces": {}},
        )
        for name in ("shared", "mine")
    ]
    refer = {
        name: {"identityRef": {"kind": "FooIdentity", "name": name}} for name in ("shared", "mine")
    }
    secret = _object(SECRET, "s", metadata={"namespace": "foo-system"}, data={"token": "eA=="})
    infra_cluster = _object(_type("FooCluster"), "c", spec=refer["shared"])
    obj = _object(_type("FooMachine"), "m", spec=refer["mine"])
    caches = _caches(
        *identities, secret, infra_cluster, obj, kinds=replace(kinds, machines=(machine,))
    )
    cluster = testing.core_cluster(infrastructure=ObjectRef(GROUP, "FooCluster", "c"))
    cluster = replace(cluster, namespace="ns")
    resolver = CredentialsResolver(caches.identity)
    found = asyncio.run(
        ClusterInfrastructure.of(caches, resolver, "ns", cluster, name=None, user=obj)
    )
    assert not isinstance(found.credentials, Waiting)
    assert found.credentials.identity == expected
    record = caches.identity_record(obj, cluster)
    assert record == {records.IDENTITY: f"FooIdentity/{expected}"}
    annotations = {each.build_annotation_name(GROUP): value for each, value in record.items()}
    recorded = {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}
    # Once: terminations are counted by these keys.
    assert list(caches.identity.find_recorded_keys(recorded)) == [f"FooIdentity//{expected}"]


@pytest.mark.parametrize(
    ("has_own", "is_gone", "expected"),
    [(True, False, "mine"), (False, False, "shared"), (False, True, "recorded")],
    ids=["of the machine", "of the cluster", "recorded"],
)
@pytest.mark.parametrize("owner", ["FooMachine", "Machine", "FooVolume"])
def test_a_resource_adopts_the_identity_of_the_machine_that_owns_it(
    owner: str, has_own: bool, is_gone: bool, expected: str
) -> None:
    """Directly, through the Machine, or through another resource."""
    refer = {name: {"kind": "FooIdentity", "name": name} for name in ("mine", "shared", "recorded")}
    infra_cluster = _object(_type("FooCluster"), "c", spec={"identityRef": refer["shared"]})
    infra_machine = _object(
        _type("FooMachine"),
        "m",
        metadata={"annotations": {f"{GROUP}/identity": "FooIdentity/recorded"}},
        spec={"identityRef": refer["mine"]} if has_own else {},
    )
    kinds = _kinds()
    features = frozenset({"credentials"})
    kinds = replace(kinds, machines=(replace(kinds.machines[0], features=features),))
    volume = _type("FooVolume")
    infrastructure = {"apiGroup": GROUP, "kind": "FooMachine", "name": "m"}
    spec = {"clusterName": "c", "bootstrap": {}, "infrastructureRef": infrastructure}
    objects = {
        "FooMachine": infra_machine,
        "Machine": _object(core_type("v1beta2", "Machine", "machines"), "m0", spec=spec),
        "FooVolume": _owned_by(_object(volume, "v0"), infra_machine),
    }
    caches = _caches(*objects.values(), *(() if is_gone else (infra_cluster,)), kinds=kinds)
    resources = ResourceCaches([_resource_kind(volume)], caches)
    asyncio.run(_fill(caches.core.machines, *resources.informers.values()))
    cluster = testing.core_cluster(infrastructure=ObjectRef(GROUP, "FooCluster", "c"))

    found = resources.find_identity(
        _owned_by(_object(volume, "v"), objects[owner]), replace(cluster, namespace="ns")
    )

    assert found == refer[expected]


def _resource_kind(resource: ResourceType) -> ResourceKind:
    return ResourceKind(
        resource=resource,
        finalizer="foovolume.example.com",
        features=frozenset(),
        spec=object,
        reconciler=cast(type[ResourceReconciler[object]], ResourceReconciler),
    )


def _owned_by(obj: JSON, owner: JSON) -> dict[str, Any]:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [reference]}}


@pytest.fixture
def no_decoding(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function after whose call no cache may decode an object."""

    def refuse(self: EncodedObjects, entry: object) -> JSON:
        pytest.fail("an object is decoded; of thousands, this blocks the event loop")

    return lambda: monkeypatch.setattr(EncodedObjects, "_decode", refuse)


def test_one_of_many_machines_with_a_provider_id_holds_it(no_decoding: Callable[[], None]) -> None:
    """A provisioned machine before the others, then the oldest, then the one with the first UID."""
    kind = _type("FooMachine")
    machines = [
        _object(
            kind,
            f"m{number}",
            metadata={"uid": uid, "creationTimestamp": f"2026-01-0{day}T00:00:00Z"},
            spec={"providerID": "foo:///1"},
            status={"ready": True} if is_ready else {},
        )
        for number, (is_ready, day, uid) in enumerate(
            [(False, 1, "a"), (True, 3, "b"), (True, 2, "d"), (True, 2, "c"), (False, 2, "e")]
        )
    ]
    held_ids = _caches(*machines).held_ids
    no_decoding()

    holders = [each for each in machines if held_ids.find_taken(each) is None]

    assert [each["metadata"]["uid"] for each in holders] == ["c"]


def test_a_machine_holds_its_own_external_id(no_decoding: Callable[[], None]) -> None:
    """Also if its copies of the same name are older, and provisioned."""
    kind, own = _type("FooMachine"), {"annotations": {f"{GROUP}/external-id": "m.own"}}
    copies = [
        _object(kind, "m", metadata={**own, "namespace": f"n{number}", "uid": f"copy-{number}"})
        | {"status": {"ready": True}}
        for number in range(5)
    ]
    created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    original = _object(kind, "m", metadata={**own, **created, "uid": "own"})
    held_ids = _caches(*copies, original).held_ids
    no_decoding()

    assert held_ids.find_taken(original) is None
    assert all(held_ids.find_taken(copy) is not None for copy in copies)


def test_other_tasks_run_while_the_ids_of_pools_are_compared() -> None:
    """With 100 pools that share 10,000 ids, each reconcile of the oldest one took a second."""

    async def scenario() -> None:
        pools, turns = [_listing(f"p{number:02d}") for number in range(100)], 0
        held_ids = _caches_of(*pools)
        await _fill(*held_ids._standings)
        task = asyncio.create_task(held_ids.find_taken_of_many(pools[0]))
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        assert await task is None
        assert turns > 10
        assert await held_ids.find_taken_of_many(pools[1]) is not None

    asyncio.run(scenario())


def _listing(name: str) -> JSON:
    """Return a pool that lists the same 1,000 machines as the others."""
    spec = {"providerIDList": [f"foo:///{number}" for number in range(1000)]}
    return _object(_type("FooPool"), name, spec=spec)


def _caches_of(*pools: JSON) -> HeldIds:
    client = cast(KubeClient, _Lists(pools))
    return HeldIds([Informer(client, _type("FooPool"), Metrics())])


def _derived_identities(count: int) -> tuple[InfrastructureKinds, list[JSON]]:
    """Return identities of a namespaced kind, each of which is derived from the next."""
    kind = IdentityKind(
        resource=_type("FooIdentity"), refers_to_secret=False, sources=("FooIdentity",)
    )
    identities: list[JSON] = [
        _object(
            kind.resource,
            f"i{number}",
            spec={"sourceIdentityRef": {"kind": "FooIdentity", "name": f"i{number + 1}"}},
        )
        for number in range(count)
    ]
    return replace(_kinds(), identities=(kind,)), identities


def test_only_as_many_sources_are_followed_as_a_chain_can_have() -> None:
    """Of thousands of identities, each change of one blocked the event loop."""
    kinds, identities = _derived_identities(100)
    found = _caches(*identities, kinds=kinds).identity

    keys = [f"FooIdentity/ns/i{number}" for number in range(101)]
    assert found.find_chain(keys[0]) == keys[: MAX_CHAIN + 1]
    assert found.find_derived(keys[50]) == keys[50 : 50 - MAX_CHAIN - 1 : -1]


def test_only_as_many_recorded_sources_are_read_as_a_chain_can_have() -> None:
    kinds, identities = _derived_identities(1)
    names = [f"FooIdentity/s{number}" for number in range(100)]
    recorded = {"annotations": {f"{GROUP}/sources": ",".join(names)}}
    machine = _object(_type("FooMachine"), "m", metadata=recorded)
    identities[0]["metadata"] |= recorded
    caches = _caches(*identities, machine, kinds=kinds)

    keys = [f"FooIdentity/ns/s{number}" for number in range(100)]
    assert list(caches.identity.find_member_keys(machine)) == keys[:MAX_CHAIN]
    assert list(caches.identity.find_source_keys(identities[0])) == (
        ["FooIdentity/ns/i1", *keys[:MAX_CHAIN]]
    )


def test_objects_of_any_shape_do_not_hide_who_holds_an_id() -> None:
    kind = _type("FooMachine")
    spec: JSON = {"providerID": "foo:///1", "providerIDList": [{}, None, 1, "foo:///2"]}
    status: JSON = {"conditions": [None, True, [], {"type": "Ready", "status": "True"}]}
    shaped = _object(kind, "m0", spec=spec, status=status)
    others = [_object(kind, f"m{each}", spec={"providerID": f"foo:///{each}"}) for each in (1, 2)]
    held_ids = _caches(shaped, *others).held_ids

    assert held_ids.find_taken(shaped) is None
    assert all(held_ids.find_taken(other) is not None for other in others)
