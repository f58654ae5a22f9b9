"""Installations of add-ons on clusters, and the annotation that records them on the add-on.

The record cannot be in the status, because ``clusterctl move`` drops the status (ST-11). Nor can it
consist of owner references to the Clusters: they survive the move, but Kubernetes would delete the
add-on together with its last Cluster. The record is therefore an annotation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from capsmith_runtime.contract import external_id, metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.kube.client import NamespacedName


class Installation(NamedTuple):
    """An add-on that is, or will be, installed on a cluster."""

    addon: NamespacedName
    cluster: str

    @property
    def key(self) -> NamespacedName:
        """Queue key ``namespace/addon/cluster``; names cannot contain a slash."""
        return NamespacedName(self.addon.namespace, f"{self.addon.name}/{self.cluster}")

    @property
    def owner(self) -> str:
        """Return the Cluster as the tenant whose limits apply to calls for this installation."""
        return f"Cluster {self.addon.namespace}/{self.cluster}"


def parse_key(key: NamespacedName) -> Installation:
    """Return the installation that a queue key names; the inverse of :attr:`Installation.key`."""
    addon, _, cluster = key.name.partition("/")
    return Installation(NamespacedName(key.namespace, addon), cluster)


def record_annotation(group: str) -> str:
    """Return the name of the annotation that records the Clusters' names."""
    return f"{group}/installed-on"


def recorded_clusters(obj: Object, group: str) -> frozenset[str]:
    """Return the recorded names of the Clusters on which the add-on may be installed.

    The set is empty if the object is a copy of another add-on: the copy has the original's
    annotation, but nothing was installed for it.
    """
    if external_id.stored(obj, group) is None:
        return frozenset()
    text = metadata.annotations(obj).get(record_annotation(group), "")
    return frozenset(filter(None, text.split(",")))


def format_clusters(clusters: Iterable[str]) -> str:
    """Return the annotation's value, which is the Clusters' sorted names separated by commas."""
    return ",".join(sorted(clusters))


REASON_PENDING: Final = "Pending"
REASON_REMOVING: Final = "Removing"
REASON_REMOVED: Final = "Removed"
REASON_WAITING_FOR_CONTROL_PLANE: Final = "WaitingForControlPlaneInitialized"
REASON_CLUSTER_DELETING: Final = "ClusterDeleting"
REASON_CLUSTER_MISSING: Final = "ClusterMissing"
REASON_UNREACHABLE: Final = "ClusterUnreachable"

_MAX_MESSAGE_CHARACTERS: Final = 1024
"""Maximum length of a message in characters, as in the CRD."""
_MAX_BYTES: Final = 2**20
"""Maximum size of the entries in bytes, because etcd rejects objects above 1.5 MiB."""
_MAX_NAMED_CLUSTERS: Final = 5
"""Maximum number of clusters that a condition's message names."""


@dataclass(frozen=True, slots=True)
class InstallationStatus:
    """Whether an add-on was ready on one cluster at the last reconcile, and why not."""

    ready: bool
    reason: str
    message: str = ""
    removed: bool = False
    """Whether the record can be dropped: the add-on is neither selected nor installed."""

    def entry(self, cluster: str) -> dict[str, Any]:
        """Return the list entry about ``cluster`` for the add-on's status."""
        entry = {"name": cluster, "ready": self.ready, "reason": self.reason}
        message = self.limited().message
        return {**entry, "message": message} if message else entry

    def limited(self) -> InstallationStatus:
        """Return a copy whose message fits into an entry."""
        # The text may come from an SDK, so it may be long, and may not be encodable.
        message = self.message[:_MAX_MESSAGE_CHARACTERS].encode(errors="replace").decode()
        return replace(self, message=message)


PENDING: Final = InstallationStatus(False, REASON_PENDING)
REMOVED: Final = InstallationStatus(False, REASON_REMOVED, removed=True)


class InstallationStatuses:
    """The latest status of each installation, keyed by add-on and cluster; kept only in memory."""

    def __init__(self) -> None:
        self._by_addon: dict[NamespacedName, dict[str, InstallationStatus]] = {}

    def of_addon(self, addon: NamespacedName) -> Mapping[str, InstallationStatus]:
        """Return an add-on's statuses, keyed by cluster name."""
        return self._by_addon.get(addon, {})

    def put(self, installation: Installation, status: InstallationStatus) -> bool:
        """Store a status, and return whether it differs from the previous one."""
        status = status.limited()
        statuses = self._by_addon.setdefault(installation.addon, {})
        changed = statuses.get(installation.cluster) != status
        statuses[installation.cluster] = status
        return changed

    def drop(self, installation: Installation) -> None:
        """Forget the status of an add-on on one cluster."""
        self._by_addon.get(installation.addon, {}).pop(installation.cluster, None)

    def forget(self, addon: NamespacedName) -> None:
        """Remove all statuses of an add-on that no longer exists."""
        self._by_addon.pop(addon, None)


def describe_not_ready(entries: list[dict[str, Any]]) -> str:
    """Return the Ready condition's message, which names the clusters that are not ready (ST-06).

    A long list is shortened. The message is empty if all clusters are ready.
    """
    not_ready = [entry for entry in entries if not entry["ready"]]
    if not not_ready:
        return ""
    named = not_ready[:_MAX_NAMED_CLUSTERS]
    shown = ", ".join(f"{entry['name']} ({entry['reason']})" for entry in named)
    more = len(not_ready) - _MAX_NAMED_CLUSTERS
    return f"{shown} and {more} more" if more > 0 else shown


def fit_entries(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries that fit into an add-on's status, without messages if it has too many.

    The entries about clusters that are not ready are kept first.
    """
    if _count_bytes(entries) <= _MAX_BYTES:
        return entries
    short = [{k: v for k, v in entry.items() if k != "message"} for entry in entries]
    kept, left = [], _MAX_BYTES
    for entry in sorted(short, key=lambda entry: entry["ready"]):
        left -= _count_bytes(entry) + 1
        if left < 0:
            break
        kept.append(entry)
    return sorted(kept, key=lambda entry: str(entry["name"]))


def _count_bytes(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
