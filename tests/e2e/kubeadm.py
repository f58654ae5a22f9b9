"""Clusters of a generated infrastructure provider and Cluster API's providers for kubeadm."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from capsmith.management.cluster import Base, ManagementCluster
from capsmith.management.kube import JSON
from capsmith.management.process import free_port
from capsmith.management.repository import Repository
from capsmith.management.tools.catalogue import KUBEADM as MODULE
from tests.e2e.fakes.booting import BootingCluster
from tests.e2e.fakes.kubeadm import KubeadmKubelet
from tests.e2e.fakes.loop import Loop
from tests.e2e.harness.kubeadm import SERIES, TYPES, KubeadmManager, add_kubeadm
from tests.e2e.harness.report import Report
from tests.e2e.provider import build_provider
from tests.e2e.scenario import Scenario, one_scenario
from tests.e2e.stack import Combination, Stack

KUBEADM = Combination(SERIES, "v1beta2", "homelab", f"kubeadm-{SERIES}-v1beta2")
_ETCD = "/etc/kubernetes/pki/external"


class KubeadmStack(Stack):
    """A stack without helper providers; each cluster boots its own API server at one address."""

    def __init__(self, base: Base, report: Report) -> None:
        self._port = free_port()
        with report.phase(str(KUBEADM), "build the provider"):
            folder = base.folder / str(KUBEADM)
            provider = build_provider(KUBEADM.example, KUBEADM.contract, folder)
        endpoint = {"CAPSMITH_SIMULATED_ENDPOINT": f"127.0.0.1:{self._port}"}
        super().__init__(base, None, KUBEADM, provider, report, endpoint)

    def rewrite(self, documents: list[JSON]) -> list[JSON]:
        """Leave templates as they are."""
        return documents

    @property
    def release(self) -> Path:
        """The folder with the release of the providers for kubeadm."""
        return self._base.tools.folders[MODULE]

    @contextmanager
    def scenario(self, test: str) -> Iterator[Scenario]:
        """A cluster that boots by itself; what the test leaves is removed."""
        with ExitStack() as ends, one_scenario(self, self._sites[0], test) as made:
            # A failed test's cluster is deleted before that, for which core wants to reach it.
            made.booting = ends.enter_context(self._booting(made))
            yield made

    @contextmanager
    def unmade_scenario(self, name: str, namespace: str) -> Iterator[Scenario]:
        """A cluster that boots once something else creates it, in a namespace that it creates."""
        made = Scenario(self, self._sites[0].management, name, namespace)
        with self._booting(made):
            yield made

    def render(self, scenario: Scenario, control_planes: int, workers: int) -> list[JSON]:
        """The cluster's objects as rendered, but for etcd outside of the machines."""
        documents = scenario.render(control_planes, workers)
        (found,) = (each for each in documents if each["kind"] == "KubeadmControlPlane")
        files = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
        external = {key: f"{_ETCD}/{name}" for key, name in files.items()}
        found["spec"]["kubeadmConfigSpec"]["clusterConfiguration"] = {
            "etcd": {"external": {"endpoints": [self._base.etcd.url], **external}}
        }
        pair = self._base.pki.serving
        authority = {"tls.crt": pair.cert}
        client = {**authority, "tls.key": pair.key}
        secrets = {"etcd": authority, "apiserver-etcd-client": client}
        return [*documents, *(_secret(scenario, *each) for each in secrets.items())]

    @contextmanager
    def _booting(self, scenario: Scenario) -> Iterator[BootingCluster]:
        booting = BootingCluster(
            self._base, self.cloud, self._port, scenario.namespace, scenario.name, KubeadmKubelet
        )
        booting.start(lambda: scenario.client)
        try:
            yield booting
        finally:
            booting.stop()

    def _helpers(self, name: str, management: ManagementCluster) -> Loop:
        return Loop(f"helpers-{name}", management.folder / "helpers.log", [])

    def _kubeadm(self, management: ManagementCluster) -> tuple[KubeadmManager, ...]:
        return tuple(KubeadmManager(self._base, management, type) for type in TYPES)

    def _filled_repository(self) -> Repository:
        repository = super()._filled_repository()
        add_kubeadm(repository, self._base)
        return repository


def _secret(scenario: Scenario, purpose: str, files: Mapping[str, Path]) -> JSON:
    """The Secret with which the API server reaches etcd."""
    metadata = {"name": f"{scenario.name}-{purpose}", "namespace": scenario.namespace}
    data = {key: base64.b64encode(path.read_bytes()).decode() for key, path in files.items()}
    kind = {"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret"}
    return {**kind, "metadata": metadata, "data": data}
