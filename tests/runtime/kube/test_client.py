"""The client on a real API server: what it sends, what it makes of answers, TLS."""

from __future__ import annotations

import asyncio
import gzip
import json
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from capsmith.clusters.processes.pki import Pki
from capsmith_runtime.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnreachableError,
)
from capsmith_runtime.kube.client import NamespacedName, ResourceType, Selection
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.request_limit import RequestLimit
from capsmith_runtime.kube.responses import parse_event, parse_page
from capsmith_runtime.kube.workqueue import WorkQueue
from tests.runtime.support.faults import Loss, Request, failure
from tests.runtime.support.following import WIDGET, connected, sample
from tests.runtime.support.http1 import Answer
from tests.runtime.support.proxy import FaultProxy
from tests.runtime.support.server import Api

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps")
SECRET = ResourceType("", "v1", "Secret", "secrets")


def always(request: Request) -> bool:
    return True


async def test_every_verb(api: Api, kubeconfig: Path, namespace: str) -> None:
    key = NamespacedName(namespace, "a")
    metadata = {"namespace": namespace, "name": "a"}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    async with connected(kubeconfig) as client:
        created = await client.create(CONFIG_MAP, {**config_map, "data": {"a": "1"}})
        with pytest.raises(AlreadyExistsError):
            await client.create(CONFIG_MAP, config_map)
        assert (await client.get(CONFIG_MAP, key)) == created
        version = created["metadata"]["resourceVersion"]
        await client.patch(CONFIG_MAP, key, {"data": {"b": "2"}}, resource_version=version)
        with pytest.raises(ConflictError):
            await client.patch(CONFIG_MAP, key, {"data": {"b": "3"}}, resource_version=version)
        applied = await client.apply(CONFIG_MAP, {**config_map, "data": {"c": "3"}})
        assert applied["data"] == {"a": "1", "b": "2", "c": "3"}
        managers = {each["manager"] for each in applied["metadata"]["managedFields"]}
        assert managers == {"tests"}
        with pytest.raises(ConflictError):
            await client.delete(CONFIG_MAP, key, uid="another")
        await client.delete(CONFIG_MAP, key, uid=created["metadata"]["uid"])
        with pytest.raises(NotFoundError):
            await client.get(CONFIG_MAP, key)


async def test_metadata_may_come_alone(kubeconfig: Path, namespace: str) -> None:
    """What was not requested is neither sent nor kept."""
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": "a", "labels": {"l": "1"}},
        "data": {"large": "x"},
    }
    selection = Selection(namespace=namespace, labels="l", metadata_only=True)
    async with connected(kubeconfig) as client:
        await client.create(CONFIG_MAP, config_map)
        page = await client.list_page(CONFIG_MAP, selection)
        body = {"data": {"large": "y"}}
        changed = await client.patch(CONFIG_MAP, NamespacedName(namespace, "a"), body)
        watch = client.watch(CONFIG_MAP, selection, resource_version=page.resource_version)
        async with aclosing(watch) as events:
            event = await anext(events)
    (listed,) = page.items
    for found in (listed, event.object):
        assert found["metadata"]["name"] == "a"
        assert found["metadata"]["labels"] == {"l": "1"}
        assert "data" not in found
    version = changed["metadata"]["resourceVersion"]
    assert event.object["metadata"]["resourceVersion"] == version


async def test_managed_fields_may_be_left_out(kubeconfig: Path, namespace: str) -> None:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": "a", "annotations": {"a": "f:ä"}},
        "data": {"managedFields": "1"},
    }
    everything = Selection(namespace=namespace, fields="metadata.name=a")
    found: dict[bool, list[dict[str, Any]]] = {}
    async with connected(kubeconfig) as client:
        created = await client.create(CONFIG_MAP, config_map)
        for managed_fields in (True, False):
            selection = replace(everything, managed_fields=managed_fields)
            page = await client.list_page(CONFIG_MAP, selection)
            watch = client.watch(CONFIG_MAP, selection, resource_version="0")
            async with aclosing(watch) as events:
                found[managed_fields] = [*page.items, (await anext(events)).object]
    assert [each["metadata"].pop("managedFields") for each in found[True]] == (
        2 * [created["metadata"]["managedFields"]]
    )
    assert found[False] == found[True]
    assert all(each["data"] == config_map["data"] for each in found[False])


@pytest.mark.parametrize("managed_fields", [True, False])
@pytest.mark.parametrize(
    "item",
    [
        b"1",
        b"null",
        b"{}",
        b'{"metadata": null}',
        b'{"metadata": []}',
        b'{"metadata": {"name": "\xff"}}',
        b'{"metadata": {}, "data": "\xff"}',
        b'{"metadata": {}, "data": }',
    ],
    ids=lambda item: item[:40].decode(errors="replace"),
)
def test_what_is_no_object_counts_as_no_answer(item: bytes, managed_fields: bool) -> None:
    page = b'{"metadata": {"resourceVersion": "1"}, "items": [%s]}' % item
    with pytest.raises(UnreachableError):
        parse_page(page, managed_fields=managed_fields)
    with pytest.raises(UnreachableError):
        parse_event(b'{"type": "ADDED", "object": %s}' % item, managed_fields=managed_fields)
    with pytest.raises(UnreachableError):
        parse_event(b'{"type": "ERROR", "object": 1}', managed_fields=managed_fields)


async def test_versions_of_a_group(api: Api, kubeconfig: Path) -> None:
    async with connected(kubeconfig) as client:
        assert (await client.served_versions("coordination.k8s.io"))[0] == "v1"
        assert await client.served_versions("not.served") == ()


async def test_refusals_are_typed(api: Api, kubeconfig: Path, namespace: str) -> None:
    api.create(namespace, "a")
    async with connected(kubeconfig) as client:
        with pytest.raises(ForbiddenError, match="cannot get resource"):
            await client.get(SECRET, NamespacedName(namespace, "a"))
        with pytest.raises(InvalidRequestError, match="spec"):
            await client.patch(WIDGET, NamespacedName(namespace, "a"), {"spec": {"color": 1}})
        with pytest.raises(NotFoundError):
            await client.get(WIDGET, NamespacedName(namespace, "b"))


@pytest.mark.parametrize(
    "name",
    # Each of these led to a list, or to a watch that did not end.
    [
        "",
        ".",
        "..",
        "../../../configmaps",
        "a/../b",
        "..%2Fconfigmaps",
        "?watch=true",
        "b?watch=true",
    ],
)
async def test_names_that_no_object_can_have_are_not_found(
    api: Api, kubeconfig: Path, namespace: str, name: str
) -> None:
    api.create(namespace, "b")
    async with connected(kubeconfig) as client:
        key = NamespacedName(namespace, name)
        with pytest.raises(NotFoundError):
            await client.get(WIDGET, key)
        with pytest.raises(NotFoundError):
            await client.patch(WIDGET, key, {})
        with pytest.raises(NotFoundError):
            await client.patch_status(WIDGET, key, {})
        with pytest.raises(NotFoundError):
            await client.delete(WIDGET, key)
        with pytest.raises(NotFoundError):
            await client.get(WIDGET, NamespacedName(f"{namespace}/../{namespace}", "b"))
        assert await client.get(WIDGET, NamespacedName(namespace, "b"))


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (Answer(502, b"<html>Bad Gateway</html>"), ServerError, "<html>Bad Gateway</html>"),
        (Answer(429, b"slow down"), TooManyRequestsError, "slow down"),
        (Answer(500, b"[1]"), ServerError, "[1]"),
        (Answer(500, b'{"message": "\xff"}'), ServerError, ""),
        (Answer(503, b"\xff\xfe"), ServerError, ""),
        (Answer(500, b""), ServerError, ""),
        (Answer(500, b'{"details": 1, "reason": null, "message": 2}'), ServerError, "2"),
        (Answer(500, b'{"details": {"retryAfterSeconds": "x"}}'), ServerError, ""),
        (Answer(418, b"{}"), ApiError, ""),
        (Answer(302, b"moved"), UnreachableError, ""),
    ],
    ids=lambda value: str(getattr(value, "status", "")),
)
async def test_errors_with_any_body(
    api: Api, proxy: FaultProxy, kubeconfig: Path, answer: Answer, kind: type, message: str
) -> None:
    proxy.inject(answer, always)
    async with connected(kubeconfig) as client:
        with pytest.raises(ApiError) as caught:
            await client.get(WIDGET, NamespacedName("default", "a"))
    assert type(caught.value) is kind
    assert message in str(caught.value)


LARGE = b'{"metadata": {"name": "' + 100_000 * b"a" + b'"}}'


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, LARGE),
        Answer(500, LARGE),
        Answer(200, gzip.compress(LARGE), {"Content-Encoding": "gzip"}),
        Answer(500, gzip.compress(LARGE), {"Content-Encoding": "gzip"}),
    ],
    ids=lambda answer: f"{answer.status}-{len(answer.body)}",
)
async def test_servers_that_are_not_trusted_cannot_fill_the_memory(
    api: Api, proxy: FaultProxy, kubeconfig: Path, answer: Answer
) -> None:
    key = NamespacedName("default", "a")
    async with connected(kubeconfig, max_response_bytes=50_000) as client:
        page = await client.list_page(WIDGET, Selection())
        proxy.inject(answer, always)
        with pytest.raises(UnreachableError, match=r"more than 50000 bytes|compressed"):
            await client.get(WIDGET, key)
        with pytest.raises(UnreachableError, match=r"more than 50000 bytes|compressed"):
            async with aclosing(
                client.watch(WIDGET, Selection(), resource_version=page.resource_version)
            ) as events:
                await anext(events)
        proxy.calm()
        with pytest.raises(NotFoundError):
            await client.get(WIDGET, key)
    async with connected(kubeconfig) as client:
        proxy.inject(Answer(200, LARGE), always)
        assert len((await client.get(WIDGET, key))["metadata"]["name"]) == 100_000


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "7"}, {}, 7),
        ({"Retry-After": "999999"}, {}, 300),
        ({"Retry-After": 5000 * "9"}, {}, 300),
        ({"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, {}, None),
        ({"Retry-After": "-1"}, {}, None),
        ({"Retry-After": "\u00b2"}, {}, None),
        ({}, {"details": {"retryAfterSeconds": 3}}, 3),
        ({}, {"details": {"retryAfterSeconds": 10**9}}, 300),
        ({}, {"details": {"retryAfterSeconds": -3}}, None),
    ],
)
async def test_retry_after(
    api: Api,
    proxy: FaultProxy,
    kubeconfig: Path,
    headers: dict[str, str],
    body: dict[str, Any],
    seconds: float | None,
) -> None:
    proxy.inject(Answer(429, json.dumps(body).encode(), headers), always)
    async with connected(kubeconfig) as client:
        with pytest.raises(TooManyRequestsError) as caught:
            await client.get(WIDGET, NamespacedName("default", "a"))
    assert caught.value.retry_after == seconds
    queue: WorkQueue[str] = WorkQueue("q", Metrics())
    assert queue.add_rate_limited("a", at_least=caught.value.retry_after or 0) >= (seconds or 0)
    queue.close()


@pytest.mark.parametrize("fault", [Loss.DROP, Loss.UNANSWERED, Loss.SILENCE])
async def test_no_answer_is_bounded(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str, fault: Loss
) -> None:
    api.create(namespace, "a")
    proxy.inject(fault, lambda request: request.write, times=1)
    metrics = Metrics()
    async with connected(kubeconfig, metrics, request_seconds=3.0) as client:
        async with asyncio.timeout(25):  # less than by default
            with pytest.raises(UnreachableError):
                await client.patch(
                    WIDGET, NamespacedName(namespace, "a"), {"spec": {"color": "red"}}
                )
        applied = api.get(namespace, "a")["spec"].get("color") == "red"
        assert applied is (fault is Loss.UNANSWERED)
        answer = await client.patch(
            WIDGET, NamespacedName(namespace, "a"), {"spec": {"color": "red"}}
        )
    assert answer["spec"]["color"] == "red"
    assert sample(metrics, 'kube_requests_total{code="none",verb="patch"}') == 1
    assert sample(metrics, 'kube_requests_total{code="200",verb="patch"}') == 1


async def test_half_open_connections_are_given_up(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """A kept connection that answers nothing costs one time-out, not one for each request."""
    api.create(namespace, "a")
    async with connected(kubeconfig, request_seconds=3.0) as client:
        await client.get(WIDGET, NamespacedName(namespace, "a"))
        proxy.freeze()
        with pytest.raises(UnreachableError):
            await client.get(WIDGET, NamespacedName(namespace, "a"))
        assert await client.get(WIDGET, NamespacedName(namespace, "a"))


async def test_many_requests_at_once(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """Not one waits for another, and few connections are left over."""
    api.create(namespace, "a")
    proxy.inject(failure(500, "InternalError"), lambda request: len(proxy.requests) % 3 == 0)
    async with connected(kubeconfig) as client:
        calls = (client.get(WIDGET, NamespacedName(namespace, "a")) for _ in range(60))
        answers = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(answer) for answer in answers} == {dict, ServerError}


async def test_a_server_of_another_authority_is_refused(
    api: Api, proxy: FaultProxy, kubeconfig: Path, tmp_path: Path
) -> None:
    stranger = Pki(tmp_path / "stranger")
    text = kubeconfig.read_text().replace(api.pki.ca_bundle, stranger.ca_bundle)
    kubeconfig.write_text(text)
    async with connected(kubeconfig) as client:
        with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(WIDGET, NamespacedName("default", "a"))
    assert proxy.requests == []


async def test_an_address_may_have_a_path(
    api: Api, proxy: FaultProxy, kubeconfig: Path, tmp_path: Path
) -> None:
    """As that of a server before many clusters."""
    text = kubeconfig.read_text()
    assert proxy.url in text
    below = tmp_path / "kubeconfig"
    below.write_text(text.replace(proxy.url, f"{proxy.url}/clusters/c-1/"))
    proxy.inject(Answer(200, b'{"metadata": {"resourceVersion": "1"}, "items": []}'), always)
    async with connected(below) as client:
        await client.list_page(CONFIG_MAP, Selection(namespace="n", labels="a=b,c!=d"))
    (request,) = proxy.requests
    assert request.path == "/clusters/c-1/api/v1/namespaces/n/configmaps"
    assert request.query["labelSelector"] == "a=b,c!=d"


async def test_an_unreachable_server(api: Api, proxy: FaultProxy, kubeconfig: Path) -> None:
    proxy.refuse()
    async with connected(kubeconfig) as client:
        with pytest.raises(UnreachableError):
            await client.get(WIDGET, NamespacedName("default", "a"))


async def test_the_rate_limits_all_requests_but_those_for_leases(
    kubeconfig: Path, namespace: str
) -> None:
    lease = ResourceType("coordination.k8s.io", "v1", "Lease", "leases")
    absent = NamespacedName(namespace, "absent")
    async with connected(kubeconfig, limit=RequestLimit(0.001, 1)) as client:
        with pytest.raises(NotFoundError):
            await client.get(CONFIG_MAP, absent)
        waiting = asyncio.create_task(client.get(CONFIG_MAP, absent))
        for _ in range(3):
            with pytest.raises(NotFoundError):
                await client.get(lease, absent)
        assert not waiting.done()
        waiting.cancel()
