"""Finds the Clusters that an add-on selects, and the add-ons that a Cluster concerns.

A user can create thousands of both, each with a megabyte. So Clusters are decoded a few at a time,
and add-ons only if they concern the Cluster: of the others, only the needed fields are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from capsmith_runtime.addon.installations import recorded_clusters
from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Object
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.store import Delta

_DECODED_AT_ONCE: Final = 8
"""Number of Clusters that are decoded before other tasks run."""


async def select_clusters(addon: Object, clusters: Informer) -> list[str]:
    """Return the names of an add-on's selected Clusters that are not being deleted.

    Other tasks run in between.
    """
    selected = []
    # Clusters of other namespaces are not even decoded.
    for number, key in enumerate(clusters.keys_in(metadata.namespace(addon)), 1):
        cluster = clusters.get(key)
        if (
            cluster is not None
            and not metadata.is_deleting(cluster)
            and is_cluster_selected(addon, cluster)
        ):
            selected.append(key.name)
        if number % _DECODED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return selected


def is_cluster_selected(addon: Object, cluster: Object | Cluster) -> bool:
    """Return whether an add-on selects a Cluster; both must be in the same namespace."""
    if isinstance(cluster, Cluster):
        namespace, labels = cluster.namespace, cluster.labels
    else:
        namespace, labels = metadata.namespace(cluster), metadata.labels(cluster)
    cluster_selector = metadata.mapping(addon, "spec", "clusterSelector")
    return namespace == metadata.namespace(addon) and metadata.is_selected(cluster_selector, labels)


class _Selection(NamedTuple):
    """The fields of an add-on that decide which Clusters concern it."""

    selector: Any
    recorded: frozenset[str]


class AddonSelections:
    """The selectors and recorded Clusters of all add-ons of one kind."""

    def __init__(self, addons: Informer, group: str) -> None:
        """Follow the add-ons; create this before their informer runs."""
        self._addons = addons
        self._group = group
        self._selections: dict[NamespacedName, _Selection] = {}
        addons.add_handler(self._update)

    def find_addons(self, cluster: Cluster) -> Iterator[tuple[NamespacedName, bool]]:
        """Yield the add-ons that select a Cluster or are recorded on it, and if they select it.

        As in `select_clusters`, a Cluster that is being deleted is not selected.
        """
        for key in self._addons.keys_in(cluster.namespace):
            found = self._selections.get(key)
            if found is None:
                continue
            matches = metadata.is_selected(found.selector, cluster.labels)
            # A Cluster that is no longer selected matters as long as the add-on is recorded on it.
            if matches or cluster.name in found.recorded:
                yield key, matches and not cluster.deleting

    def find_recorded(self, namespace: str, cluster: str) -> Iterator[NamespacedName]:
        """Yield the add-ons that are recorded on a Cluster."""
        for key in self._addons.keys_in(namespace):
            found = self._selections.get(key)
            if found is not None and cluster in found.recorded:
                yield key

    def _update(self, delta: Delta) -> None:
        if delta.new is None:
            self._selections.pop(delta.key, None)
            return
        selector = metadata.mapping(delta.new, "spec", "clusterSelector")
        recorded = recorded_clusters(delta.new, self._group)
        self._selections[delta.key] = _Selection(selector, recorded)
