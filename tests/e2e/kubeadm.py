"""Clusters of a generated infrastructure provider and Cluster API's providers for kubeadm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from capsmith.clusters.lab.simulated.external_etcd import add_external_etcd
from capsmith.clusters.lab.simulated.kubelet import KubeadmKubelet
from capsmith.clusters.lab.simulated.loop import Loop
from capsmith.clusters.processes.cluster import Base, ManagementCluster
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.kubeadm import KUBEADM_TYPES, KubeadmManager, add_kubeadm
from capsmith.clusters.processes.process import free_port
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.tools.catalogue import kubeadm_module
from tests.e2e.fakes.booting import BootingCluster
from tests.e2e.harness.report import Report
from tests.e2e.provider import build_provider
from tests.e2e.releases import NEWEST, OLDEST, PREVIOUS
from tests.e2e.scenario import Scenario, one_scenario
from tests.e2e.stack import Combination, Stack


def _combination(series: str) -> Combination:
    return Combination(series, "v1beta2", "homelab", f"kubeadm-{series}-v1beta2")


KUBEADM = _combination(NEWEST)
KUBEADM_PREVIOUS = tuple(_combination(series) for series in PREVIOUS)
KUBEADM_OLDEST = Combination(OLDEST, "v1beta1", "homelab-v1beta1", f"kubeadm-{OLDEST}-v1beta1")


class KubeadmProviders(Stack):
    """A stack with Cluster API's providers for kubeadm in the place of helpers."""

    def rewrite(self, documents: list[JSON]) -> list[JSON]:
        """Leave templates as they are."""
        return documents

    def _helpers(self, name: str, management: ManagementCluster) -> Loop:
        return Loop(f"helpers-{name}", management.folder / "helpers.log", [])

    def _kubeadm(self, management: ManagementCluster) -> tuple[KubeadmManager, ...]:
        return tuple(
            KubeadmManager(self._base, management, type, self._gates) for type in KUBEADM_TYPES
        )

    def _filled_repository(self) -> ClusterctlRepository:
        repository = super()._filled_repository()
        add_kubeadm(repository, self._base, self.series)
        return repository


class KubeadmStack(KubeadmProviders):
    """Each cluster boots its own API server at one address."""

    def __init__(self, base: Base, combination: Combination, report: Report) -> None:
        self._port = free_port()
        with report.phase(str(combination), "build the provider"):
            folder = base.folder / str(combination)
            provider = build_provider(combination.example, combination.contract, folder)
        endpoint = {"CAPSMITH_SIMULATED_ENDPOINT": f"127.0.0.1:{self._port}"}
        super().__init__(base, None, combination, provider, report, endpoint)

    @property
    def release(self) -> Path:
        """Return the folder with the release of the providers for kubeadm."""
        return self._base.tools.folders[kubeadm_module(self.series)]

    @contextmanager
    def scenario(self, test: str) -> Iterator[Scenario]:
        """Return a context manager with a cluster that boots by itself; clean up at the end."""
        with ExitStack() as ends, one_scenario(self, self._sites[0], test) as made:
            # A failed test's cluster is deleted before that, for which core wants to reach it.
            made.booting = ends.enter_context(self._booting(made))
            yield made

    @contextmanager
    def unmade_scenario(self, name: str, namespace: str) -> Iterator[Scenario]:
        """Return a context manager with a cluster that another tool creates, with its namespace."""
        made = Scenario(self, self._sites[0].management, name, namespace)
        with self._booting(made):
            yield made

    def render(self, scenario: Scenario, control_planes: int, workers: int) -> list[JSON]:
        """Return the cluster's rendered objects, with an etcd outside of the machines."""
        documents = scenario.render(control_planes, workers)
        return add_external_etcd(
            documents, self._base.etcd.url, self._base.pki, scenario.namespace, scenario.name
        )

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
