"""A fake management cluster for managed control planes."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import Any

from capsmith_runtime.component import Component
from capsmith_runtime.controlplane.managed.api import ManagedControlPlaneReconciler
from capsmith_runtime.controlplane.managed.controller import ManagedControlPlaneKind
from capsmith_runtime.controlplane.managed.controllers import ManagedControlPlaneControllers
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.kinds import CREDENTIALS_FEATURE
from capsmith_runtime.testing.environment import TestEnvironment
from capsmith_runtime.testing.identities import add_identities, add_namespace, find_identity_kinds
from capsmith_runtime.testing.provider import HostingDouble, ProviderUnderTest
from capsmith_runtime.workload.kubeconfig import Access, parse

NAMESPACE = "default"
GROUP = "cluster.x-k8s.io"
CLUSTER = NamespacedName(NAMESPACE, "c1")
CONTROL_PLANE = NamespacedName(NAMESPACE, "c1-cp")
KUBECONFIG = NamespacedName(NAMESPACE, "c1-kubeconfig")
CLUSTER_NAME = f"{GROUP}/cluster-name"
PAUSED = f"{GROUP}/paused"
DELETE_FOR_MOVE = "clusterctl.cluster.x-k8s.io/delete-for-move"
VERSION, LATER = "v1.34.0", "v1.35.0"


class ManagedControlPlaneEnvironment(TestEnvironment):
    """A fake cluster with provisioned infrastructure, and its control plane."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        *,
        kind: ManagedControlPlaneKind,
        hosting: HostingDouble,
    ) -> None:
        super().__init__(provider, component, core_version)
        self.kind = kind
        self.hosting = hosting
        self.has_version = "version" in kind.features
        self.version = VERSION if self.has_version else ""
        """The version of new control planes, which is empty if the service decides."""
        if CREDENTIALS_FEATURE in kind.features:
            kinds = find_identity_kinds(component)
            add_identities(self.api, self.manifests, kinds, component.namespace)

    def use(self, reconciler: type[ManagedControlPlaneReconciler[Any]]) -> None:
        """Use this reconciler the next time the manager starts."""
        kind = replace(self.kind, reconciler=reconciler)
        self.component = replace(self.component, groups=(ManagedControlPlaneControllers((kind,)),))

    def use_beside(self, reconciler: type[ManagedControlPlaneReconciler[Any]]) -> None:
        """Use this reconciler the next time the manager starts, and keep its other groups."""
        kind = replace(self.kind, reconciler=reconciler)
        own = ManagedControlPlaneControllers((kind,))
        others = (
            group
            for group in self.component.groups
            if not isinstance(group, ManagedControlPlaneControllers)
        )
        self.component = replace(self.component, groups=(*others, own))

    def add_namespace(self, name: str) -> None:
        """Add a namespace with the identities that control planes in it need."""
        kinds = find_identity_kinds(self.component)
        add_namespace(self.api, kinds if CREDENTIALS_FEATURE in self.kind.features else (), name)

    def add_cluster(self, *, provisioned: bool = True, namespace: str = NAMESPACE) -> JSON:
        """Add the Cluster, and return it as it was before its infrastructure was provisioned."""
        made = self.api.add(
            {
                "apiVersion": f"{GROUP}/{self.api.core_version}",
                "kind": "Cluster",
                "metadata": {"namespace": namespace, "name": CLUSTER.name},
                "spec": {},
            }
        )
        if provisioned:
            self.provision(namespace)
        return made

    def provision(self, namespace: str = NAMESPACE) -> None:
        """Mark the Cluster's infrastructure as provisioned."""
        status: JSON = {"initialization": {"infrastructureProvisioned": True}}
        if self.is_old_core:
            status = {"infrastructureReady": True}
        self.api.change("Cluster", CLUSTER._replace(namespace=namespace), {"status": status})

    def add_control_plane(
        self, version: str = VERSION, *, namespace: str = NAMESPACE, **changes: Any
    ) -> None:
        """Add a control plane as core creates it; ``changes`` override its spec."""
        cluster = self.api.find("Cluster", CLUSTER._replace(namespace=namespace))
        assert cluster is not None
        owner = {
            "apiVersion": cluster["apiVersion"],
            "kind": "Cluster",
            "name": CLUSTER.name,
            "uid": cluster["metadata"]["uid"],
        }
        self.api.add(
            {
                "apiVersion": self.kind.resource.api_version,
                "kind": self.kind.resource.kind,
                "metadata": {
                    "namespace": namespace,
                    "name": CONTROL_PLANE.name,
                    "labels": {CLUSTER_NAME: CLUSTER.name},
                    "ownerReferences": [owner],
                },
                "spec": {
                    **self.manifests.sample_spec(self.kind.resource.kind),
                    **({"version": version} if self.has_version else {}),
                    **changes,
                },
            }
        )

    async def running(self, version: str = VERSION, **changes: Any) -> None:
        """Add a Cluster with a control plane, and wait until it is initialised."""
        self.add_cluster()
        self.add_control_plane(version, **changes)
        await self.eventually("it is initialised", self.initialized)
        await self.quiet()

    async def look_again(self) -> None:
        """Change an annotation of the control plane, so that it is reconciled again."""
        touched = {"metadata": {"annotations": {"touched": str(len(self.api.requests))}}}
        self.api.change(self.kind.resource.kind, CONTROL_PLANE, touched)
        await asyncio.sleep(0)
        await self.quiet()

    def obj(self, namespace: str = NAMESPACE) -> JSON:
        """Return the control plane object from the fake API server."""
        key = CONTROL_PLANE._replace(namespace=namespace)
        found = self.api.find(self.kind.resource.kind, key)
        assert found is not None, "the control plane is gone"
        return found

    def status(self, namespace: str = NAMESPACE) -> JSON:
        """Return the status of the control plane object, or an empty object."""
        return self.obj(namespace).get("status") or {}

    def initialized(self, namespace: str = NAMESPACE) -> bool:
        """Return whether the control plane is reported as initialized (CP-02, CP-03)."""
        status = self.status(namespace)
        if self.contract == "v1beta1":
            return status.get("initialized") is True
        return (status.get("initialization") or {}).get("controlPlaneInitialized") is True

    def condition(self, condition_type: str) -> JSON:
        """Return a condition of the control plane, or {} if it has none of that type."""
        found = self.status().get("conditions") or ()
        return next((each for each in found if each["type"] == condition_type), {})

    def says(self, condition_type: str, status: str, reason: str = "") -> bool:
        """Return whether the control plane has a condition of this type, status and reason.

        An empty ``reason`` matches any.  Also true if the CRD has no conditions.
        """
        return self.shows(self.obj(), condition_type, status, reason or None)

    def kubeconfig(self) -> Access:
        """Return the address and credentials in the kubeconfig Secret."""
        secret = self.api.find("Secret", KUBECONFIG)
        assert secret is not None, "there is no kubeconfig"
        return parse(base64.b64decode(secret["data"]["value"]))
