"""Informers through what happens to a watch: it ends, breaks, falls silent or is too old."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path

import pytest

from capsmith_runtime.kube.client import Selection
from capsmith_runtime.kube.clock import Backoff
from tests.runtime.support.faults import Hold, Loss, Request, failure
from tests.runtime.support.following import Following, following
from tests.runtime.support.http1 import Answer
from tests.runtime.support.proxy import FaultProxy
from tests.runtime.support.server import Api
from tests.runtime.support.waiting import eventually

EXPIRED = failure(410, "Expired", "too old resource version")


def is_list(request: Request) -> bool:
    """Return whether all objects are requested, and not only the server's version."""
    return request.method == "GET" and not request.watch and request.query.get("limit") != "1"


def is_watch(request: Request) -> bool:
    return request.watch


def watches(proxy: FaultProxy) -> int:
    return sum(request.watch for request in proxy.requests)


async def settled(api: Api, namespace: str, found: Following) -> None:
    """Changes made from now on are seen too, and nothing has been missed."""
    api.create(namespace, f"last-{time.monotonic_ns()}")
    listed = api.widgets(namespace)
    await eventually(lambda: found.agrees_with(listed), what="the cache is the list")


async def test_success_ends_the_backoff(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """Many failures long ago do not make the next one cost more."""
    proxy.inject(failure(500, "InternalError"), is_list, times=5)
    backoff = Backoff(base=0.01, limit=60)
    async with following(kubeconfig, Selection(namespace), informer={"backoff": backoff}) as found:
        await found.synced()
        assert found.restarts("ServerError") == 5
        assert backoff.failures == 0


async def test_broken_connection(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """The next watch delivers changes that happened in between, without a new list."""
    api.create(namespace, "stays")
    api.create(namespace, "goes")
    async with following(kubeconfig, Selection(namespace)) as found:
        await eventually(lambda: watches(proxy) == 1)
        proxy.refuse()
        api.delete(namespace, "goes")
        api.change(namespace, "stays", size=1)
        await eventually(lambda: found.restarts("Unreachable") >= 1)
        proxy.refuse(False)
        await settled(api, namespace, found)
    assert sum(is_list(request) for request in proxy.requests) == 1


async def test_half_open_watch_is_found_in_bounded_time(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    async with following(kubeconfig, Selection(namespace), silence_seconds=1.0) as found:
        await eventually(lambda: watches(proxy) == 1)
        proxy.freeze()
        api.create(namespace, "unheard")
        await eventually(lambda: found.names() == {"unheard"}, 30, "sooner than by default")
        await settled(api, namespace, found)


async def test_silent_list_is_bounded(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    proxy.inject(Loss.SILENCE, is_list, times=1)
    async with following(kubeconfig, Selection(namespace), request_seconds=3.0) as found:
        await asyncio.wait_for(found.informer.synced.wait(), 25)  # less than by default
        assert found.restarts("Unreachable") == 1


async def test_server_ends_watches_in_time(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """A time-out of the server's is no failure: the next watch follows at once, from there."""
    async with following(kubeconfig, Selection(namespace), watch_seconds=(1.0, 1.0)) as found:
        await eventually(lambda: watches(proxy) >= 3)
        await settled(api, namespace, found)
        assert found.restarts("ended") >= 2
        assert found.restarts("Unreachable") == 0
    assert sum(is_list(request) for request in proxy.requests) == 1


async def test_watches_that_end_at_once_are_slowed_down(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    proxy.inject(Answer(200), is_watch)
    began = time.monotonic()
    async with following(kubeconfig, Selection(namespace)) as found:
        await found.synced()
        await asyncio.sleep(1.0)  # the very thing under test is a rate
        assert watches(proxy) <= 30 * (time.monotonic() - began)
        await eventually(lambda: watches(proxy) >= 3)


@pytest.mark.parametrize("spoken", ["status", "event"])
async def test_watch_that_is_too_old(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str, spoken: str
) -> None:
    """Both ways of the server to say so lead to a new list; handlers see what went."""
    event = Answer(200, b'{"type":"ERROR","object":' + EXPIRED.body + b"}\n")
    api.create(namespace, "goes")
    async with following(kubeconfig, Selection(namespace)) as found:
        await eventually(lambda: watches(proxy) == 1)
        gone = proxy.inject(EXPIRED if spoken == "status" else event, is_watch, times=1)
        proxy.drop()
        api.delete(namespace, "goes")
        await eventually(lambda: gone.hits == 1 and not found.informer.items())
        await settled(api, namespace, found)
        assert found.restarts("gone") == 1
    assert [change.new is None for change in found.follower.changes].count(True) == 1
    assert sum(is_list(request) for request in proxy.requests) == 2


async def test_pages_that_expire(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """The second page comes too late: everything is taken at once, nothing twice."""
    for name in ("a", "b", "c"):
        api.create(namespace, name)
    proxy.inject(EXPIRED, lambda request: "continue" in request.query, times=1)
    proxy.inject(
        _first_page(api, namespace), lambda request: request.query.get("limit", "") != "", times=1
    )
    async with following(kubeconfig, Selection(namespace)) as found:
        await settled(api, namespace, found)
    limits = [request.query.get("limit") for request in proxy.requests if is_list(request)]
    assert limits == ["250", "250", None]


async def test_pages_that_expire_for_real(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """etcd is compacted and the server restarted between two pages."""
    monkeypatch.setattr("capsmith_runtime.kube.reflector._PAGE", 2)
    for number in range(5):
        api.create(namespace, f"w-{number}")
    compacted = threading.Event()
    held = proxy.inject(Hold(compacted), lambda request: "continue" in request.query, times=1)
    async with following(kubeconfig, Selection(namespace)) as found:
        await eventually(lambda: held.hits == 1)
        for number in range(5):
            api.delete(namespace, f"w-{number}")
        await asyncio.to_thread(api.compact)
        await api.restart()
        compacted.set()
        await found.synced()
        assert found.names() == set()
        await settled(api, namespace, found)
    answers = [request.query.get("limit") for request in proxy.requests if is_list(request)]
    assert answers == ["2", "2", None]


async def test_watch_from_before_a_compaction_and_a_restart(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """The real 410: the server has forgotten what happened while we were cut off."""
    api.create(namespace, "goes")
    api.create(namespace, "stays")
    async with following(kubeconfig, Selection(namespace)) as found:
        await eventually(lambda: watches(proxy) == 1)
        proxy.refuse()
        api.delete(namespace, "goes")
        await asyncio.to_thread(api.compact)
        await api.restart()
        proxy.refuse(False)
        await eventually(lambda: found.names() == {"stays"})
        await settled(api, namespace, found)
        assert found.restarts("gone") >= 1


async def test_server_restart(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    async with following(kubeconfig, Selection(namespace)) as found:
        await eventually(lambda: watches(proxy) == 1)
        await api.restart()
        await settled(api, namespace, found)
        assert found.informer.synced.is_set()


async def test_bookmarks_keep_a_quiet_watch_fresh(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """Nothing happens to what is watched, much to the rest, then etcd forgets: no new list."""
    options = {"watch_seconds": (4.0, 4.0)}
    async with following(kubeconfig, Selection(namespace), **options) as found:
        await eventually(lambda: watches(proxy) == 1)
        first = found.informer._cache.seen
        other = await asyncio.to_thread(api.new_namespace)
        last = api.create(other, "elsewhere")
        version = int(last["metadata"]["resourceVersion"])
        await eventually(lambda: found.informer._cache.seen >= version, what="a bookmark")
        assert found.informer._cache.seen > first
        await asyncio.to_thread(api.compact)
        proxy.drop()
        await eventually(lambda: watches(proxy) >= 2)
        await settled(api, namespace, found)
        assert found.restarts("gone") == 0
    assert found.follower.faults == []
    assert sum(is_list(request) for request in proxy.requests) == 1


@pytest.mark.parametrize(
    "nonsense",
    [b"<html>gateway</html>", b"{}", b'{"type":"ADDED"}\n', b'["x"]\n', b"\xff\xfe\n"],
)
async def test_nonsense_is_not_the_end(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str, nonsense: bytes
) -> None:
    """Something between us and the server answers for it."""
    proxy.inject(Answer(200, nonsense), lambda request: True, times=3)
    async with following(kubeconfig, Selection(namespace)) as found:
        await found.synced()
        proxy.inject(Answer(200, nonsense), is_watch, times=2)
        proxy.drop()
        await settled(api, namespace, found)


def _first_page(api: Api, namespace: str) -> Answer:
    path = api.client.path("runtime.capsmith.test/v1", "Widget", None, namespace)
    return Answer(200, json.dumps(api.client.request("GET", path, query={"limit": "1"})).encode())
