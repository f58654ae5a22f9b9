"""A workload cluster of the generated code's certificates, and clients of it by its Secret."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from lightkube import KubeConfig, SingleConfig

from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.servers import ApiServer
from capsmith_runtime.controlplane.secrets.certificates import KeyPair, sign_client
from capsmith_runtime.kube.lightkube_client import LightkubeClient
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.workload.client import WorkloadClients
from capsmith_runtime.workload.kubeconfig import Access, render

NAMESPACE = "default"


@dataclass(frozen=True)
class Workload:
    """A cluster whose certificates the generated code has made."""

    server: ApiServer
    authority: KeyPair

    def kubeconfig(self, authority: KeyPair | None = None) -> bytes:
        signer = authority or self.authority
        client = sign_client(signer, "kubernetes-admin", ["system:masters"], datetime.now(UTC))
        access = Access(
            server=self.server.url,
            authority=self.authority.certificate,
            certificate=client.certificate,
            key=client.key,
        )
        return render("one", access)


def store(api: KubeClient, secret: JSON, content: bytes) -> None:
    data = {"value": base64.b64encode(content).decode()}
    if api.find("v1", "Secret", secret["metadata"]["name"], NAMESPACE) is None:
        api.create({**secret, "data": data})
    else:
        api.patch(secret, {"data": data})


def cluster_of(secret: JSON) -> str:
    name: str = secret["metadata"]["name"]
    return name.removesuffix("-kubeconfig")


@asynccontextmanager
async def clients(
    api_server: ApiServer, refresh_seconds: float = 0.0, request_seconds: float = 60.0
) -> AsyncIterator[WorkloadClients]:
    def config() -> SingleConfig:
        found = KubeConfig.from_file(api_server.kubeconfig).get()
        assert found is not None
        return found

    metrics = Metrics()
    management = LightkubeClient(metrics, field_manager="test", config=config)
    made = WorkloadClients(
        management,
        metrics,
        field_manager="test",
        request_seconds=request_seconds,
        refresh_seconds=refresh_seconds,
    )
    try:
        yield made
    finally:
        await made.close()
        await management.close()
