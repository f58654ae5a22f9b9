"""What clusters get that HarbourStorage selects."""

from __future__ import annotations

import json
from dataclasses import asdict

from .. import (
    Addon,
    AddonDeletion,
    AddonReconciler,
    AddonState,
    Cluster,
    Gone,
    ResourceType,
    Waiting,
    Workload,
)
from .._generated.api.harbour_storage import HarbourStorageSpec

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps")
NAMESPACE = "kube-system"
"""It is there in every cluster."""


class HarbourStorageReconciler(AddonReconciler[HarbourStorageSpec]):
    """Replace the ConfigMap by what your add-on is; the shape of the two methods stays."""

    def reconcile_normal(
        self, addon: Addon[HarbourStorageSpec], cluster: Cluster, workload: Workload
    ) -> AddonState | Waiting:
        """Apply what the spec says; what is so already stays as it is."""
        workload.apply(
            CONFIG_MAP,
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"namespace": NAMESPACE, "name": addon.name},
                "data": {
                    "cluster": f"{cluster.namespace}/{cluster.name}",
                    "spec": json.dumps(asdict(addon.spec), sort_keys=True),
                },
            },
        )
        return AddonState()

    def reconcile_delete(
        self, addon: AddonDeletion[HarbourStorageSpec], cluster: Cluster, workload: Workload
    ) -> Gone | Waiting:
        """Remove what is there, and say Gone only when it is gone."""
        if workload.delete(CONFIG_MAP, addon.name, NAMESPACE):
            return Waiting("Removing", "the ConfigMap is being deleted", requeue_after=1)
        return Gone()
