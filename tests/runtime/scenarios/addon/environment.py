"""A fake management cluster for add-ons, and workload clusters in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.addon import controllers
from capsmith_runtime.addon.addons import AddonKind
from capsmith_runtime.addon.api import (
    AddonDeleteScope,
    AddonReconciler,
    AddonScope,
    AddonState,
    Workload,
)
from capsmith_runtime.addon.controllers import AddonControllers
from capsmith_runtime.component import Component
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType
from capsmith_runtime.reconcile.results import Deleted, NotAvailableError, Waiting
from capsmith_runtime.testing.addon import WorkloadObjects
from capsmith_runtime.testing.environment import TestEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.workload.client import ClusterUnreachableError

NAMESPACE = "default"
GROUP = "cluster.x-k8s.io"
SELECTED = {"addon": "wanted"}
OBJECT = ResourceType("", "v1", "ConfigMap", "configmaps")


class WorkloadClusters:
    """All workload clusters and their faults; replaces their clients."""

    def __init__(self, env: AddonEnvironment) -> None:
        self._env = env
        self.objects: dict[str, WorkloadObjects] = {}
        self.unreachable: set[str] = set()
        self.hanging: set[str] = set()

    async def get(self, namespace: str, cluster: str) -> WorkloadObjects:
        """Return the API of a cluster that has a kubeconfig."""
        if self._env.api.find("Secret", NamespacedName(namespace, f"{cluster}-kubeconfig")) is None:
            message = f"Secret {cluster}-kubeconfig does not exist"
            waiting = Waiting("WaitingForKubeconfig", message, requeue_after=None)
            raise NotAvailableError(waiting)
        while cluster in self.hanging:
            await asyncio.sleep(0.01)
        if cluster in self.unreachable:
            message = f"workload cluster {cluster}: no answer"
            raise ClusterUnreachableError(message, is_of_runtime=True)
        return self.objects.setdefault(cluster, WorkloadObjects())

    def invalidate(self, namespace: str, cluster: str) -> None:
        """Do nothing: nothing is cached here."""

    async def run(self) -> None:
        """Do nothing: there are no connections to close."""


class ScriptedAddons(AddonReconciler[Any]):
    """Install one object per cluster, and remember the calls."""

    def __init__(self, calls: list[tuple[str, str, str]], failing: set[str]) -> None:
        self.calls = calls
        self.failing = failing

    def reconcile_normal(
        self, addon: AddonScope[Any], cluster: Cluster, workload: Workload
    ) -> AddonState | Waiting:
        """Apply the object."""
        self.calls.append(("normal", addon.name, cluster.name))
        if cluster.name in self.failing:
            raise RuntimeError("no such chart")
        workload.apply(OBJECT, installed(addon.name))
        return AddonState()

    async def reconcile_delete(
        self, addon: AddonDeleteScope[Any], cluster: Cluster, workload: Workload
    ) -> Deleted | Waiting:
        """Delete the object."""
        self.calls.append(("delete", addon.name, cluster.name))
        await workload.delete_async(OBJECT, addon.name, "kube-system")
        return Deleted()


def installed(name: str) -> JSON:
    """Return the object that an add-on installs."""
    metadata = {"namespace": "kube-system", "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


class AddonEnvironment(TestEnvironment):
    """One management cluster with add-ons."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        *,
        kind: AddonKind,
        patch: pytest.MonkeyPatch,
    ) -> None:
        calls: list[tuple[str, str, str]] = []
        failing: set[str] = set()

        class Scripted(ScriptedAddons):
            def __init__(self) -> None:
                super().__init__(calls, failing)

        scripted = replace(kind, reconciler=Scripted)
        super().__init__(
            provider, replace(component, groups=(AddonControllers([scripted]),)), core_version
        )
        self.calls, self.failing = calls, failing
        self.kind = kind
        self.workloads = WorkloadClusters(self)
        patch.setattr(controllers, "WorkloadClients", lambda *args, **kwargs: self.workloads)
        patch.setattr(controllers, "STATUS_SECONDS", 0.01)

    def add_cluster(
        self,
        name: str,
        labels: dict[str, str] | None = None,
        *,
        namespace: str = NAMESPACE,
        ready: bool = True,
    ) -> NamespacedName:
        """Add a Cluster, by default one that can be reached."""
        key = NamespacedName(namespace, name)
        metadata = {"namespace": namespace, "name": name, "labels": labels or {}}
        self.api.add(
            {
                "apiVersion": f"{GROUP}/{self.api.core_version}",
                "kind": "Cluster",
                "metadata": metadata,
                "spec": {},
            }
        )
        if ready:
            self.add_kubeconfig(key)
            self.initialise(key)
        return key

    def initialise(self, cluster: NamespacedName) -> None:
        """Mark the control plane as initialized."""
        status: JSON = {"initialization": {"controlPlaneInitialized": True}}
        if self.api.core_version == "v1beta1":
            status = {"conditions": [{"type": "ControlPlaneInitialized", "status": "True"}]}
        self.api.change("Cluster", cluster, {"status": status})

    def add_kubeconfig(self, cluster: NamespacedName) -> None:
        """Add the Secret with the kubeconfig of a cluster."""
        metadata = {
            "namespace": cluster.namespace,
            "name": f"{cluster.name}-kubeconfig",
            "labels": {f"{GROUP}/cluster-name": cluster.name},
        }
        self.api.add({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {}})

    def label(self, cluster: NamespacedName, **labels: str | None) -> None:
        """Change labels of a Cluster; None removes one."""
        self.api.change("Cluster", cluster, {"metadata": {"labels": labels}})

    def pause(self, cluster: NamespacedName, paused: bool = True) -> None:
        """Set spec.paused of a Cluster."""
        self.api.change("Cluster", cluster, {"spec": {"paused": paused or None}})

    def add_addon(
        self, name: str = "a1", selector: JSON | None = None, **metadata: Any
    ) -> NamespacedName:
        """Add an add-on; by default it selects the label in SELECTED."""
        key = NamespacedName(NAMESPACE, name)
        chosen = {"matchLabels": SELECTED} if selector is None else selector
        self.api.add(
            {
                "apiVersion": self.kind.resource.api_version,
                "kind": self.kind.resource.kind,
                "metadata": {"namespace": NAMESPACE, "name": name, **metadata},
                "spec": {
                    **self.manifests.sample_spec(self.kind.resource.kind),
                    "clusterSelector": chosen,
                },
            }
        )
        return key

    def addon(self, key: NamespacedName) -> JSON:
        """Return the add-on as it is now."""
        found = self.api.find(self.kind.resource.kind, key)
        assert found is not None, f"{key} is gone"
        return found

    def change(self, key: NamespacedName, body: JSON) -> None:
        """Change an add-on as its user."""
        self.api.change(self.kind.resource.kind, key, body)

    def delete(self, key: NamespacedName) -> None:
        """Delete an add-on as its user."""
        self.api.remove(self.kind.resource.kind, key)

    def is_gone(self, key: NamespacedName) -> bool:
        """Report whether an add-on is gone."""
        return self.api.find(self.kind.resource.kind, key) is None

    def clusters(self, key: NamespacedName) -> dict[str, tuple[bool, str]]:
        """Return what the status reports for each cluster: whether it is ready, and the reason."""
        entries = self.addon(key).get("status", {}).get("matchingClusters", [])
        return {entry["name"]: (entry["ready"], entry["reason"]) for entry in entries}

    def has(self, cluster: str, addon: str = "a1") -> bool:
        """Report whether an add-on is installed on a cluster."""
        objects = self.workloads.objects.get(cluster)
        return objects is not None and objects.find("ConfigMap", addon, "kube-system") is not None

    async def installed(self, key: NamespacedName, *clusters: str) -> None:
        """Wait until the add-on is on exactly these clusters, and the status reports it."""
        wanted = dict.fromkeys(clusters, (True, "Ready"))
        await self.eventually(
            f"{key.name} is on {clusters}, and nowhere else",
            lambda: self.clusters(key) == wanted and self._on(key.name) == set(clusters),
        )
        await self.quiet()

    def _on(self, addon: str) -> set[str]:
        return {cluster for cluster in self.workloads.objects if self.has(cluster, addon)}


def remembered(obj: JSON, group: str) -> Collection[str]:
    """Return the clusters that an add-on records as possibly having it."""
    text = obj["metadata"].get("annotations", {}).get(f"{group}/installed-on", "")
    return list(filter(None, text.split(",")))
