"""Bootstrap data of pools and of waiting machines, which are renewed while in use."""

from __future__ import annotations

import asyncio
import functools
from datetime import UTC, datetime, timedelta

import pytest

from capsmith_runtime.bootstrap import BootstrapDocument, Waiting, controllers
from capsmith_runtime.bootstrap.controller import BootstrapConfigController
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.bootstrap.environment import BootstrapEnvironment
from capsmith_runtime.testing.conformance.base import scenario
from tests.runtime.bootstrap import scripted_provider
from tests.runtime.bootstrap.scripted_provider import (
    Scope,
    Script,
    ScriptedBootstrap,
    ScriptedReconciler,
)

PROVIDER = scripted_provider.PROVIDER


class TestPoolData(ScriptedBootstrap):
    """A pool's data are replaced in their Secret when the reconciler requested it."""

    @pytest.fixture(autouse=True)
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the virtual clock set the time of day, too."""
        _use_virtual_time_of_day(monkeypatch)

    @scenario
    async def test_data_of_a_pool_are_refreshed_in_place(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        """Proves: MP-19."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        key = await _refreshed_pool(env, script, 1)
        first = env.secret(key)
        await env.eventually("generated again", lambda: env.data(key) != b"data 0")
        assert loop.time() - began > 0.5, "no sooner than the reconciler said"
        secret = env.secret(key)
        assert first is not None
        assert secret is not None
        assert secret["metadata"]["uid"] == first["metadata"]["uid"]
        previous = script.calls[1].previous
        assert previous is not None
        assert (previous.value, previous.format) == (b"data 0", "cloud-config")
        await env.eventually("and again", lambda: env.data(key) not in (b"data 0", b"data 1"))

    @scenario
    async def test_the_time_to_refresh_outlives_a_restart(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        """Proves: MP-19."""
        key = await _refreshed_pool(env, script, 3600)
        env.adopt("MachinePool", key)
        await env.restart()
        await env.quiet()
        assert len(script.calls) == 1

        env.api.change("Secret", key, _due("2020-01-01T00:00:00Z"))
        await env.restart()
        await env.eventually("generated again", lambda: env.data(key) == b"data 1")
        await env.restart()
        await env.quiet()
        assert env.data(key) == b"data 1"
        env.api.change("Secret", key, _due("not a time"))
        await env.restart()
        await env.eventually("generated again", lambda: env.data(key) == b"data 2")

    @scenario
    async def test_the_external_id_survives_a_move(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        """Proves: SM-09."""
        key = await _refreshed_pool(env, script, 3600)
        uid = env.config(key)["metadata"]["uid"]
        env.adopt("MachinePool", key)
        await env.stop()
        env.api.change(env.kind.resource.kind, key, {"metadata": {"uid": "after-the-move"}})
        env.api.change("Secret", key, _due("2020-01-01T00:00:00Z"))
        env.start()
        await env.eventually("generated again", lambda: env.data(key) == b"data 1")
        assert {call.external_id for call in script.calls} == {f"{key.name}.{uid}"}
        assert {len(call.short_id) for call in script.calls} == {32}

    @scenario
    async def test_data_in_use_stay_when_new_ones_cannot_be_generated(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        """Proves: MP-13, MP-19."""
        key = await _refreshed_pool(env, script, 3600)
        script.result = lambda config: Waiting("NoTokens", requeue_after=0.05)
        env.api.change("Secret", key, _due("2020-01-01T00:00:00Z"))
        await env.restart()
        await env.says(key, "NoTokens")
        assert env.created(key), "dataSecretCreated never flips back"
        assert env.data(key) == b"data 0"
        assert not {"failureReason", "failureMessage"} & env.config(key)["status"].keys()


class TestWaitingMachines(ScriptedBootstrap):
    """Data of a Machine are renewed until it has a Node, if the reconciler can do that."""

    @pytest.fixture(autouse=True)
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _use_virtual_time_of_day(monkeypatch)

    @pytest.fixture
    def refresh(self, monkeypatch: pytest.MonkeyPatch) -> Script:
        """Give the reconciler a ``refresh_data``."""
        refresh = Script()
        refresh.result = lambda config: BootstrapDocument(
            f"renewed {len(refresh.calls)}".encode(), refresh_after=60
        )
        monkeypatch.setattr(
            ScriptedReconciler, "refresh_data", lambda self, config: refresh(config)
        )
        return refresh

    @scenario
    async def test_data_are_renewed_until_the_machine_has_a_node(
        self, env: BootstrapEnvironment, script: Script, refresh: Script
    ) -> None:
        """A server that waits for capacity finds a token that is still valid when it starts."""
        key = await _waiting_machine(env, script)
        first = env.secret(key)
        await env.eventually("renewed", lambda: env.data(key) == b"renewed 1")
        previous = refresh.calls[0].previous
        assert previous is not None
        assert previous.value == b"data"
        await env.eventually("renewed again", lambda: env.data(key) == b"renewed 2")
        assert first is not None
        assert env.secret(key)["metadata"]["uid"] == first["metadata"]["uid"]  # type: ignore[index]

        env.api.change("Machine", key, {"status": {"nodeRef": {"name": "n"}}})
        await env.quiet()
        count = len(refresh.calls)
        await asyncio.sleep(600)
        assert len(refresh.calls) == count
        assert len(script.calls) == 1

    @scenario
    async def test_renewal_goes_on_after_a_restart(
        self, env: BootstrapEnvironment, script: Script, refresh: Script
    ) -> None:
        key = await _waiting_machine(env, script)
        await env.restart()
        await env.quiet()
        assert refresh.calls == []
        await env.eventually("renewed", lambda: env.data(key) == b"renewed 1")

    @scenario
    async def test_data_that_are_not_due_are_not_read_again(
        self, env: BootstrapEnvironment, script: Script, refresh: Script
    ) -> None:
        """A reconcile of one of many waiting machines costs no request."""
        key = await _waiting_machine(env, script)
        await env.quiet()
        before = len(env.api.requests)
        env.adopt("Machine", key)
        await env.quiet()
        assert env.api.requests[before:] == []
        await env.eventually("renewed", lambda: env.data(key) == b"renewed 1")

    @scenario
    async def test_data_stay_when_they_cannot_be_renewed(
        self, env: BootstrapEnvironment, script: Script, refresh: Script
    ) -> None:
        refresh.result = lambda config: Waiting("NoTokens", requeue_after=1)
        key = await _waiting_machine(env, script)
        await env.says(key, "NoTokens")
        assert env.created(key), "dataSecretCreated never flips back"
        assert env.data(key) == b"data"

    @scenario
    async def test_data_of_the_first_machine_are_not_renewed(
        self, env: BootstrapEnvironment, script: Script, refresh: Script
    ) -> None:
        """Renewed data would join the cluster that this machine has to initialise."""
        script.result = lambda config: BootstrapDocument(b"data", refresh_after=60)
        key = env.add_machine(env.add_cluster(), "cp1", control_plane=True)
        await env.has_data(key)
        await asyncio.sleep(600)
        assert refresh.calls == []


async def _waiting_machine(env: BootstrapEnvironment, script: Script) -> NamespacedName:
    script.result = lambda config: BootstrapDocument(b"data", refresh_after=60)
    cluster = env.add_cluster()
    env.control_plane_is_initialized(cluster)
    key = env.add_machine(cluster, "m1")
    await env.has_data(key)
    return key


def _use_virtual_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    began = datetime.now(UTC)

    def now() -> datetime:
        return began + timedelta(seconds=asyncio.get_running_loop().time())

    timed = functools.partial(BootstrapConfigController, now=now)
    monkeypatch.setattr(controllers, "BootstrapConfigController", timed)


async def _refreshed_pool(
    env: BootstrapEnvironment, script: Script, seconds: float
) -> NamespacedName:
    def count(config: Scope) -> BootstrapDocument:
        return BootstrapDocument(f"data {len(script.calls) - 1}".encode(), refresh_after=seconds)

    script.result = count
    cluster = env.add_cluster()
    env.control_plane_is_initialized(cluster)
    key = env.add_pool(cluster)
    await env.has_data(key)
    return key


def _due(time: str) -> JSON:
    return {"metadata": {"annotations": {"bootstrap.cluster.x-k8s.io/refresh-at": time}}}
