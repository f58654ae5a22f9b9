"""Status of add-ons on each cluster, as far as this process knows; lost on restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capsmith_runtime.addon.installations import Installation
from capsmith_runtime.kube.client import NamespacedName

REASON_PENDING: Final = "Pending"
REASON_REMOVING: Final = "Removing"
REASON_REMOVED: Final = "Removed"
REASON_WAITING_FOR_CONTROL_PLANE: Final = "WaitingForControlPlaneInitialized"
REASON_CLUSTER_DELETING: Final = "ClusterDeleting"
REASON_CLUSTER_MISSING: Final = "ClusterMissing"
REASON_UNREACHABLE: Final = "ClusterUnreachable"

_MAX_MESSAGE_CHARACTERS: Final = 1024
"""The limit of the status field."""
_MAX_NAMED_CLUSTERS: Final = 5
"""How many clusters the message of a condition names."""


@dataclass(frozen=True, slots=True)
class InstallationStatus:
    """The result of the last reconcile of one installation."""

    ready: bool
    reason: str
    message: str = ""
    removed: bool = False
    """The add-on is not on the cluster and not selected for it: its record can be dropped."""

    def entry(self, cluster: str) -> dict[str, Any]:
        """Return the entry for the add-on's status."""
        # The text may come from an SDK: of any length, and not always encodable.
        message = self.message.encode(errors="replace").decode()[:_MAX_MESSAGE_CHARACTERS]
        entry = {"name": cluster, "ready": self.ready, "reason": self.reason}
        return {**entry, "message": message} if message else entry


PENDING: Final = InstallationStatus(False, REASON_PENDING)
REMOVED: Final = InstallationStatus(False, REASON_REMOVED, removed=True)


class InstallationStatuses:
    """The status of each installation, by add-on and cluster."""

    def __init__(self) -> None:
        self._by_addon: dict[NamespacedName, dict[str, InstallationStatus]] = {}

    def of_addon(self, addon: NamespacedName) -> Mapping[str, InstallationStatus]:
        """Return the statuses of one add-on, by cluster."""
        return self._by_addon.get(addon, {})

    def put(self, installation: Installation, status: InstallationStatus) -> bool:
        """Store a status; return whether it has changed."""
        statuses = self._by_addon.setdefault(installation.addon, {})
        changed = statuses.get(installation.cluster) != status
        statuses[installation.cluster] = status
        return changed

    def drop(self, installation: Installation) -> None:
        """Remove the status of an installation."""
        self._by_addon.get(installation.addon, {}).pop(installation.cluster, None)

    def forget(self, addon: NamespacedName) -> None:
        """Remove all statuses of an add-on that is gone."""
        self._by_addon.pop(addon, None)


def not_ready_message(entries: list[dict[str, Any]]) -> str:
    """Return the message of the Ready condition: which clusters are not ready, shortened (ST-06).

    It is empty when all are ready.
    """
    not_ready = [entry for entry in entries if not entry["ready"]]
    if not not_ready:
        return ""
    named = not_ready[:_MAX_NAMED_CLUSTERS]
    shown = ", ".join(f"{entry['name']} ({entry['reason']})" for entry in named)
    more = len(not_ready) - _MAX_NAMED_CLUSTERS
    return f"{shown} and {more} more" if more > 0 else shown
