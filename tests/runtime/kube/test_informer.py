"""Informers on a real API server, with nothing in the way."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from capsmith_runtime.kube.client import NamespacedName, Selection
from capsmith_runtime.reconcile.caches import WatchScope
from tests.runtime.support.following import Following, following
from tests.runtime.support.proxy import FaultProxy
from tests.runtime.support.server import Api
from tests.runtime.support.waiting import eventually

PAGE = 250


def fill(api: Api, namespace: str, count: int) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: api.create(namespace, f"w-{number}"), range(count)))


async def test_list_in_pages(api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str) -> None:
    await asyncio.to_thread(fill, api, namespace, PAGE + 10)
    async with following(kubeconfig, Selection(namespace)) as found:
        await found.synced()

        assert found.agrees_with(api.widgets(namespace))
    lists = [request for request in proxy.requests if not request.watch]
    assert [request.query.get("limit") for request in lists] == [str(PAGE)] * 2
    assert len(found.follower.changes) == PAGE + 10
    assert all(obj["kind"] == "Widget" and obj["apiVersion"] for obj in found.informer.items())


async def test_long_lists_are_compressed(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """The API server sends the others in chunks of a few KiB; it compresses from 128 KiB on."""
    for number in range(3):
        await asyncio.to_thread(api.create, namespace, f"w-{number}", text="x" * 100_000)
    async with following(kubeconfig, Selection(namespace)) as found:
        await found.synced()
        await eventually(lambda: any(request.watch for request in proxy.requests))

        assert found.agrees_with(api.widgets(namespace))
    encodings = {request.watch: request.headers["accept-encoding"] for request in proxy.requests}
    assert encodings == {False: "gzip", True: "identity"}


async def test_the_first_list_is_cached_in_batches(
    api: Api, kubeconfig: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most a batch of objects is cached before other work of the event loop has its turn."""
    monkeypatch.setattr("capsmith_runtime.kube.reflector._BATCH", 10)
    await asyncio.to_thread(fill, api, namespace, 35)
    lengths = [0]

    async def watch_length(found: Following) -> None:
        while not found.informer.synced.is_set():
            lengths.append(len(found.informer.items()))
            await asyncio.sleep(0)
        lengths.append(len(found.informer.items()))

    async with following(kubeconfig, Selection(namespace)) as found:
        await watch_length(found)
    steps = [after - before for before, after in pairwise(lengths)]
    assert lengths[-1] == 35
    assert max(steps) <= 10


async def test_changes_arrive_in_order(api: Api, kubeconfig: Path, namespace: str) -> None:
    async with following(kubeconfig, Selection(namespace)) as found:
        await found.synced()
        api.create(namespace, "a", size=0)
        for size in range(1, 6):
            api.change(namespace, "a", size=size)
        api.delete(namespace, "a")
        await eventually(lambda: found.follower.changes and not found.informer.items())

        sizes = [change.new and change.new["spec"]["size"] for change in found.follower.changes]
        assert sizes == [0, 1, 2, 3, 4, 5, None]
        assert found.agrees_with([])


async def test_only_what_is_selected(api: Api, kubeconfig: Path, namespace: str) -> None:
    """By namespace, label and field, on the server: what leaves the selection is deleted."""
    other = api.new_namespace()
    selection = Selection(namespace, labels=f"case={namespace}", fields="spec.color=red")
    api.create(namespace, "red", color="red")
    api.create(namespace, "blue", color="blue")
    api.create(other, "elsewhere", color="red")
    async with following(kubeconfig, selection) as found:
        await found.synced()
        assert found.names() == {"red"}
        api.change(namespace, "blue", color="red")
        await eventually(lambda: found.names() == {"red", "blue"})
        api.change(namespace, "red", color="blue")
        await eventually(lambda: found.names() == {"blue"})
        assert found.follower.faults == []


async def test_all_namespaces(api: Api, kubeconfig: Path, namespace: str) -> None:
    other = api.new_namespace()
    api.create(namespace, "a")
    async with following(kubeconfig, Selection(labels=f"case in ({namespace},{other})")) as found:
        await found.synced()
        api.create(other, "a")
        await eventually(lambda: len(found.informer.items()) == 2)
        assert found.informer.get(NamespacedName(other, "a")) is not None


async def test_index_and_projection(api: Api, kubeconfig: Path, namespace: str) -> None:
    options = {
        "indexes": {"color": lambda obj: [obj["spec"].get("color", "none")]},
        "projection": lambda obj: {**obj, "spec": {"color": obj["spec"].get("color", "none")}},
    }
    api.create(namespace, "a", color="red", secret="x")
    async with following(kubeconfig, Selection(namespace), informer=options) as found:
        await found.synced()
        (obj,) = found.informer.by_index("color", "red")
        assert obj["spec"] == {"color": "red"}
        assert "managedFields" not in obj["metadata"]
        api.change(namespace, "a", color="blue")
        await eventually(lambda: found.informer.by_index("color", "blue"))
        assert not found.informer.by_index("color", "red")
        api.delete(namespace, "a")
        await eventually(lambda: not found.informer.by_index("color", "blue"))


async def test_a_failing_handler_does_not_stop_the_others(
    api: Api, kubeconfig: Path, namespace: str
) -> None:
    def broken(change: object) -> None:
        raise ValueError("a bug")

    async with following(kubeconfig, Selection(namespace)) as found:
        found.informer._handlers.insert(0, (broken, True))
        await found.synced()
        api.create(namespace, "a")
        await eventually(lambda: found.names() == {"a"})
        assert len(found.follower.changes) == 1


async def test_roles_of_single_namespaces_suffice_to_watch_them(
    api: Api, proxy: FaultProxy, tmp_path: Path
) -> None:
    """Several namespaces are listed and watched one by one, without any ClusterRoleBinding."""
    watched = [api.new_namespace() for _ in range(2)]
    other = api.new_namespace()
    account = api.new_account(watched)
    path = tmp_path / "kubeconfig"
    path.write_text(api.kubeconfig(proxy.url, api.new_token(account)))
    for namespace in (*watched, other):
        api.create(namespace, "first")
    async with following(path, [Selection(name) for name in watched]) as found:
        await found.synced()
        assert found.follower.objects.keys() == {(name, "first") for name in watched}

        for namespace in (*watched, other):
            api.create(namespace, "second")
        api.delete(watched[0], "first")
        first, second = watched
        expected = {(first, "second"), (second, "first"), (second, "second")}
        await eventually(
            lambda: {*found.follower.objects} == expected, what="the changes of both namespaces"
        )
        assert found.follower.faults == []


async def test_excluded_namespaces_are_never_sent(
    api: Api, kubeconfig: Path, namespace: str
) -> None:
    """The API server leaves them out of lists and of watches."""
    excluded = api.new_namespace()
    (selection,) = WatchScope(excluded_namespaces=("kube-system", excluded)).select()
    async with following(kubeconfig, selection) as found:
        await found.synced()
        for name in (excluded, namespace):
            api.create(name, "some")
        key = NamespacedName(namespace, "some")
        await eventually(lambda: key in found.follower.objects, what="the other namespace")
        assert excluded not in {key.namespace for key in found.follower.objects}
