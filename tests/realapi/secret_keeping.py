"""The Secrets of one cluster on a real API server, with a clock that tests control."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lightkube import KubeConfig, SingleConfig

from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.servers import ApiServer
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.contract.v1beta2 import CoreV1Beta2
from capsmith_runtime.controlplane.secrets.cluster_secrets import ClusterSecrets
from capsmith_runtime.controlplane.secrets.contents import SecretReport
from capsmith_runtime.controlplane.secrets.store import SecretStore
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.lightkube_client import LightkubeClient
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.workload import kubeconfig

NAMESPACE = "default"
LABEL = "cluster.x-k8s.io/cluster-name"
NOW = datetime.now(UTC).replace(microsecond=0)
SUFFIXES = ("ca", "etcd", "proxy", "sa", "kubeconfig")


@dataclass
class Keeping:
    """A cluster, its control plane, and the manager of its Secrets."""

    api: KubeClient
    name: str
    metrics: Metrics
    store: SecretStore
    now: datetime = NOW
    uid: str = "uid-of-the-control-plane"
    endpoint: Endpoint | None = field(default_factory=lambda: Endpoint("10.0.0.1", 6443))
    woken: list[NamespacedName] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.secrets = ClusterSecrets(self.store, lambda: self.now)
        self.store.set_handler(self.woken.append)

    @property
    def owner(self) -> JSON:
        """Return the control plane."""
        return {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1",
            "kind": "AcmeControlPlane",
            "metadata": {"name": f"{self.name}-cp", "namespace": NAMESPACE, "uid": self.uid},
        }

    async def ensure(self, *, generate: bool = True) -> SecretReport:
        """Reconcile the Secrets once."""
        return await self.secrets.reconcile(self.owner, self.cluster(), generate=generate)

    async def requests(self, *, generate: bool = True) -> float:
        """Return the number of requests of one reconcile."""
        before = self._sent()
        await self.ensure(generate=generate)
        return self._sent() - before

    def cluster(self) -> Cluster:
        """Return the Cluster as the manager sees it."""
        metadata = {"name": self.name, "namespace": NAMESPACE}
        found = CoreV1Beta2().read_cluster({"metadata": metadata})
        return replace(found, control_plane_endpoint=self.endpoint)

    def find(self, suffix: str) -> JSON | None:
        """Return one of its Secrets; None if there is none."""
        return self.api.find("v1", "Secret", f"{self.name}-{suffix}", NAMESPACE)

    def get(self, suffix: str) -> JSON:
        """Return one of its Secrets, which has to exist."""
        found = self.find(suffix)
        assert found is not None, f"there is no {suffix}"
        return found

    def data(self, suffix: str, key: str) -> bytes:
        """Return data of one of its Secrets."""
        return base64.b64decode(self.get(suffix)["data"][key])

    def access(self) -> kubeconfig.Access:
        """Return the access of the kubeconfig."""
        return kubeconfig.parse(self.data("kubeconfig", "value"))

    def bring(
        self, suffix: str, secret_type: str, data: Mapping[str, bytes], *, label: bool = True
    ) -> JSON:
        """Create one of its Secrets as a user."""
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        return self.api.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": secret_type,
                "metadata": {
                    "name": f"{self.name}-{suffix}",
                    "namespace": NAMESPACE,
                    "labels": {LABEL: self.name} if label else {},
                },
                "data": encoded,
            }
        )

    async def watched(self, suffix: str) -> None:
        """Wait until the watch shows the current Secret, or none if it has no label."""
        found = self.find(suffix)
        labelled = found is not None and LABEL in found["metadata"].get("labels", {})
        wanted = found["metadata"]["resourceVersion"] if found and labelled else None
        key = NamespacedName(NAMESPACE, f"{self.name}-{suffix}")
        async with asyncio.timeout(60):
            while self._seen(key) != wanted:
                await asyncio.sleep(0.01)

    def _seen(self, key: NamespacedName) -> Any:
        seen = self.store.informer.get(key)
        return seen["metadata"]["resourceVersion"] if seen is not None else None

    def _sent(self) -> float:
        lines = self.metrics.render().decode().splitlines()
        sent = [line for line in lines if line.startswith("kube_requests_total")]
        return sum(float(line.rpartition(" ")[2]) for line in sent if "watch" not in line)


@asynccontextmanager
async def keeping(server: ApiServer, name: str) -> AsyncIterator[Keeping]:
    """Run the informer, and delete the cluster's Secrets in the end."""

    def config() -> SingleConfig:
        found = KubeConfig.from_file(server.kubeconfig).get()
        assert found is not None
        return found

    metrics = Metrics()
    client = LightkubeClient(metrics, field_manager="test", config=config)
    caches = Caches(client, metrics, CoreV1Beta2(), WatchScope())
    made = Keeping(server.client, name, metrics, SecretStore(caches))
    running = asyncio.create_task(made.store.informer.run())
    try:
        await made.store.informer.synced.wait()
        yield made
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await client.close()
        for suffix in (*SUFFIXES, "apiserver-etcd-client"):
            found = made.find(suffix)
            if found is not None:
                server.client.delete(found)


def days(number: float) -> timedelta:
    """Return a number of days."""
    return timedelta(days=number)
