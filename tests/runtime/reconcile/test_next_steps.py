"""What a manager logs on a cluster that lacks something names the next command."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, NoReturn, cast

import pytest

from capsmith_runtime.contract.versions import CoreNotServedError, choose
from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import KubeClient, NamespacedName, ResourceType
from capsmith_runtime.kube.leaderelection import LeaderElector
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches, WatchScope


class BareCluster:
    """The answers of an API server without any CRD, and without the manager's namespace."""

    async def list_page(self, *_: object, **__: object) -> NoReturn:
        raise create_api_error(404, "", "404 page not found")

    async def get(self, *_: object) -> NoReturn:
        raise create_api_error(404, "NotFound", "not found")

    async def create(self, *_: object) -> NoReturn:
        raise create_api_error(404, "NotFound", 'namespaces "acme-system" not found')


def logged(
    work: Coroutine[Any, Any, None], caplog: pytest.LogCaptureFixture
) -> tuple[str, dict[str, Any]]:
    """Run ``work`` until it logs a warning; return its message and its values."""

    class Ends(logging.Handler):
        def __init__(self, task: asyncio.Task[None]) -> None:
            super().__init__(logging.WARNING)
            self._task = task

        def emit(self, record: logging.LogRecord) -> None:
            self._task.cancel()

    async def until_warned() -> None:
        task = asyncio.create_task(work)
        ends = Ends(task)
        logging.getLogger().addHandler(ends)
        try:
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            logging.getLogger().removeHandler(ends)

    asyncio.run(until_warned())
    record = caplog.records[-1]
    return record.getMessage(), vars(record)["values"]


@pytest.mark.parametrize(
    ("served", "command"), [([], "clusterctl init"), (["v1alpha4"], "clusterctl upgrade plan")]
)
def test_without_core(served: list[str], command: str) -> None:
    with pytest.raises(CoreNotServedError, match=f"run `{command}`"):
        choose(served)


@pytest.mark.parametrize(
    ("group", "commands"),
    [
        ("cluster.x-k8s.io", ["clusterctl init"]),
        ("infrastructure.cluster.x-k8s.io", ["clusterctl init", "make install-crds"]),
    ],
)
def test_without_a_crd(group: str, commands: list[str], caplog: pytest.LogCaptureFixture) -> None:
    client = cast(KubeClient, BareCluster())
    caches = Caches(client, Metrics(), choose(["v1beta2"]), WatchScope())
    informer = caches.informer(
        ResourceType(group, "v1", "Some", "somes"), WatchScope().select_own()
    )

    message, values = logged(informer.run(), caplog)

    assert message == "watch interrupted"
    assert [command in values["hint"] for command in commands] == [True] * len(commands)


def test_without_the_namespace(caplog: pytest.LogCaptureFixture) -> None:
    client = cast(KubeClient, BareCluster())
    elector = LeaderElector(client, NamespacedName("acme-system", "lease"), "me", Metrics())

    message, values = logged(elector.acquire(), caplog)

    assert message == "cannot create the lease"
    assert values["hint"] == "kubectl create namespace acme-system"
