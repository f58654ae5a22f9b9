"""Secrets of identities: read by name, once per change, and kept within bounds."""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from capsmith_runtime.contract.versions import choose
from capsmith_runtime.identity.secrets import KEPT_BYTES, IdentitySecrets
from capsmith_runtime.infrastructure.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.testing import clock
from capsmith_runtime.testing.fake_api import FakeApi
from tests.runtime.infrastructure import scripted_provider

KEY = NamespacedName("tenant", "credentials")


def _kind(name: str, *, namespaced: bool) -> IdentityKind:
    resource = ResourceType("example.com", "v1", name, f"{name.lower()}s", namespaced=namespaced)
    return IdentityKind(resource=resource)


KINDS = (_kind("Shared", namespaced=False), _kind("Tenant", namespaced=True))


class Secrets:
    """The Secrets of one API server, as a manager sees them."""

    def __init__(self, kept_bytes: int) -> None:
        self.api = FakeApi("v1beta2", scripted_provider.PROVIDER.manifests)
        scope = WatchScope(own_namespace="acme-system")
        core = Caches(self.api, Metrics(), choose(["v1beta2"]), scope)
        self.of_identities = IdentitySecrets(core, KINDS, kept_bytes=kept_bytes)
        self.changed: list[str] = []
        self.of_identities.set_handler(lambda obj: self.changed.append(obj["metadata"]["name"]))

    @property
    def gets(self) -> int:
        return sum(verb == "get" for verb, *_ in self.api.requests)

    def add(self, token: str, key: NamespacedName = KEY) -> JSON:
        metadata = {"namespace": key.namespace, "name": key.name}
        data = {"token": base64.b64encode(token.encode()).decode()}
        head = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque"}
        return self.api.add({**head, "metadata": metadata, "data": data})

    def change(self, token: str) -> None:
        self.api.change(
            "Secret", KEY, {"data": {"token": base64.b64encode(token.encode()).decode()}}
        )

    async def read(self, key: NamespacedName = KEY) -> Any:
        return await self.of_identities.read(key, namespaced=True)


@asynccontextmanager
async def _running(secrets: Secrets) -> AsyncIterator[None]:
    informers = secrets.of_identities.informers.values()
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    try:
        for informer in informers:
            await informer.synced.wait()
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _run(scenario: Callable[[Secrets], Awaitable[None]], kept_bytes: int = KEPT_BYTES) -> None:
    async def play() -> None:
        secrets = Secrets(kept_bytes)
        secrets.add("first")
        async with _running(secrets):
            await scenario(secrets)

    clock.run(play())


async def _delivered() -> None:
    await asyncio.sleep(0.01)


def test_a_secret_of_a_restored_server_is_read_again() -> None:
    """Its version is lower than that of the values that were read before."""

    async def scenario(secrets: Secrets) -> None:
        for token in ("second", "third"):
            secrets.change(token)
            await _delivered()
            assert await secrets.read() == {"token": token}
        secrets.api._versions = itertools.count(2)
        secrets.change("fourth")
        await secrets.of_identities.informers[True].refresh()
        assert await secrets.read() == {"token": "fourth"}

    _run(scenario)


def test_secrets_are_watched_without_their_data() -> None:
    async def scenario(secrets: Secrets) -> None:
        watched = secrets.of_identities.find(KEY, namespaced=True)
        assert watched is not None
        assert watched.keys() == {"apiVersion", "kind", "metadata"}
        assert secrets.gets == 0

    _run(scenario)


def test_the_response_to_a_write_is_cached_without_its_data() -> None:
    async def scenario(secrets: Secrets) -> None:
        informer = secrets.of_identities.informers[True]
        body = {"metadata": {"labels": {"a": "b"}}}
        informer.update_from_write(await secrets.api.patch(informer.resource, KEY, body))
        cached = informer.get(KEY)
        assert cached is not None
        assert cached["metadata"]["labels"] == {"a": "b"}
        assert "data" not in cached

    _run(scenario)


def test_many_users_read_a_secret_once_per_change() -> None:
    async def scenario(secrets: Secrets) -> None:
        found = await asyncio.gather(*(secrets.read() for _ in range(10)))
        assert found == [{"token": "first"}] * 10
        assert secrets.gets == 1
        secrets.change("second")
        await _delivered()
        found = await asyncio.gather(*(secrets.read() for _ in range(10)))
        assert found == [{"token": "second"}] * 10
        assert secrets.gets == 2

    _run(scenario)


def test_only_other_data_are_reported() -> None:
    async def scenario(secrets: Secrets) -> None:
        await secrets.read()
        secrets.api.change("Secret", KEY, {"metadata": {"labels": {"team": "x"}}})
        await _delivered()
        assert await secrets.read() == {"token": "first"}
        assert secrets.changed == []
        secrets.change("second")
        await _delivered()
        await secrets.read()
        assert secrets.changed == ["credentials"]

    _run(scenario)


def test_data_that_are_not_text_are_an_error_until_they_change() -> None:
    async def scenario(secrets: Secrets) -> None:
        secrets.api.change("Secret", KEY, {"data": {"token": "/w=="}})
        await _delivered()
        with pytest.raises(ValueError, match="utf-8"):
            await secrets.read()
        secrets.change("second")
        await _delivered()
        assert await secrets.read() == {"token": "second"}
        assert secrets.changed == ["credentials"]

    _run(scenario)


def test_a_secret_that_is_gone_is_none() -> None:
    async def scenario(secrets: Secrets) -> None:
        await secrets.read()
        secrets.api.remove("Secret", KEY)
        assert await secrets.read() == {"token": "first"}
        await _delivered()
        assert await secrets.read() is None
        secrets.add("again")
        await _delivered()
        assert await secrets.read() == {"token": "again"}

    _run(scenario)


def test_values_are_kept_within_bounds() -> None:
    """Many identities with large Secrets cost requests, not memory."""

    async def scenario(secrets: Secrets) -> None:
        large = NamespacedName("tenant", "large")
        secrets.add("x" * 200, large)
        await _delivered()
        await secrets.read()
        for _ in range(2):
            assert await secrets.read(large) == {"token": "x" * 200}
        # The large one was read twice, and pushed the small one out.
        assert secrets.gets == 3
        await secrets.read()
        await secrets.read()
        assert secrets.gets == 4

    _run(scenario, kept_bytes=100)
