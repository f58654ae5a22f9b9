"""Lifecycle of an add-on: which clusters get it, when it changes, and how it is removed."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.addon.environment import SELECTED, AddonEnvironment
from capsmith_runtime.testing.conformance.addon.base import AddonConformance
from capsmith_runtime.testing.conformance.base import scenario

PAUSED = "cluster.x-k8s.io/paused"


class TestAddons(AddonConformance):
    """Lifecycle of an add-on: which clusters get it, when it changes, and how it is removed."""

    @scenario
    async def test_selected_clusters_get_it(self, env: AddonEnvironment) -> None:
        """An add-on is installed on each selected cluster, and then ready.

        Proves: AD-03, SM-08.
        """
        for name in ("c1", "c2"):
            env.add_cluster(name, SELECTED)
        env.add_cluster("other")
        key = env.add_addon()
        await env.installed(key, "c1", "c2")
        addon = env.addon(key)
        assert env.shows(addon, "Ready", "True")
        for name in ("clusters", "readyClusters"):
            assert not env.has_field(addon, "status", name) or addon["status"].get(name) == 2

    @scenario
    async def test_another_reconcile_changes_nothing(self, env: AddonEnvironment) -> None:
        """An add-on that is installed is not changed by further reconciles, nor by a new manager.

        Otherwise each resync would restart what runs on all clusters.
        """
        cluster = env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        before = env.content("c1")
        # The first start may have been too early to know all that the add-on reads.
        for region in ("north", "south"):
            env.label(cluster, region=region)
            await env.quiet()
        assert env.content("c1") == before
        await env.restart()
        await env.installed(key, "c1")
        assert env.content("c1") == before

    @scenario
    async def test_an_unchanged_add_on_costs_no_writes(self, env: AddonEnvironment) -> None:
        """An add-on that is ready is not written again: neither its status nor anything else.

        Proves: ST-06.
        """
        cluster = env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        written = len(env.api.written(env.kind.resource.kind, key))
        for region in ("north", "south"):
            env.label(cluster, region=region)
            await env.quiet()
        assert len(env.api.written(env.kind.resource.kind, key)) == written

    @scenario
    async def test_a_changed_spec_reaches_each_cluster(self, env: AddonEnvironment) -> None:
        """A changed spec changes what is installed; a paused add-on is left alone until then.

        Proves: SM-01, ST-08.
        """
        for name in ("c1", "c2"):
            env.add_cluster(name, SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1", "c2")
        field, value = _other_field(env, key)
        before = env.content("c1"), env.content("c2")
        env.change(key, {"metadata": {"annotations": {PAUSED: ""}}})
        await env.eventually(
            "it is paused", lambda: env.shows(env.addon(key), "Paused", "True", "Paused")
        )
        env.change(key, {"spec": {field: value}})
        await env.quiet()
        assert (env.content("c1"), env.content("c2")) == before

        env.change(key, {"metadata": {"annotations": {PAUSED: None}}})
        await env.eventually(
            f"another {field} reaches both",
            lambda: env.content("c1") != before[0] and env.content("c2") != before[1],
        )
        await env.installed(key, "c1", "c2")

    @scenario
    async def test_a_cluster_that_is_no_longer_selected_loses_it(
        self, env: AddonEnvironment
    ) -> None:
        """An add-on is removed from a cluster that is no longer selected, and from no other.

        Proves: AD-03.
        """
        first = env.add_cluster("c1", SELECTED)
        env.add_cluster("c2", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1", "c2")
        other = env.content("c2")
        env.label(first, addon=None)
        await env.installed(key, "c2")
        assert env.content("c2") == other

        env.label(first, **SELECTED)
        await env.installed(key, "c1", "c2")

    @scenario
    async def test_deletion_removes_it_from_each_cluster(self, env: AddonEnvironment) -> None:
        """A deleted add-on is gone when nothing of it is left, even under another manager.

        Proves: SM-08.
        """
        for name in ("c1", "c2"):
            env.add_cluster(name, SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1", "c2")
        await env.kill()
        env.delete(key)
        env.start()
        await env.goes(key)
        assert (env.on("c1"), env.on("c2")) == ([], [])

    @scenario
    async def test_an_add_on_stays_until_its_objects_are_gone(self, env: AddonEnvironment) -> None:
        """An add-on outlives its objects, however long their deletion takes.

        Return Deleted only if nothing is left: nothing removes the rest afterwards.

        Proves: SM-08.
        """
        env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        objects = env.workloads.objects["c1"]
        objects.keep_deleted()
        env.delete(key)
        await env.quiet()
        # What another tool has removed from a cluster is not in these objects.
        assert not (env.is_gone(key) and env.on("c1")), "gone before its objects"

        objects.finish_deletions()
        await env.goes(key)
        assert env.on("c1") == []

    @scenario
    async def test_two_add_ons_on_one_cluster_are_kept_apart(self, env: AddonEnvironment) -> None:
        """The deletion of an add-on takes nothing away from another one on the same cluster."""
        env.add_cluster("c1", SELECTED)
        first = env.add_addon("a1")
        await env.installed(first, "c1")
        alone = env.on("c1")
        second = env.add_addon("a2")
        await env.installed(second, "c1")
        env.delete(second)
        await env.goes(second)
        assert env.on("c1") == alone

        env.delete(first)
        await env.goes(first)
        assert env.on("c1") == []


def _other_field(env: AddonEnvironment, key: NamespacedName) -> tuple[str, Any]:
    """Return a field of the add-on's spec with another value, or skip the test."""
    found = env.other_field(key)
    if found is None:
        pytest.skip("no spec field has another value: see set_other_values")
    return found
