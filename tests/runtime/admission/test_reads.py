"""What validators read besides the request: the object's Cluster, and other objects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from capsmith_runtime.admission import AdmissionObject, AdmissionWarning, FieldError, Validator
from capsmith_runtime.admission.controllers import AdmissionHandler
from capsmith_runtime.contract.v1beta2 import CoreV1Beta2
from capsmith_runtime.errors import CallEndedError, ForbiddenError, create_api_error
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.http_server import Request
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient, KubernetesReader
from capsmith_runtime.reconcile.permissions import Permissions, PolicyRule
from capsmith_runtime.testing.admission import admission_object, core_cluster
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests
from tests.runtime.admission.requests import (
    GROUP,
    WidgetSpec,
    author,
    defaulted,
    handler_of,
    review,
    template,
    widget,
)

Widget = AdmissionObject[WidgetSpec]
READS = Permissions([PolicyRule(("",), ("configmaps",), ("get", "list"))])
LABELS = {"cluster.x-k8s.io/cluster-name": "c1"}
CLUSTER = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "Cluster",
    "metadata": {"namespace": "default", "name": "c1"},
    "spec": {"paused": True},
}
SIZES = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"namespace": "default", "name": "sizes"},
    "data": {"s": ""},
}


class HangingApi(FakeApi):
    """An API server that answers no read."""

    def __init__(self) -> None:
        super().__init__("v1beta2", Manifests(()))

    async def get(self, *_: Any) -> Any:
        await asyncio.Event().wait()


def answer_of(
    result: Any,
    obj: dict[str, Any],
    *existing: dict[str, Any],
    api: FakeApi | None = None,
    cls: type[Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Return the response to the creation of an object, besides existing ones."""

    async def main() -> dict[str, Any]:
        server = api or FakeApi("v1beta2", Manifests(()))
        for each in existing:
            server.add(each)
        handler = handler_of(cls or author(result), server, READS, **changes)
        return await ask(handler, review("CREATE", obj))

    return asyncio.run(main())


async def ask(handler: AdmissionHandler, body: Any) -> dict[str, Any]:
    path = f"/validate/widgets.{GROUP}"
    response = await handler.routes[path](Request("POST", path, json.dumps(body).encode()))
    found: dict[str, Any] = json.loads(response.body)["response"]
    return found


def describe_cluster(obj: Widget) -> Sequence[AdmissionWarning]:
    cluster = obj.cluster
    text = "no cluster" if cluster is None else f"{cluster.name} {cluster.paused}"
    return [AdmissionWarning(text)]


OWNED = {"ownerReferences": [{**{k: CLUSTER[k] for k in ("apiVersion", "kind")}, "name": "c1"}]}


@pytest.mark.parametrize("metadata", [{"labels": LABELS}, OWNED])
def test_a_cluster_that_is_not_cached_yet_is_read(metadata: dict[str, Any]) -> None:
    answer = answer_of(describe_cluster, widget({"size": "s"}, **metadata), CLUSTER)

    assert answer["warnings"] == ["c1 True"]


def test_a_cached_cluster_costs_no_request() -> None:
    async def main() -> None:
        api = FakeApi("v1beta2", Manifests(()))
        api.add(CLUSTER)
        caches = Caches(api, Metrics(), CoreV1Beta2(), WatchScope())
        running = asyncio.create_task(caches.clusters.run())
        await caches.clusters.synced.wait()
        handler = handler_with(caches.clusters, api)
        answer = await ask(handler, review("CREATE", widget({"size": "s"}, labels=LABELS)))
        running.cancel()
        assert answer["warnings"] == ["c1 True"]

    def handler_with(informer: Informer, api: FakeApi) -> AdmissionHandler:
        handler = handler_of(author(describe_cluster), HangingApi(), timeout_seconds=2)
        handler._reads._caches.clusters = informer
        return handler

    asyncio.run(main())


NAMELESS = {**OWNED["ownerReferences"][0], "name": "../secrets/token"}


@pytest.mark.parametrize(
    ("obj", "requests"),
    [
        (widget({"size": "s"}), 0),
        (widget({"size": "s"}, labels=LABELS), 1),
        (widget({"size": "s"}, ownerReferences=[NAMELESS]), 0),
        (template({"size": "s"}), 0),
    ],
    ids=["no label", "no such cluster", "no name of an object", "template"],
)
def test_an_object_without_a_cluster(obj: dict[str, Any], requests: int) -> None:
    api = FakeApi("v1beta2", Manifests(()))
    answer = answer_of(describe_cluster, obj, api=api)

    assert answer["warnings"] == ["no cluster"]
    assert len(api.requests) == requests


def test_only_validators_that_use_the_cluster_depend_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: Any) -> Any:
        raise create_api_error(403, "Forbidden", "no")

    monkeypatch.setattr(FakeApi, "get", refuse)
    obj = widget({"size": "s"}, labels=LABELS)

    assert answer_of((), obj)["allowed"]
    refused = answer_of(describe_cluster, obj)
    assert "raised ForbiddenError" in refused["status"]["message"]


class AsyncValidator(Validator[WidgetSpec]):
    async def validate_create(self, obj: Widget) -> list[AdmissionWarning]:
        found = await obj.client.get_async("v1", "ConfigMap", "sizes")
        names = [
            each["metadata"]["name"] for each in await obj.client.list_async("v1", "ConfigMap")
        ]
        return [*describe_cluster(obj), AdmissionWarning(f"{found is not None} {names}")]


def test_async_validators_read_too() -> None:
    answer = answer_of((), widget({"size": "s"}, labels=LABELS), CLUSTER, SIZES, cls=AsyncValidator)

    assert answer["warnings"] == ["c1 True", "True ['sizes']"]


def find_size(obj: Widget) -> Any:
    sizes = obj.client.get("v1", "ConfigMap", "sizes")
    if sizes is not None and obj.spec.size not in sizes["data"]:
        yield FieldError("size", "is not offered here", "FieldValueNotSupported")


@pytest.mark.parametrize(("size", "allowed"), [("s", True), ("m", False)])
def test_the_client_reads_in_the_namespace_of_the_object(size: str, allowed: bool) -> None:
    api = FakeApi("v1beta2", Manifests(()))

    assert answer_of(find_size, widget({"size": size}), SIZES, api=api)["allowed"] is allowed
    assert api.requests == [("get", "ConfigMap", NamespacedName("default", "sizes"))]


def test_undeclared_reads_are_refused() -> None:
    answer = answer_of(
        lambda obj: obj.client.get("v1", "Secret", "password"), widget({"size": "s"})
    )

    assert "raised NotDeclaredError" in answer["status"]["message"]


def test_the_client_cannot_write() -> None:
    """The webhooks declare sideEffects None, and are called in dry runs."""
    read = {"get", "get_async", "list", "list_async"}

    assert {name for name in dir(KubernetesReader) if not name.startswith("_")} == read
    assert {name for name in dir(KubernetesClient) if not name.startswith("_")} > read


@pytest.mark.parametrize("hangs", [find_size, describe_cluster], ids=["client", "cluster"])
def test_reads_end_with_the_time_limit(hangs: Callable[[Widget], Any]) -> None:
    """The thread does not hang either: it gets an error at once."""
    ended: list[BaseException] = []

    def validate(obj: Widget) -> Any:
        try:
            return list(hangs(obj))
        except BaseException as error:
            ended.append(error)
            raise

    async def main() -> None:
        api = HangingApi()
        handler = handler_of(author(validate), api, READS, timeout_seconds=1)
        obj = widget({"size": "s"}, labels=LABELS if hangs is describe_cluster else {})
        answer = await ask(handler, review("CREATE", obj))
        assert "took too long" in answer["status"]["message"]
        async with asyncio.timeout(30):
            while handler._executor.calls.abandoned:
                await asyncio.sleep(0.01)

    asyncio.run(main())
    assert [type(each) for each in ended] == ([CallEndedError] if hangs is find_size else [])


def test_nothing_is_read_after_the_call() -> None:
    kept: list[KubernetesReader] = []

    def keep(obj: Widget) -> Sequence[FieldError]:
        kept.append(obj.client)
        return ()

    async def main() -> None:
        handler = handler_of(author(keep), FakeApi("v1beta2", Manifests(())), READS)
        await ask(handler, review("CREATE", widget({"size": "s"})))
        with pytest.raises(CallEndedError):
            await kept[0].get_async("v1", "ConfigMap", "sizes")

    asyncio.run(main())


def test_defaulters_read_nothing() -> None:
    found: list[Any] = []

    def read(obj: Widget) -> WidgetSpec:
        found.append(obj.cluster)
        with pytest.raises(RuntimeError, match="defaults depend on the object alone"):
            obj.client.get("v1", "ConfigMap", "sizes")
        return obj.spec

    defaulted(author(read), widget({"size": "s"}, labels=LABELS))
    assert found == [None]


def test_unit_tests_pass_a_cluster() -> None:
    obj = admission_object(WidgetSpec(size="s"), cluster=core_cluster("c1"))

    assert obj.cluster is not None
    assert obj.cluster.name == "c1"
    assert admission_object(WidgetSpec(size="s")).cluster is None
    failed = admission_object(WidgetSpec(size="s"), cluster=ForbiddenError("no"))
    with pytest.raises(ForbiddenError):
        _ = failed.cluster
