"""A fake management cluster for bootstrap providers, with the parts of core that they need."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime

from capsmith_runtime.bootstrap.api import CertificatePurpose
from capsmith_runtime.bootstrap.controller import BootstrapConfigKind
from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.bootstrap.certificates import PURPOSES, certificate_of
from capsmith_runtime.testing.environment import TestEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.testing.secret_values import find_secret_line

NAMESPACE = "default"
GROUP = "cluster.x-k8s.io"
CLUSTER_NAME = f"{GROUP}/cluster-name"


class BootstrapEnvironment(TestEnvironment):
    """A management cluster with Clusters, Machines and MachinePools, as core creates them."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        kind: BootstrapConfigKind,
    ) -> None:
        super().__init__(provider, component, core_version)
        self.kind = kind

    def secret_values(self) -> Mapping[str, str]:
        """Return the secret values of the samples, and a line of each private key."""
        keys = {
            find_secret_line(key): f"the private key of the certificate {purpose}"
            for purpose in PURPOSES
            if (key := certificate_of(purpose).private_key)
        }
        return {**super().secret_values(), **keys}

    def add_cluster(self, name: str = "c1", *, ready: bool = True) -> NamespacedName:
        """Add a Cluster with an endpoint and certificates, whose control plane is not up yet."""
        key = NamespacedName(NAMESPACE, name)
        endpoint = {"host": "192.0.2.10", "port": 6443}
        network = {"pods": {"cidrBlocks": ["10.0.0.0/16"]}}
        spec = {"controlPlaneEndpoint": endpoint, "clusterNetwork": network}
        self.api.add(self._core_object("Cluster", name, spec))
        for purpose in PURPOSES:
            self._add_certificate(name, purpose)
        if ready:
            self.infrastructure_is_ready(key)
        return key

    def add_machine(
        self, cluster: NamespacedName, name: str, *, control_plane: bool = False
    ) -> NamespacedName:
        """Add a Machine and its configuration, and return the key that they share."""
        machine = self.machine(cluster, name)
        if control_plane:
            machine["metadata"]["labels"] = {f"{GROUP}/control-plane": ""}
        return self.add_config(cluster, name, self.api.add(machine))

    def machine(self, cluster: NamespacedName, name: str) -> JSON:
        """Return a new Machine object without adding it to the cluster."""
        spec = {"clusterName": cluster.name, "version": "v1.34.0", "bootstrap": {}}
        return self._core_object("Machine", name, spec)

    def add_pool(self, cluster: NamespacedName, name: str = "p1") -> NamespacedName:
        """Add a MachinePool and its configuration, and return the key that they share."""
        template = {"spec": {"version": "v1.34.0", "bootstrap": {}}}
        spec = {"clusterName": cluster.name, "replicas": 1, "template": template}
        pool = self.api.add(self._core_object("MachinePool", name, spec))
        return self.add_config(cluster, name, pool)

    def add_config(self, cluster: NamespacedName, name: str, owner: JSON | None) -> NamespacedName:
        """Add a configuration like one cloned from a template; ``owner`` may be set later."""
        labels = {CLUSTER_NAME: cluster.name}
        metadata: JSON = {"namespace": cluster.namespace, "name": name, "labels": labels}
        if owner is not None:
            metadata["ownerReferences"] = [reference_to(owner)]
        self.api.add(
            {
                "apiVersion": self.kind.resource.api_version,
                "kind": self.kind.resource.kind,
                "metadata": metadata,
                "spec": self.manifests.sample_spec(self.kind.resource.kind),
            }
        )
        return NamespacedName(cluster.namespace, name)

    def infrastructure_is_ready(self, cluster: NamespacedName) -> None:
        """Mark the infrastructure cluster as provisioned, as core does."""
        new = {"initialization": {"infrastructureProvisioned": True}}
        status = {"infrastructureReady": True} if self.is_old_core else new
        self.api.change("Cluster", cluster, {"status": status})

    def control_plane_is_initialized(self, cluster: NamespacedName) -> None:
        """Mark the control plane as initialised, as core does once it responds."""
        condition = {"type": "ControlPlaneInitialized", "status": "True"}
        new = {"initialization": {"controlPlaneInitialized": True}}
        status = {"conditions": [condition]} if self.is_old_core else new
        self.api.change("Cluster", cluster, {"status": status})

    def pause(self, cluster: NamespacedName, paused: bool = True) -> None:
        """Set a Cluster's ``spec.paused`` to ``paused``."""
        self.api.change("Cluster", cluster, {"spec": {"paused": paused or None}})

    def adopt(self, owner: str, key: NamespacedName) -> None:
        """Copy the data Secret's name to the owner's spec, as core does."""
        bootstrap = {"bootstrap": {"dataSecretName": self.config(key)["status"]["dataSecretName"]}}
        spec = bootstrap if owner == "Machine" else {"template": {"spec": bootstrap}}
        self.api.change(owner, key, {"spec": spec})

    def config(self, key: NamespacedName) -> JSON:
        """Return the configuration's current object; the test fails if it does not exist."""
        found = self.api.find(self.kind.resource.kind, key)
        assert found is not None, f"{key} is gone"
        return found

    def secret(self, key: NamespacedName) -> JSON | None:
        """Return a configuration's data Secret, or None if there is none."""
        return self.api.find("Secret", key)

    def data(self, key: NamespacedName) -> bytes:
        """Return the bootstrap data in a configuration's Secret."""
        secret = self.secret(key)
        assert secret is not None, f"{key} has no Secret"
        return base64.b64decode(secret["data"]["value"])

    def refresh_time(self, key: NamespacedName) -> float | None:
        """Return when a configuration's data have to be renewed, or None for never."""
        secret = self.secret(key)
        assert secret is not None, f"{key} has no Secret"
        name = f"{self.kind.resource.group}/refresh-at"
        found = (secret["metadata"].get("annotations") or {}).get(name)
        return None if found is None else datetime.fromisoformat(found).timestamp()

    def lock(self, cluster: NamespacedName) -> JSON | None:
        """Return a Cluster's init lock, or None while no machine holds it."""
        return self.api.find("ConfigMap", NamespacedName(cluster.namespace, f"{cluster.name}-lock"))

    def created(self, key: NamespacedName) -> bool:
        """Return whether core considers a configuration's data to be created (BC-01 to BC-04)."""
        status = self.config(key).get("status") or {}
        flag = status.get("ready")
        if self.contract != "v1beta1":
            flag = (status.get("initialization") or {}).get("dataSecretCreated")
        return flag is True and bool(status.get("dataSecretName"))

    async def has_data(self, key: NamespacedName) -> None:
        """Wait until a configuration's data exist."""
        await self.eventually(f"{key} has data", lambda: self.created(key))

    async def says(self, key: NamespacedName, reason: str) -> None:
        """Wait until a configuration's Ready condition is False with ``reason``."""
        await self.eventually(
            f"{key} says {reason}",
            lambda: self.shows(self.config(key), "Ready", "False", reason),
        )

    async def running_worker(self) -> tuple[NamespacedName, NamespacedName]:
        """Add a Cluster and a worker with data, and return their keys."""
        cluster = self.add_cluster()
        self.control_plane_is_initialized(cluster)
        key = self.add_machine(cluster, "m1")
        await self.has_data(key)
        await self.quiet()
        return cluster, key

    def _add_certificate(self, cluster: str, purpose: CertificatePurpose) -> None:
        pair = {
            "tls.crt": certificate_of(purpose).certificate,
            "tls.key": certificate_of(purpose).private_key or "",
        }
        metadata = {
            "namespace": NAMESPACE,
            "name": f"{cluster}-{purpose}",
            "labels": {CLUSTER_NAME: cluster},
        }
        data = {name: base64.b64encode(text.encode()).decode() for name, text in pair.items()}
        self.api.add({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

    def _core_object(self, kind: str, name: str, spec: JSON) -> JSON:
        return {
            "apiVersion": f"{GROUP}/{self.api.core_version}",
            "kind": kind,
            "metadata": {"namespace": NAMESPACE, "name": name},
            "spec": spec,
        }


def reference_to(owner: JSON) -> JSON:
    """Return an owner reference as core writes it."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
