"""Add-on that is installed in the clusters that BeaconLamp selects."""

from __future__ import annotations

import json
from dataclasses import asdict

from capsmith_runtime.addon import (
    AddonDeleteScope,
    AddonReconciler,
    AddonScope,
    AddonState,
    Cluster,
    Credentials,
    Deleted,
    ResourceType,
    SessionFactory,
    Waiting,
    Workload,
)

from .._generated.api.beacon_lamp import BeaconLampSpec

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps")
NAMESPACE = "kube-system"
"""Namespace of the ConfigMap; it exists in every cluster."""


class Sessions(SessionFactory[str]):
    """Replace the name of the identity with a client of the service that your add-on needs."""

    def open(self, credentials: Credentials) -> str:
        """Log in with the credentials of an identity."""
        return credentials.identity


class BeaconLampReconciler(AddonReconciler[BeaconLampSpec]):
    """Replace the ConfigMap with the objects of your add-on; keep the signatures."""

    session_factory = Sessions

    def reconcile_normal(
        self, addon: AddonScope[BeaconLampSpec], cluster: Cluster, workload: Workload
    ) -> AddonState | Waiting:
        """Apply the objects; applying an unchanged object has no effect."""
        workload.apply(
            CONFIG_MAP,
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"namespace": NAMESPACE, "name": addon.name},
                "data": {
                    "account": addon.session(Sessions),
                    "cluster": f"{cluster.namespace}/{cluster.name}",
                    "spec": json.dumps(asdict(addon.spec), sort_keys=True),
                },
            },
        )
        return AddonState()

    def reconcile_delete(
        self, addon: AddonDeleteScope[BeaconLampSpec], cluster: Cluster, workload: Workload
    ) -> Deleted | Waiting:
        """Delete the objects.  Return Deleted only when they no longer exist."""
        if workload.delete(CONFIG_MAP, addon.name, NAMESPACE):
            return Waiting("Removing", "the ConfigMap is being deleted", requeue_after=1)
        return Deleted()
