"""Kubeconfigs that change, or cannot be read, while clients of their clusters are in use."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from capsmith_runtime.errors import UnreachableError, create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.workload.client import UnusableKubeconfigError, WorkloadClients
from capsmith_runtime.workload.kubeconfig import Access, render
from tests.runtime.infrastructure.scripted_provider import PROVIDER

SECRET = NamespacedName("ns", "c-kubeconfig")


class Management(FakeApi):
    """A management cluster that does something before it answers each read of a Secret."""

    def __init__(self) -> None:
        super().__init__("v1beta2", PROVIDER.manifests)
        self.before_answer: Callable[[], None] = lambda: None

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        found = await super().get(resource, key)
        self.before_answer()
        return found


def _data(token: str, server: str = "https://127.0.0.1:1") -> JSON:
    content = render("c", Access(server=server, token=token))
    return {"data": {"value": base64.b64encode(content).decode()}}


@asynccontextmanager
async def _clients(management: Management) -> AsyncIterator[WorkloadClients]:
    """Return clients that read a kubeconfig again only if it is invalidated or a read failed."""
    names = {"name": SECRET.name, "namespace": SECRET.namespace}
    management.add({"apiVersion": "v1", "kind": "Secret", "metadata": names, **_data("first")})
    made = WorkloadClients(management, Metrics(), field_manager="tests", refresh_seconds=600.0)
    yield made
    await made.close()


async def test_an_invalidation_during_a_read_makes_the_next_call_read_again() -> None:
    """The response was on its way when the Secret changed."""
    management = Management()
    async with _clients(management) as made:

        def renew() -> None:
            management.before_answer = lambda: None
            management.change("Secret", SECRET, _data("second"))
            made.invalidate("ns", "c")

        management.before_answer = renew
        outdated = await made.get("ns", "c")
        current = await made.get("ns", "c")
        assert current is not outdated
        assert await made.get("ns", "c") is current


async def test_a_read_that_fails_is_repeated_by_the_next_call() -> None:
    management = Management()
    async with _clients(management) as made:
        kept = await made.get("ns", "c")
        made.invalidate("ns", "c")

        def fail() -> None:
            management.before_answer = lambda: None
            raise create_api_error(0, "ConnectError", "no answer")

        management.before_answer = fail
        with pytest.raises(UnreachableError):
            await made.get("ns", "c")
        management.change("Secret", SECRET, _data("second"))
        assert await made.get("ns", "c") is not kept


@pytest.mark.parametrize("server", ["https://[::1", "https://\u20ac.test", "https://a:b"])
async def test_an_invalid_address_makes_a_kubeconfig_unusable(server: str) -> None:
    management = Management()
    async with _clients(management) as made:
        management.change("Secret", SECRET, _data("first", server))
        with pytest.raises(UnusableKubeconfigError, match="not a URL"):
            await made.get("ns", "c")
