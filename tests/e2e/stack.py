"""Everything that one core release needs for its tests, put together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.e2e.fakes.bootstrap import BootstrapProvider
from tests.e2e.fakes.control_plane import ControlPlaneProvider
from tests.e2e.fakes.convert import without_kubeadm
from tests.e2e.fakes.dialect import Dialect
from tests.e2e.fakes.kubelet import Kubelet
from tests.e2e.fakes.loop import Loop
from tests.e2e.fakes.manifests import add_helpers
from tests.e2e.harness.cloud import SimulatedCloud
from tests.e2e.harness.clusterctl import Clusterctl
from tests.e2e.harness.components import ApiServer
from tests.e2e.harness.contract import ContractVersion
from tests.e2e.harness.management import Base, ManagementCluster
from tests.e2e.harness.provider import Controllers, ProviderUnderTest
from tests.e2e.harness.report import Report
from tests.e2e.harness.repository import Repository

CONTRACTS: dict[str, ContractVersion] = {"v1.13": "v1beta2", "v1.10": "v1beta1"}
"""Contract version of the provider that each core series is tested with."""


@dataclass
class Site:
    """One management cluster with all that runs against it."""

    management: ManagementCluster
    controllers: Controllers
    helpers: Loop

    def start(self, provider: ProviderUnderTest) -> None:
        self.management.start(provider.name, provider.variables)
        self.controllers.start()
        self.helpers.start()

    def stop(self, report: Report) -> None:
        self.helpers.stop()
        report.process(self.controllers.process)
        for part in (self.controllers, self.management):
            part.stop()


class Stack:
    """A core release, a provider, one simulated cloud, and management clusters on demand."""

    def __init__(
        self,
        base: Base,
        workload: ApiServer,
        series: str,
        provider: ProviderUnderTest,
        report: Report,
    ) -> None:
        self.series = series
        self.provider = provider
        self.workload = workload
        self.report = report
        self.dialect = Dialect(provider.contract)
        self._base = base
        self.folder = base.folder / series
        self.cloud = SimulatedCloud(self.folder / "cloud")
        self.clusterctl = Clusterctl(base.tools, series, self._repository(), self.folder)
        log = self.folder / "kubelet.log"
        kubelet = Kubelet(workload.client, self.cloud, series, log)
        self._kubelet = Loop(f"kubelet-{series}", log, [kubelet.tick])
        self._sites: list[Site] = []

    def start(self) -> Site:
        """Start the kubelet and the first management cluster."""
        self._kubelet.start()
        return self.add_site("first")

    def add_site(self, name: str) -> Site:
        """Start one more management cluster with its own controllers, on the same cloud."""
        full = f"{name}-{self.series.replace('.', '-')}"
        management = ManagementCluster(self._base, full, self.series, self.clusterctl)
        log = management.folder / "helpers.log"
        client = management.client
        bootstrap = BootstrapProvider(client, self.dialect, log)
        control_plane = ControlPlaneProvider(
            client, self.dialect, self.workload.kubeconfig_text, log
        )
        site = Site(
            management,
            Controllers(self.provider, management, self.cloud),
            Loop(f"helpers-{full}", log, [bootstrap.tick, control_plane.tick]),
        )
        self._sites.append(site)
        with self.report.phase(self.series, f"start management cluster {name}"):
            site.start(self.provider)
        return site

    def stop(self) -> None:
        for site in self._sites:
            site.stop(self.report)
        self._kubelet.stop()

    def _repository(self) -> Path:
        repository = Repository(self.folder / "repository")
        repository.add_core(self._base.tools, self.series, self._base.pki)
        add_helpers(repository, self.provider.contract)
        self.provider.add_to(repository, without_kubeadm)
        return repository.config
