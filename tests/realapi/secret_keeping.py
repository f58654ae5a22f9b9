"""The Secrets of one cluster on a real API server, with a clock that tests set."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from capsmith_generated.contract.core import Cluster
from capsmith_generated.contract.core_v1beta2 import CoreV1Beta2
from capsmith_generated.contract.model import Endpoint
from capsmith_generated.controllers.control_plane.secret_report import SecretReport
from capsmith_generated.controllers.control_plane.secret_store import SecretStore
from capsmith_generated.controllers.control_plane.secrets import ClusterSecrets
from capsmith_generated.controllers.kinds import Registry
from capsmith_generated.controllers.world import Scope, World
from capsmith_generated.runtime.client import Key
from capsmith_generated.runtime.lightkube_client import LightkubeClient
from capsmith_generated.runtime.metrics import Metrics
from capsmith_generated.workload import kubeconfig
from lightkube import KubeConfig, SingleConfig

from tests.e2e.harness.components import ApiServer
from tests.e2e.harness.kube import JSON, KubeClient

NAMESPACE = "default"
LABEL = "cluster.x-k8s.io/cluster-name"
NOW = datetime.now(UTC).replace(microsecond=0)
SUFFIXES = ("ca", "etcd", "proxy", "sa", "kubeconfig")


@dataclass
class Keeping:
    """A cluster, its control plane, and who keeps its Secrets."""

    api: KubeClient
    name: str
    metrics: Metrics
    store: SecretStore
    now: datetime = NOW
    uid: str = "uid-of-the-control-plane"
    endpoint: Endpoint | None = field(default_factory=lambda: Endpoint("10.0.0.1", 6443))
    woken: list[Key] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.secrets = ClusterSecrets(self.store, lambda: self.now)
        self.store.connect(self.woken.append)

    @property
    def owner(self) -> JSON:
        """The control plane."""
        return {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1",
            "kind": "AcmeControlPlane",
            "metadata": {"name": f"{self.name}-cp", "namespace": NAMESPACE, "uid": self.uid},
        }

    async def ensure(self, *, generate: bool = True) -> SecretReport:
        """One look."""
        return await self.secrets.ensure(self.owner, self.cluster(), generate=generate)

    async def requests(self, *, generate: bool = True) -> float:
        """How many requests one look costs."""
        before = self._sent()
        await self.ensure(generate=generate)
        return self._sent() - before

    def cluster(self) -> Cluster:
        """As the manager sees it."""
        found = CoreV1Beta2().cluster({"metadata": {"name": self.name, "namespace": NAMESPACE}})
        return replace(found, control_plane_endpoint=self.endpoint)

    def find(self, suffix: str) -> JSON | None:
        """One of its Secrets."""
        return self.api.find("v1", "Secret", f"{self.name}-{suffix}", NAMESPACE)

    def get(self, suffix: str) -> JSON:
        """One of its Secrets, which has to be there."""
        found = self.find(suffix)
        assert found is not None, f"there is no {suffix}"
        return found

    def data(self, suffix: str, key: str) -> bytes:
        """What one of its Secrets holds."""
        return base64.b64decode(self.get(suffix)["data"][key])

    def access(self) -> kubeconfig.Access:
        """What the kubeconfig says."""
        return kubeconfig.read(self.data("kubeconfig", "value"))

    def bring(
        self, suffix: str, secret_type: str, data: Mapping[str, bytes], *, label: bool = True
    ) -> JSON:
        """Create one of its Secrets as its user."""
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
        """Wait until the watch shows the Secret as it is now; without label it shows none."""
        found = self.find(suffix)
        labelled = found is not None and LABEL in found["metadata"].get("labels", {})
        wanted = found["metadata"]["resourceVersion"] if found and labelled else None
        key = Key(NAMESPACE, f"{self.name}-{suffix}")
        async with asyncio.timeout(60):
            while self._seen(key) != wanted:
                await asyncio.sleep(0.01)

    def _seen(self, key: Key) -> Any:
        seen = self.store.informer.get(key)
        return seen["metadata"]["resourceVersion"] if seen is not None else None

    def _sent(self) -> float:
        lines = self.metrics.render().decode().splitlines()
        sent = [line for line in lines if line.startswith("kube_requests_total")]
        return sum(float(line.rpartition(" ")[2]) for line in sent if "watch" not in line)


@asynccontextmanager
async def keeping(server: ApiServer, name: str) -> AsyncIterator[Keeping]:
    """The informer runs; the cluster's Secrets go away in the end."""

    def config() -> SingleConfig:
        found = KubeConfig.from_file(server.kubeconfig).get()
        assert found is not None
        return found

    metrics = Metrics()
    client = LightkubeClient(metrics, field_manager="test", config=config)
    registry = Registry(label="control-plane-acme", namespace="acme-system")
    world = World(client, metrics, registry, CoreV1Beta2(), Scope())
    made = Keeping(server.client, name, metrics, SecretStore(world))
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
    """So many days."""
    return timedelta(days=number)
