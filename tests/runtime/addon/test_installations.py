"""Installations: the record on the add-on, their statuses, and what conditions say of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from capsmith_runtime.addon.installations import (
    PENDING,
    REMOVED,
    Installation,
    InstallationStatus,
    InstallationStatuses,
    describe_not_ready,
    fit_entries,
    format_clusters,
    parse_key,
    record_annotation,
    recorded_clusters,
)
from capsmith_runtime.addon.selections import is_cluster_selected, select_clusters
from capsmith_runtime.contract import external_id
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.kinds import core_type
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests
from tests.runtime.support.decoding import record_decoded
from tests.runtime.support.waiting import running

GROUP = "addons.cluster.x-k8s.io"
LAMP = NamespacedName("one", "lamp")
READY = InstallationStatus(True, "Ready")


def addon(clusters: str = "", **metadata: Any) -> dict[str, Any]:
    annotations = {
        external_id.annotation(GROUP): "lamp.1234",
        record_annotation(GROUP): clusters,
    }
    return {
        "metadata": {"name": "lamp", "namespace": "one", "annotations": annotations, **metadata}
    }


def test_a_key_names_add_on_and_cluster() -> None:
    installation = Installation(LAMP, "b")

    assert str(installation.key) == "one/lamp/b"
    assert parse_key(installation.key) == installation


@pytest.mark.parametrize("clusters", [set(), {"b"}, {"b", "a", "c"}])
def test_the_record_comes_back(clusters: set[str]) -> None:
    text = format_clusters(clusters)

    assert text == ",".join(sorted(clusters))
    assert recorded_clusters(addon(text), GROUP) == clusters


def test_the_record_of_a_copied_add_on_does_not_count() -> None:
    """A user has copied the manifest with its annotations: nothing is installed for the copy."""
    assert recorded_clusters(addon("a,b", name="copy"), GROUP) == frozenset()
    assert recorded_clusters(addon("a,b", annotations={}), GROUP) == frozenset()


def test_a_status_is_news_once() -> None:
    statuses, installation = InstallationStatuses(), Installation(LAMP, "a")

    assert statuses.put(installation, PENDING)
    assert not statuses.put(installation, InstallationStatus(False, "Pending"))
    assert statuses.put(installation, READY)
    assert statuses.put(Installation(LAMP, "b"), REMOVED)
    assert statuses.of_addon(LAMP) == {"a": READY, "b": REMOVED}
    statuses.drop(installation)
    statuses.drop(Installation(NamespacedName("two", "lamp"), "a"))
    assert statuses.of_addon(LAMP) == {"b": REMOVED}
    statuses.forget(LAMP)
    assert statuses.of_addon(LAMP) == {}


def test_no_more_of_a_message_is_kept_than_an_entry_holds() -> None:
    """An add-on of thousands of clusters would keep as many responses of their API servers."""
    statuses, installation = InstallationStatuses(), Installation(LAMP, "a")

    assert statuses.put(installation, InstallationStatus(False, "Down", "x" * 2**20))
    assert len(statuses.of_addon(LAMP)["a"].message) == 1024
    assert not statuses.put(installation, InstallationStatus(False, "Down", "x" * 2**20))


def test_an_entry_holds_what_the_status_field_takes() -> None:
    status = InstallationStatus(False, "SdkError", "\ud800" + "x" * 2000)

    assert READY.entry("a") == {"name": "a", "ready": True, "reason": "Ready"}
    assert status.entry("a")["message"] == "?" + "x" * 1023


def test_entries_lose_their_messages_where_they_do_not_fit() -> None:
    """During an outage, each of thousands of clusters has a message."""
    down = InstallationStatus(False, "ClusterUnreachable", "x" * 1024)
    entries = [down.entry(f"c{number:04d}") for number in range(2000)]

    assert fit_entries(entries[:900]) == entries[:900]
    shown = fit_entries(entries)
    assert [entry["name"] for entry in shown] == [entry["name"] for entry in entries]
    assert {"message" in entry for entry in shown} == {False}


def test_the_entries_that_fit_are_those_of_clusters_that_are_not_ready() -> None:
    names = [f"{number:04d}-{'c' * 240}" for number in range(5000)]
    entries = [READY.entry(name) for name in names[:4999]] + [PENDING.entry(names[4999])]

    shown = fit_entries(entries)
    assert 3000 < len(shown) < 5000
    assert len(json.dumps(shown)) < 1.2 * 2**20
    assert shown[-1] == entries[-1]
    assert shown == sorted(shown, key=lambda entry: str(entry["name"]))


@pytest.mark.parametrize(
    ("not_ready", "message"),
    [
        (0, ""),
        (2, "c0 (Pending), c1 (Pending)"),
        (5, "c0 (Pending), c1 (Pending), c2 (Pending), c3 (Pending), c4 (Pending)"),
        (7, "c0 (Pending), c1 (Pending), c2 (Pending), c3 (Pending), c4 (Pending) and 2 more"),
    ],
)
def test_the_message_names_some_clusters(not_ready: int, message: str) -> None:
    entries = [READY.entry("ready"), *(PENDING.entry(f"c{n}") for n in range(not_ready))]

    assert describe_not_ready(entries) == message


@pytest.mark.parametrize(
    ("namespace", "selector", "selected"),
    [
        ("one", {}, True),
        ("one", {"matchLabels": {"light": "on"}}, True),
        ("one", {"matchLabels": {"light": "off"}}, False),
        ("two", {}, False),
    ],
)
def test_an_add_on_selects_clusters_of_its_namespace(
    namespace: str, selector: dict[str, Any], selected: bool
) -> None:
    cluster = {"metadata": {"name": "a", "namespace": namespace, "labels": {"light": "on"}}}

    assert (
        is_cluster_selected({**addon(), "spec": {"clusterSelector": selector}}, cluster) is selected
    )


async def test_clusters_of_other_namespaces_are_not_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each user may write a megabyte into a Cluster, which add-ons of all others would read."""
    api = FakeApi("v1beta2", Manifests(()))
    resource = core_type("v1beta2", "Cluster", "clusters")
    for namespace in ("one", "two"):
        names = {"name": f"of-{namespace}", "namespace": namespace}
        api.add({"apiVersion": resource.api_version, "kind": "Cluster", "metadata": names})
    clusters = Informer(api, resource, Metrics())
    async with running(clusters.run()):
        await clusters.synced.wait()
        decoded = record_decoded(monkeypatch)
        assert await select_clusters(addon(), clusters) == ["of-one"]
    assert decoded == ["of-one"]


async def test_other_tasks_run_while_clusters_are_selected() -> None:
    """The Clusters of a namespace may have a GB, which takes seconds to decode."""
    api, turns = FakeApi("v1beta2", Manifests(())), 0
    resource = core_type("v1beta2", "Cluster", "clusters")
    for number in range(100):
        names = {"name": f"c{number:02d}", "namespace": "one"}
        api.add({"apiVersion": resource.api_version, "kind": "Cluster", "metadata": names})
    clusters = Informer(api, resource, Metrics())
    async with running(clusters.run()):
        await clusters.synced.wait()
        task = asyncio.create_task(select_clusters(addon(), clusters))
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
    assert len(await task) == 100
    assert turns > 10
