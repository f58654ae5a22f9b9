"""The API of a workload cluster that reconcilers of add-ons get."""

from __future__ import annotations

from typing import cast

import pytest

from capsmith_runtime.addon import AddonState, Workload
from capsmith_runtime.errors import NotFoundError, ServerError
from capsmith_runtime.kube.client import (
    JSON,
    KubeClient,
    NamespacedName,
    Page,
    ResourceType,
    Selection,
)

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps")


class Cluster:
    """A client of a cluster with 600 objects, in pages; it records what it applies and deletes."""

    def __init__(self) -> None:
        self.objects = {f"c{n}": {"metadata": {"name": f"c{n}"}} for n in range(600)}
        self.applied: list[tuple[JSON, bool]] = []
        self.selections: set[Selection] = set()

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int, token: str = ""
    ) -> Page:
        self.selections.add(selection)
        start, names = int(token or 0), list(self.objects)
        items = [self.objects[name] for name in names[start : start + limit]]
        more = str(start + limit) if start + limit < len(names) else ""
        return Page(items, "1", more)

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        if key.name not in self.objects:
            raise NotFoundError("no such object")
        return self.objects[key.name]

    async def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> JSON:
        self.applied.append((obj, force))
        return obj

    async def delete(self, resource: ResourceType, key: NamespacedName, *, uid: str = "") -> None:
        if key.name == "stuck":
            raise ServerError("no quorum")
        if self.objects.pop(key.name, None) is None:
            raise NotFoundError("no such object")


async def read_kubeconfig() -> bytes:
    return b"kubeconfig"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def workload(cluster: Cluster) -> Workload:
    return Workload(cast(KubeClient, cluster), read_kubeconfig)


async def test_objects_of_all_pages(cluster: Cluster, workload: Workload) -> None:
    found = await workload.find_all_async(CONFIG_MAP, "kube-system", "light=on")

    assert found == list(cluster.objects.values())
    assert cluster.selections == {Selection(namespace="kube-system", labels="light=on")}


async def test_an_object_that_does_not_exist_is_no_error(workload: Workload) -> None:
    assert await workload.find_async(CONFIG_MAP, "c1") == {"metadata": {"name": "c1"}}
    assert await workload.find_async(CONFIG_MAP, "none") is None
    assert await workload.delete_async(CONFIG_MAP, "c1") is True
    assert await workload.delete_async(CONFIG_MAP, "c1") is False


async def test_other_errors_are_the_callers(workload: Workload) -> None:
    with pytest.raises(ServerError):
        await workload.delete_async(CONFIG_MAP, "stuck")


async def test_fields_are_forced(cluster: Cluster, workload: Workload) -> None:
    await workload.apply_async(CONFIG_MAP, {"data": {}})

    assert cluster.applied == [({"data": {}}, True)]


async def test_the_kubeconfig(workload: Workload) -> None:
    assert await workload.kubeconfig_async() == b"kubeconfig"


def test_a_reason_is_one_word() -> None:
    assert AddonState(ready=False, reason="LightsOut").reason == "LightsOut"
    with pytest.raises(ValueError, match="lights out"):
        AddonState(reason="lights out")
