"""Credentials that change while the process runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from capsmith_runtime.errors import UnauthorizedError
from capsmith_runtime.kube import lightkube_client
from capsmith_runtime.kube.client import NamespacedName, Selection
from tests.runtime.support.faults import Injection, failure
from tests.runtime.support.following import WIDGET, connect, connected, following
from tests.runtime.support.proxy import FaultProxy
from tests.runtime.support.server import Api
from tests.runtime.support.waiting import eventually

REFUSED = failure(401, "Unauthorized")


def revoke(proxy: FaultProxy, kubeconfig: Path) -> Injection:
    """Make the server refuse the token that is in the file now."""
    text = kubeconfig.read_text()
    return proxy.inject(
        REFUSED, lambda request: request.headers["authorization"].removeprefix("Bearer ") in text
    )


async def test_a_rotated_token_is_read_again(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """The real 401, and the request that met it succeeds all the same."""
    api.create(namespace, "a")
    kubeconfig.write_text(api.kubeconfig(proxy.url, "expired"))
    async with connected(kubeconfig) as client:
        kubeconfig.write_text(api.kubeconfig(proxy.url, api.new_token()))
        assert await client.get(WIDGET, NamespacedName(namespace, "a"))
        assert await client.get(WIDGET, NamespacedName(namespace, "a"))
    assert len(proxy.requests) == 3


async def test_many_requests_meet_the_rotation_at_once(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    api.create(namespace, "a")
    async with connected(kubeconfig) as client:
        await client.get(WIDGET, NamespacedName(namespace, "a"))
        revoked = revoke(proxy, kubeconfig)
        kubeconfig.write_text(api.kubeconfig(proxy.url, api.new_token()))
        calls = (
            client.patch(WIDGET, NamespacedName(namespace, "a"), {"spec": {}}) for _ in range(20)
        )
        await asyncio.gather(*calls)
    assert 1 <= revoked.hits <= 20


async def test_without_new_credentials_the_server_is_not_flooded(
    api: Api, proxy: FaultProxy, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lightkube_client, "_RENEW_SECONDS", 600.0)
    revoked = revoke(proxy, kubeconfig)
    async with connected(kubeconfig) as client:
        for _ in range(5):
            with pytest.raises(UnauthorizedError):
                await client.get(WIDGET, NamespacedName("default", "a"))
        assert revoked.hits <= 7
        monkeypatch.setattr(lightkube_client, "_RENEW_SECONDS", 0.0)
        kubeconfig.write_text(api.kubeconfig(proxy.url, api.new_token()))
        await eventually_allowed(client)


async def eventually_allowed(client: lightkube_client.LightkubeClient) -> None:
    page = await client.list_page(WIDGET, Selection("default"))
    assert page.resource_version


@pytest.mark.parametrize("half", ["", "users: [", "a: b", "[]", "apiVersion: v1\nclusters: 1\n"])
async def test_a_file_that_is_half_written(
    api: Api,
    proxy: FaultProxy,
    kubeconfig: Path,
    monkeypatch: pytest.MonkeyPatch,
    half: str,
) -> None:
    """Read in the middle of a rotation: refused for now, and read again later."""
    monkeypatch.setattr(lightkube_client, "_RENEW_SECONDS", 0.0)
    async with connected(kubeconfig) as client:
        revoke(proxy, kubeconfig)
        kubeconfig.write_text(half)
        with pytest.raises(UnauthorizedError):
            await client.get(WIDGET, NamespacedName("default", "a"))
        kubeconfig.unlink()
        with pytest.raises(UnauthorizedError):
            await client.get(WIDGET, NamespacedName("default", "a"))
        kubeconfig.write_text(api.kubeconfig(proxy.url, api.new_token()))
        await eventually_allowed(client)


async def test_a_watch_goes_on_across_a_rotation(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """The old session is closed under the watch when its time is up; nothing is missed."""
    options = {"request_seconds": 3.0}
    async with following(kubeconfig, Selection(namespace), **options) as found:
        await eventually(lambda: any(request.watch for request in proxy.requests))
        revoke(proxy, kubeconfig)
        kubeconfig.write_text(api.kubeconfig(proxy.url, api.new_token()))
        await found.client.list_page(WIDGET, Selection(namespace))
        api.create(namespace, "before")
        await eventually(lambda: found.names() == {"before"})
        watches = sum(request.watch for request in proxy.requests)
        await eventually(lambda: sum(r.watch for r in proxy.requests) > watches)
        api.create(namespace, "after")
        await eventually(lambda: found.names() == {"before", "after"})
        assert found.agrees_with(api.widgets(namespace))
    lists = [each for each in proxy.requests if not each.watch and each.query.get("limit") != "1"]
    assert len(lists) <= 3


async def test_rotations_leave_nothing_open(
    api: Api, proxy: FaultProxy, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lightkube_client, "_RENEW_SECONDS", 0.0)
    client = connect(kubeconfig, request_seconds=30)
    for _ in range(3):
        revoked = revoke(proxy, kubeconfig)
        kubeconfig.write_text(api.kubeconfig(proxy.url, api.new_token()))
        await eventually_allowed(client)
        proxy.heal(revoked)
    await client.close()
    await eventually(lambda: proxy.connections == 0, what="all connections are closed")
