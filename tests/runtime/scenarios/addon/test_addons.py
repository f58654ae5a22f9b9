"""The life of an add-on: which clusters get it, when, and how it is removed."""

from __future__ import annotations

import pytest

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from tests.runtime.scenarios.addon.base import ScriptedConformance
from tests.runtime.scenarios.addon.environment import SELECTED, ScriptedEnvironment, remembered
from tests.runtime.scenarios.providers import provider, run_with
from tests.runtime.support.decoding import record_decoded

PROVIDER = provider("extension")
GET = ("get", "Cluster")


@run_with("extension", "two-contracts")
class TestAddons(ScriptedConformance):
    """The life of an add-on: which clusters get it, when, and how it is removed."""

    @scenario
    async def test_selected_clusters_get_it(self, env: ScriptedEnvironment) -> None:
        """Proves: AD-03, SM-08."""
        env.add_cluster("c1", SELECTED)
        env.add_cluster("c2", SELECTED)
        env.add_cluster("other")
        env.add_cluster("far", SELECTED, namespace="elsewhere")
        key = env.add_addon()
        await env.installed(key, "c1", "c2")
        addon = env.addon(key)

        assert condition(addon, "Ready") == ("True", "Ready")
        assert (addon["status"]["clusters"], addon["status"]["readyClusters"]) == (2, 2)
        assert sorted(env.calls) == [("normal", "a1", "c1"), ("normal", "a1", "c2")]
        assert addon["metadata"]["finalizers"] == [env.kind.finalizer]
        assert remembered(addon, env.kind.resource.group) == ["c1", "c2"]

    @scenario
    async def test_it_is_recorded_before_it_is_installed(self, env: ScriptedEnvironment) -> None:
        """Proves: SM-08, SM-09."""
        first: list[JSON] = []

        def refuse(verb: str, kind: str, body: JSON) -> None:
            if "installed-on" in str(body):
                first.append({"calls": list(env.calls)})

        env.api.fault = refuse
        env.add_cluster("c1", SELECTED)
        await env.installed(env.add_addon(), "c1")
        assert first == [{"calls": []}]

    @scenario
    async def test_it_waits_until_the_cluster_can_be_reached(
        self, env: ScriptedEnvironment
    ) -> None:
        """Proves: AD-03, SEC-01."""
        cluster = env.add_cluster("c1", SELECTED, ready=False)
        key = env.add_addon()
        waiting = {"c1": (False, "WaitingForControlPlaneInitialized")}
        await env.eventually("it waits", lambda: env.clusters(key) == waiting)
        assert condition(env.addon(key), "Ready") == ("False", "NotReady")
        env.initialize(cluster)
        waiting = {"c1": (False, "WaitingForKubeconfig")}
        await env.eventually("it waits", lambda: env.clusters(key) == waiting)
        assert env.calls == []
        env.add_kubeconfig(cluster)
        await env.installed(key, "c1")

    @scenario
    async def test_labels_select_the_clusters(self, env: ScriptedEnvironment) -> None:
        """Proves: AD-03."""
        first, second = env.add_cluster("c1", SELECTED), env.add_cluster("c2")
        key = env.add_addon()
        await env.installed(key, "c1")
        env.label(second, **SELECTED)
        await env.installed(key, "c1", "c2")
        env.label(first, addon=None)
        await env.installed(key, "c2")
        assert ("delete", "a1", "c1") in env.calls
        assert remembered(env.addon(key), env.kind.resource.group) == ["c2"]
        env.change(key, {"spec": {"clusterSelector": {"matchLabels": {"addon": "none"}}}})
        await env.installed(key)
        assert condition(env.addon(key), "Ready") == ("True", "Ready")

    @scenario
    async def test_an_empty_selector_takes_all(self, env: ScriptedEnvironment) -> None:
        env.add_cluster("c1")
        env.add_cluster("c2", SELECTED)
        await env.installed(env.add_addon(selector={}), "c1", "c2")

    @scenario
    async def test_a_changed_spec_reaches_every_cluster(self, env: ScriptedEnvironment) -> None:
        env.add_cluster("c1", SELECTED)
        env.add_cluster("c2", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1", "c2")
        env.calls.clear()
        everything = {"matchExpressions": [{"key": "addon", "operator": "Exists"}]}
        env.change(key, {"spec": {"clusterSelector": everything}})
        await env.eventually("both are looked at again", lambda: len(env.calls) == 2)
        await env.installed(key, "c1", "c2")

    @scenario
    async def test_nothing_is_removed_from_a_cluster_in_deletion(
        self, env: ScriptedEnvironment
    ) -> None:
        """Nothing is removed from a cluster in deletion, and the add-on outlives its last cluster.

        Proves: SM-04.
        """
        cluster = env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        env.api.change("Cluster", cluster, {"metadata": {"finalizers": ["core"]}})
        env.api.remove("Cluster", cluster)
        going = {"c1": (False, "ClusterDeleting")}
        await env.eventually("the cluster goes", lambda: env.clusters(key) == going)
        env.api.change("Cluster", cluster, {"metadata": {"finalizers": None}})
        await env.eventually("it is forgotten", lambda: env.clusters(key) == {})
        await env.quiet()
        assert [call for call in env.calls if call[0] == "delete"] == []
        assert remembered(env.addon(key), env.kind.resource.group) == []
        assert "ownerReferences" not in env.addon(key)["metadata"]

    @scenario
    async def test_it_moves_with_its_namespace(self, env: ScriptedEnvironment) -> None:
        """Proves: MV-02, MV-03."""
        labels = env.manifests.crd(env.kind.resource.kind)["metadata"]["labels"]
        assert "clusterctl.cluster.x-k8s.io/move-hierarchy" in labels

    @scenario
    async def test_a_copy_that_a_move_deletes_removes_nothing(
        self, env: ScriptedEnvironment
    ) -> None:
        """Proves: MV-08."""
        env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        env.calls.clear()
        # clusterctl replaces all annotations.
        gone: JSON = dict.fromkeys(env.addon(key)["metadata"]["annotations"])
        gone["clusterctl.cluster.x-k8s.io/delete-for-move"] = ""
        env.change(key, {"metadata": {"annotations": gone}})
        env.delete(key)
        await env.quiet()
        assert not env.is_gone(key), "clusterctl takes the finalizer"
        assert env.calls == []
        assert env.has("c1")

    @scenario
    async def test_a_moved_addon_is_reconciled_at_the_target(
        self, env: ScriptedEnvironment
    ) -> None:
        """The status does not move along; what had to be removed is removed at the target.

        Proves: MV-08, ST-11.
        """
        group = env.kind.resource.group
        key = env.add_addon(
            annotations={
                f"{group}/external-id": "a1.uid-at-the-source",
                f"{group}/installed-on": "c1,c2",
            },
            finalizers=[env.kind.finalizer],
        )
        await env.quiet()
        for name in ("c1", "c2"):
            cluster = env.add_cluster(name, SELECTED if name == "c1" else None)
            env.pause(cluster)
            await env.quiet()
        assert remembered(env.addon(key), group) == ["c1", "c2"]
        for name in ("c1", "c2"):
            env.pause(NamespacedName(cluster.namespace, name), paused=False)
        await env.installed(key, "c1")
        assert ("delete", "a1", "c2") in env.calls

    @scenario
    async def test_a_change_of_a_cluster_decodes_no_addon_that_does_not_select_it(
        self, env: ScriptedEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A user can create thousands of add-ons of a MiB, and change labels all the time."""
        cluster = env.add_cluster("c1")
        keys = [env.add_addon(f"a{number}") for number in range(3)]
        for key in keys:
            await env.installed(key)
        decoded = record_decoded(monkeypatch)
        env.label(cluster, other="label")
        env.api.change(
            "Secret",
            NamespacedName(cluster.namespace, "c1-kubeconfig"),
            {"metadata": {"labels": {"other": "label"}}},
        )
        await env.quiet()
        assert [name for name in decoded if name in {key.name for key in keys}] == []

        env.label(cluster, **SELECTED)
        for key in keys:
            await env.installed(key, "c1")

    @scenario
    async def test_a_changed_cluster_decodes_no_others(
        self, env: ScriptedEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An add-on may be on thousands of Clusters, each of which changes often."""
        clusters = [env.add_cluster(f"c{number}", SELECTED) for number in range(5)]
        key = env.add_addon()
        await env.installed(key, *(each.name for each in clusters))
        decoded = record_decoded(monkeypatch)
        env.calls.clear()
        env.label(clusters[0], other="label")
        await env.quiet()
        assert env.calls == [("normal", "a1", "c0")]
        assert {each.name for each in clusters[1:]}.isdisjoint(decoded)

        env.label(clusters[0], **dict.fromkeys(SELECTED))
        await env.installed(key, *(each.name for each in clusters[1:]))
        env.label(clusters[0], **SELECTED)
        await env.installed(key, *(each.name for each in clusters))
        assert env.addon(key)["status"]["clusters"] == len(clusters)

    @scenario
    async def test_few_clusters_that_do_not_exist_are_looked_up_at_a_time(
        self, env: ScriptedEnvironment
    ) -> None:
        """A user can write thousands of names into the record, for which all others would wait."""
        group = env.kind.resource.group
        env.add_cluster("c1", SELECTED)
        names = ",".join(f"gone-{number:03d}" for number in range(150))
        key = env.add_addon(
            annotations={f"{group}/external-id": "a1.here", f"{group}/installed-on": names}
        )

        def looked_up() -> int:
            return len({key for verb, kind, key in env.api.requests if (verb, kind) == GET})

        await env.eventually("it is installed", lambda: env.has("c1"))
        await env.quiet()
        assert looked_up() == 100
        assert len(env.clusters(key)) == 101

        await env.eventually("the others follow", lambda: looked_up() == 150)
        await env.installed(key, "c1")
        assert remembered(env.addon(key), group) == ["c1"]

    @scenario
    async def test_an_addon_with_a_record_of_clusters_that_do_not_exist_can_be_deleted(
        self, env: ScriptedEnvironment
    ) -> None:
        group = env.kind.resource.group
        names = ",".join(f"gone-{number:03d}" for number in range(300))
        key = env.add_addon(
            annotations={f"{group}/external-id": "a1.here", f"{group}/installed-on": names}
        )
        await env.quiet()
        env.delete(key)
        await env.eventually("it is gone", lambda: env.is_gone(key))

    @scenario
    async def test_a_copied_addon_takes_nothing_of_the_original_away(
        self, env: ScriptedEnvironment
    ) -> None:
        group = env.kind.resource.group
        env.add_cluster("c1")
        copied = {f"{group}/external-id": "a1.uid-1", f"{group}/installed-on": "c1"}
        key = env.add_addon("a2", annotations=copied)
        await env.installed(key)
        assert env.calls == []
