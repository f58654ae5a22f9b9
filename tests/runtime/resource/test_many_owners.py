"""Objects with thousands of owners, which any user may create, take little time."""

from __future__ import annotations

import asyncio
from typing import Any

from capsmith_runtime.kube.client import JSON, Page, ResourceType, Selection
from capsmith_runtime.reconcile.kinds import core_type
from capsmith_runtime.resource import caches as resource_caches
from capsmith_runtime.resource.caches import ResourceCaches
from tests.runtime.infrastructure import test_caches as cached

VOLUME = cached._type("FooVolume")
MACHINE = core_type("v1beta2", "Machine", "machines")


def _with_owners(obj: JSON, owners: list[JSON]) -> dict[str, Any]:
    references = [
        cached._owned_by(obj, owner)["metadata"]["ownerReferences"][0] for owner in owners
    ]
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": references}}


def _resources(*objects: JSON) -> ResourceCaches:
    caches = cached._caches(*objects)
    resources = ResourceCaches([cached._resource_kind(VOLUME)], caches)
    asyncio.run(cached._fill(caches.core.machines, *resources.informers.values()))
    return resources


def test_many_owners_that_do_not_exist_are_not_looked_up() -> None:
    """Each look-up is a request, for which a worker waits."""
    requests: list[Selection] = []

    class Lists(cached._Lists):
        async def list_page(self, resource: ResourceType, selection: Selection, **_: Any) -> Page:
            requests.append(selection)
            return await super().list_page(resource, selection)

    machines = [cached._object(MACHINE, f"m{number}") for number in range(1000)]
    resources = _resources()
    resources._infrastructure.core.client = Lists(())  # type: ignore[assignment]
    obj = _with_owners(cached._object(VOLUME, "v"), machines)

    found = asyncio.run(resources.find_uncached_owner(obj))

    assert requests == []
    assert found is not None
    assert f"one of more than {resource_caches.MAX_LOOKUPS} owners" in found.message
    assert found.requeue_after is not None
    assert found.requeue_after >= 60


def test_only_some_of_thousands_of_owners_are_read() -> None:
    label = {"cluster.x-k8s.io/cluster-name": "c"}
    volumes = [cached._object(VOLUME, f"v{number}") for number in range(200)]
    labelled = cached._object(VOLUME, "labelled", metadata={"labels": label})
    for owners, expected in (([*volumes, labelled], None), ([labelled, *volumes], "c")):
        owned = [_with_owners(volume, owners) for volume in volumes]
        resources = _resources(labelled, *owned)
        reads: list[Any] = []
        informer = resources.informers[VOLUME.kind]
        get = informer.get
        informer.get = lambda key, get=get, reads=reads: reads.append(key) or get(key)  # type: ignore

        assert resources.cluster_name(owned[0]) == expected
        assert not resources._belongs_to_machine(owned[0])
        assert len(reads) <= 3 * resource_caches.MAX_OWNERS**2


def test_the_nearest_owners_of_a_long_chain_are_found() -> None:
    label = {"cluster.x-k8s.io/cluster-name": "c"}
    chain = [cached._object(VOLUME, "v0", metadata={"labels": label})]
    for number in range(1, 20):
        chain.append(_with_owners(cached._object(VOLUME, f"v{number}"), [chain[-1]]))

    assert _resources(*chain).cluster_name(chain[-1]) == "c"
