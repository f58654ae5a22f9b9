"""Installations: an add-on on one cluster, and the record of them on the add-on itself.

The status cannot be that record, because ``clusterctl move`` drops it (ST-11).  Owner references
to the Clusters would survive the move, but Kubernetes would delete the add-on together with its
last Cluster.  So it is an annotation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from capsmith_runtime.contract import external_id, metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.kube.client import NamespacedName


class Installation(NamedTuple):
    """An add-on on one cluster."""

    addon: NamespacedName
    cluster: str

    @property
    def key(self) -> NamespacedName:
        """Queue key ``namespace/addon/cluster``; names cannot contain a slash."""
        return NamespacedName(self.addon.namespace, f"{self.addon.name}/{self.cluster}")


def installation_of(key: NamespacedName) -> Installation:
    """Return the installation with a key."""
    addon, _, cluster = key.name.partition("/")
    return Installation(NamespacedName(key.namespace, addon), cluster)


def annotation(group: str) -> str:
    """Return the name of the annotation with the names of Clusters."""
    return f"{group}/installed-on"


def recorded_clusters(obj: Object, group: str) -> frozenset[str]:
    """Return the Clusters on which the add-on may be installed.

    A copy of an add-on has the annotation of its original, but nothing is installed for it.
    """
    if external_id.stored(obj, group) is None:
        return frozenset()
    text = metadata.annotations(obj).get(annotation(group), "")
    return frozenset(filter(None, text.split(",")))


def annotation_value(clusters: Iterable[str]) -> str:
    """Return the value of the annotation."""
    return ",".join(sorted(clusters))
