"""Add-ons when something goes wrong: pauses, unreachable clusters, errors and restarts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from tests.runtime.scenarios.addon.base import ScriptedConformance
from tests.runtime.scenarios.addon.environment import (
    NAMESPACE,
    SELECTED,
    ScriptedEnvironment,
    remembered,
)
from tests.runtime.scenarios.providers import provider, run_with

PAUSED = "cluster.x-k8s.io/paused"

PROVIDER = provider("extension")


@run_with("extension", "two-contracts")
class TestAddonFaults(ScriptedConformance):
    """Add-ons when something goes wrong: pauses, unreachable clusters, errors and restarts."""

    @pytest.mark.parametrize("trouble", ["unreachable", "hanging"])
    @scenario
    async def test_one_cluster_does_not_delay_the_others(
        self, env: ScriptedEnvironment, trouble: str
    ) -> None:
        """Proves: AD-03, MG-12."""
        broken: set[str] = getattr(env.workloads, trouble)
        broken.add("c1")
        for name in ("c1", "c2", "c3"):
            env.add_cluster(name, SELECTED)
        key = env.add_addon()
        await env.eventually("the others have it", lambda: env.has("c2") and env.has("c3"))
        await env.eventually(
            "the status tells them apart",
            lambda: [ready for ready, _ in env.clusters(key).values()] == [False, True, True],
        )
        if trouble == "unreachable":
            await env.eventually(
                "the status names the reason",
                lambda: env.clusters(key)["c1"] == (False, "ClusterUnreachable"),
            )
        assert condition(env.addon(key), "Ready") == ("False", "NotReady")
        broken.clear()
        await env.installed(key, "c1", "c2", "c3")

    @scenario
    async def test_an_error_of_the_author_is_told_and_tried_again(
        self, env: ScriptedEnvironment
    ) -> None:
        env.failing.add("c1")
        env.add_cluster("c1", SELECTED)
        env.add_cluster("c2", SELECTED)
        key = env.add_addon()
        wanted = {"c1": (False, "InternalError"), "c2": (True, "Ready")}
        await env.eventually("it is reported", lambda: env.clusters(key) == wanted)
        entry, _ = env.addon(key)["status"]["matchingClusters"]
        assert entry["message"] == "RuntimeError: no such chart"
        await env.eventually("there is an event", lambda: env.api.all("Event"))
        env.failing.clear()
        await env.installed(key, "c1", "c2")

    @scenario
    async def test_a_paused_cluster_is_left_as_it_is(self, env: ScriptedEnvironment) -> None:
        """Proves: AD-03, SM-01."""
        cluster = env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        env.pause(cluster)
        env.calls.clear()
        env.label(cluster, addon=None)
        shown = {"c1": (False, "Paused")}
        await env.eventually("it is paused", lambda: env.clusters(key) == shown)
        env.delete(key)
        await env.quiet()
        assert env.calls == []
        assert not env.is_gone(key)
        assert env.has("c1")
        env.pause(cluster, paused=False)
        await env.eventually("it is gone", lambda: env.is_gone(key))
        assert not env.has("c1")

    @scenario
    async def test_a_paused_addon_does_nothing(self, env: ScriptedEnvironment) -> None:
        """Proves: SM-01, ST-08."""
        cluster = env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        env.change(key, {"metadata": {"annotations": {PAUSED: ""}}})
        await env.eventually(
            "it says so", lambda: condition(env.addon(key), "Paused") == ("True", "Paused")
        )
        env.calls.clear()
        env.add_cluster("c2", SELECTED)
        env.label(cluster, addon=None)
        await env.quiet()
        assert env.calls == []
        env.change(key, {"metadata": {"annotations": {PAUSED: None}}})
        await env.installed(key, "c2")

    @scenario
    async def test_a_restart_loses_nothing(self, env: ScriptedEnvironment) -> None:
        """Proves: SM-09."""
        first, _ = env.add_cluster("c1", SELECTED), env.add_cluster("c2", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1", "c2")
        await env.kill()
        env.label(first, addon=None)
        env.add_cluster("c3", SELECTED)
        env.start()
        await env.installed(key, "c2", "c3")
        await env.kill()
        env.delete(key)
        env.start()
        await env.eventually("it is gone", lambda: env.is_gone(key))
        assert not any(map(env.has, ("c1", "c2", "c3")))

    @scenario
    async def test_it_stays_until_it_is_removed_from_every_cluster(
        self, env: ScriptedEnvironment
    ) -> None:
        """Proves: SM-08."""
        env.add_cluster("c1", SELECTED)
        env.add_cluster("c2", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1", "c2")
        env.workloads.unreachable.add("c1")
        env.delete(key)
        await env.eventually("it is not on the second", lambda: not env.has("c2"))
        await env.eventually(
            "it says which one is left",
            lambda: env.clusters(key) == {"c1": (False, "ClusterUnreachable")},
        )
        assert remembered(env.addon(key), env.kind.resource.group) == ["c1"]
        # A cluster that is gone takes with it what was on it.
        env.api.remove("Cluster", NamespacedName(NAMESPACE, "c1"))
        await env.eventually("it is gone", lambda: env.is_gone(key))

    @scenario
    async def test_an_unchanged_cluster_costs_no_requests(self, env: ScriptedEnvironment) -> None:
        """Proves: ST-06."""
        env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        before = len(env.api.requests), len(env.calls)
        env.api.change(
            "Cluster", NamespacedName(NAMESPACE, "c1"), {"status": {"phase": "Provisioned"}}
        )
        await env.quiet()
        assert (len(env.api.requests), len(env.calls)) == before

    @scenario
    async def test_a_change_during_a_short_pause_is_not_lost(
        self, env: ScriptedEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The add-on's controller is busy and never sees the pause, but an installation does."""
        cluster = env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        await env.quiet()
        kind, patch_status = env.kind.resource.kind, env.api.patch_status
        may_write, call = asyncio.Event(), ("normal", key.name, "c1")

        async def write_late(*args: Any, **options: Any) -> JSON:
            await may_write.wait()
            return await patch_status(*args, **options)

        monkeypatch.setattr(env.api, "patch_status", write_late)
        env.add_cluster("c2", SELECTED)
        await env.quiet()
        env.calls.clear()
        env.api.change(kind, key, {"metadata": {"annotations": {PAUSED: ""}}})
        await env.quiet()
        env.label(cluster, region="north")
        await env.quiet()
        assert env.calls == []
        env.api.change(kind, key, {"metadata": {"annotations": {PAUSED: None}}})
        may_write.set()
        await env.eventually("it is installed again", lambda: call in env.calls)
