"""A fake management cluster with add-ons, and workload clusters in memory."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Protocol, runtime_checkable

import pytest

from capsmith_runtime.addon import controllers
from capsmith_runtime.addon.addons import AddonKind
from capsmith_runtime.addon.installations import REASON_PENDING, recorded_clusters
from capsmith_runtime.component import Component
from capsmith_runtime.contract.constants import REASON_READY
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.kinds import CREDENTIALS_FEATURE
from capsmith_runtime.testing.addon.clusters import WorkloadClusters, build_kubeconfig
from capsmith_runtime.testing.addon.objects import WorkloadObjects
from capsmith_runtime.testing.environment import TestEnvironment
from capsmith_runtime.testing.identities import add_identities, find_identity_kinds
from capsmith_runtime.testing.other_values import find_other_field
from capsmith_runtime.testing.provider import ProviderUnderTest, ServiceDouble

NAMESPACE = "default"
GROUP = "cluster.x-k8s.io"
SELECTED = {"addon": "wanted"}
"""Labels of the Clusters that the add-ons of the tests select."""
_NOT_READY = re.compile(r"(\S+) \((\w+)\)")
"""A cluster and its reason in the message of the Ready condition."""


@runtime_checkable
class AddonDouble(ServiceDouble, Protocol):
    """Protocol for a test double of what add-ons install, and of the services that they use."""

    def installed(self, cluster: str, objects: WorkloadObjects) -> list[str]:
        """Return a name, in any format, for each thing that add-ons have installed on a cluster.

        ``objects`` are the cluster's objects in memory, which ``workload`` reads and writes.
        """
        ...


@runtime_checkable
class EndsSessions(Protocol):
    """Protocol for a test double of a service that can end sessions.

    This protocol is optional, because not every service has sessions that end.
    """

    def end_sessions(self) -> None:
        """End all sessions, as a service does: it refuses them from now on, and accepts logins."""


class AddonEnvironment(TestEnvironment):
    """A fake management cluster with add-ons and Clusters."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        *,
        kind: AddonKind,
        double: AddonDouble,
        patch: pytest.MonkeyPatch,
    ) -> None:
        super().__init__(provider, component, core_version)
        self.kind = kind
        self.double = double
        self.workloads = WorkloadClusters(self.api)
        patch.setattr(controllers, "WorkloadClients", lambda *args, **kwargs: self.workloads)
        if CREDENTIALS_FEATURE in kind.features:
            kinds = find_identity_kinds(component)
            add_identities(self.api, self.manifests, kinds, component.namespace)

    async def __aexit__(self, *exc: object) -> None:
        # A call that hangs would delay the end of the manager.
        self.workloads.hanging.clear()
        await super().__aexit__(*exc)

    def add_cluster(
        self,
        name: str,
        labels: dict[str, str] | None = None,
        *,
        namespace: str = NAMESPACE,
        ready: bool = True,
    ) -> NamespacedName:
        """Add a Cluster, by default one that can be reached, and return its key."""
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
            self.initialize(key)
        return key

    def initialize(self, cluster: NamespacedName) -> None:
        """Mark a Cluster's control plane as initialized."""
        status: JSON = {"initialization": {"controlPlaneInitialized": True}}
        if self.is_old_core:
            status = {"conditions": [{"type": "ControlPlaneInitialized", "status": "True"}]}
        self.api.change("Cluster", cluster, {"status": status})

    def add_kubeconfig(self, cluster: NamespacedName) -> None:
        """Add the Secret with a cluster's kubeconfig."""
        metadata = {
            "namespace": cluster.namespace,
            "name": f"{cluster.name}-kubeconfig",
            "labels": {f"{GROUP}/cluster-name": cluster.name},
        }
        data = {"value": base64.b64encode(build_kubeconfig(cluster)).decode()}
        self.api.add({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

    def label(self, cluster: NamespacedName, **labels: str | None) -> None:
        """Change labels of a Cluster; None removes one."""
        self.api.change("Cluster", cluster, {"metadata": {"labels": labels}})

    def pause(self, cluster: NamespacedName, paused: bool = True) -> None:
        """Set or remove a Cluster's ``spec.paused``."""
        self.api.change("Cluster", cluster, {"spec": {"paused": paused or None}})

    def add_addon(
        self,
        name: str = "a1",
        selector: JSON | None = None,
        *,
        spec: JSON | None = None,
        **metadata: Any,
    ) -> NamespacedName:
        """Add an add-on, and return its key; by default it selects the labels in SELECTED.

        ``spec`` replaces fields of the sample's.
        """
        key = NamespacedName(NAMESPACE, name)
        self.api.add(
            {
                "apiVersion": self.kind.resource.api_version,
                "kind": self.kind.resource.kind,
                "metadata": {"namespace": NAMESPACE, "name": name, **metadata},
                "spec": {
                    **self.manifests.sample_spec(self.kind.resource.kind),
                    "clusterSelector": {"matchLabels": SELECTED} if selector is None else selector,
                    **(spec or {}),
                },
            }
        )
        return key

    def addon(self, key: NamespacedName) -> JSON:
        """Return an add-on's current object; the test fails if it does not exist."""
        found = self.api.find(self.kind.resource.kind, key)
        assert found is not None, f"{key} is gone"
        return found

    def change(self, key: NamespacedName, body: JSON) -> None:
        """Apply a merge patch to an add-on, as its user does."""
        self.api.change(self.kind.resource.kind, key, body)

    def delete(self, key: NamespacedName) -> None:
        """Delete an add-on, as its user does."""
        self.api.remove(self.kind.resource.kind, key)

    def is_gone(self, key: NamespacedName) -> bool:
        """Return whether an add-on no longer exists."""
        return self.api.find(self.kind.resource.kind, key) is None

    async def goes(self, key: NamespacedName) -> None:
        """Wait until an add-on no longer exists."""
        await self.eventually(f"{key.name} is gone", lambda: self.is_gone(key))

    def other_field(self, key: NamespacedName) -> tuple[str, Any] | None:
        """Return a spec field that provider.yaml declares, with another valid value.

        Returns None if there is no such field.
        """
        spec = self.addon(key)["spec"]
        names = [name for name in spec if name not in ("clusterSelector", "identityRef")]
        return find_other_field(self.manifests, self.kind.resource, spec, names)

    def clusters(self, key: NamespacedName) -> dict[str, tuple[bool, str]]:
        """Return what an add-on's status reports by cluster: is it ready, and the reason.

        If the CRD lacks the clusters, they are those that the manager has recorded; if it has only
        their names, the rest is what the Ready condition says.  Without conditions, an add-on is
        ready on the clusters on which the test double reports something.
        """
        addon = self.addon(key)
        status = addon.get("status") or {}
        reasons = self._reasons(addon)
        found = {}
        for entry in status.get("matchingClusters", self._recorded(addon)):
            name = entry["name"]
            reason = entry.get("reason", reasons.get(name, REASON_READY))
            found[name] = entry.get("ready", reason == REASON_READY), reason
        return found

    def _recorded(self, addon: JSON) -> list[JSON]:
        """Return the names of recorded clusters if the status cannot have them."""
        if self.has_field(addon, "status", "matchingClusters"):
            return []
        return [{"name": each} for each in recorded_clusters(addon, self.kind.resource.group)]

    def _reasons(self, addon: JSON) -> dict[str, str]:
        """Return why the add-on is not ready on clusters, by cluster, without the fields for it."""
        names = recorded_clusters(addon, self.kind.resource.group)
        listed = (addon.get("status") or {}).get("conditions", [])
        ready = next((each for each in listed if each["type"] == "Ready"), None)
        # Conditions of a CRD that exists may have no messages.
        if not self.has_conditions(addon) or (ready is not None and "message" not in ready):
            return {name: REASON_PENDING for name in names if not self.on(name)}
        if ready is None:
            return dict.fromkeys(names, REASON_PENDING)
        return dict(_NOT_READY.findall(ready["message"]))

    def on(self, cluster: str) -> list[str]:
        """Return the names that the test double reports for a cluster, in order."""
        objects = self.workloads.objects.get(cluster, WorkloadObjects())
        return sorted(self.double.installed(cluster, objects))

    def content(self, cluster: str) -> str:
        """Return all that is known of a cluster's content: what is installed, and its objects."""
        objects = self.workloads.objects.get(cluster, WorkloadObjects())
        return json.dumps([self.on(cluster), objects.all()], sort_keys=True)

    async def installed(self, key: NamespacedName, *clusters: str) -> None:
        """Wait until an add-on is ready on these clusters and no others, and has been installed.

        Nothing may be installed on other clusters.
        """

        def is_installed() -> bool:
            found = {each for each in self.workloads.objects if self.on(each)}
            ready = {name: ready for name, (ready, _) in self.clusters(key).items()}
            return ready == dict.fromkeys(clusters, True) and found == set(clusters)

        await self.eventually(f"{key.name} is on {clusters}, and nowhere else", is_installed)
        await self.quiet()
