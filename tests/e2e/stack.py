"""Everything that the tests of one core release need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from capsmith.clusters.lab.simulated.kubelet import Kubelet
from capsmith.clusters.lab.simulated.loop import Changes, Loop
from capsmith.clusters.processes.cluster import Base, ManagementCluster
from capsmith.clusters.processes.clusterctl import Clusterctl
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.kubeadm import KubeadmManager
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.servers import ApiServer
from capsmith.judge.release.targets import parse_core
from tests.e2e.fakes.bootstrap import BootstrapProvider
from tests.e2e.fakes.control_plane import ControlPlaneProvider
from tests.e2e.fakes.control_plane_machines import HELPER_CONFIG
from tests.e2e.fakes.convert import without_kubeadm
from tests.e2e.fakes.dialect import Dialect
from tests.e2e.fakes.manifests import add_helpers
from tests.e2e.harness.cloud import SimulatedCloud
from tests.e2e.harness.contract import ContractVersion
from tests.e2e.harness.provider import Controllers, ProviderUnderTest
from tests.e2e.harness.report import Report
from tests.e2e.releases import NEWEST, OLDEST, PREVIOUS, core_release
from tests.exhaustive import older, short


@dataclass(frozen=True)
class Combination:
    """A core release series, and an example provider with the contract that it implements."""

    series: str
    contract: ContractVersion
    example: str
    name: str = ""
    sections: tuple[str, ...] = ()
    """What is taken of the example's types of provider; all unless given."""
    gates: str = ""
    """Feature gates of core beyond the usual: `RuntimeSDK=true`."""

    @property
    def core_contract(self) -> ContractVersion:
        """Return core's own contract; newer cores also accept older providers."""
        return core_contract(self.series)

    def __str__(self) -> str:
        return self.name or f"{self.series}-{self.contract}"


def core_contract(series: str) -> ContractVersion:
    """Return the contract that core of a series uses itself."""
    core = parse_core(series)
    assert core is not None
    return "v1beta2" if core.contracts[0] == "v1beta2" else "v1beta1"


COMBINATIONS = (
    Combination(NEWEST, "v1beta2", "homelab"),
    *older(Combination(OLDEST, "v1beta1", "homelab-v1beta1")),
    *short(Combination(NEWEST, "v1beta1", "acme")),
    *short(*(Combination(series, "v1beta2", "homelab") for series in PREVIOUS)),
)


SEVERAL_VERSIONS = Combination(NEWEST, "v1beta2", "everything", f"{NEWEST}-everything")
"""A provider with several API versions, a stored one that is not the greatest, and two machines."""

CONCURRENCY = "7"
"""What the management clusters are initialised with; not the default."""


@dataclass
class Site:
    """One management cluster with everything that runs against it."""

    management: ManagementCluster
    managers: dict[str, Controllers]
    """By type of provider."""
    helpers: Loop
    kubeadm: tuple[KubeadmManager, ...] = ()
    """Providers for kubeadm in the place of helpers."""

    @property
    def controllers(self) -> Controllers:
        """Return the controllers of the infrastructure, or else of the first part."""
        return next(iter(self.managers.values()))

    def start(self, provider: ProviderUnderTest) -> None:
        kubeadm = {manager.type: manager.name for manager in self.kubeadm}
        self.management.start(installed_providers(provider) | kubeadm, self._variables(provider))
        for manager in self.kubeadm:
            manager.start()
        self.start_managers()
        self.helpers.start()

    def upgrade(
        self,
        provider: ProviderUnderTest,
        managers: dict[str, Controllers],
        clusterctl: Clusterctl,
        series: str = "",
    ) -> None:
        """Replace the managers by another release and, if given, core by another series."""
        for manager in self.managers.values():
            manager.stop()
        self.managers = managers
        targets = {part.type: f"{part.name}:{provider.version}" for part in provider.parts}
        if series:
            targets["core"] = f"cluster-api:{core_release(series)}"
        self.management.upgrade(clusterctl, targets, self._variables(provider), series)
        self.start_managers()

    @property
    def _processes(self) -> list[Controllers | KubeadmManager]:
        return [*self.managers.values(), *self.kubeadm]

    def start_managers(self) -> None:
        """Start all managers at once, because they may have to wait for each other."""
        for manager in self.managers.values():
            manager.launch()
        for manager in self.managers.values():
            manager.wait_ready()

    def _variables(self, provider: ProviderUnderTest) -> dict[str, str]:
        ports = [manager.variables for manager in self._processes]
        return {**install_variables(provider), **{k: v for each in ports for k, v in each.items()}}

    def wait_leading(self) -> None:
        """Wait until all managers hold their leases; until then, their inaction proves nothing."""
        for manager in self.managers.values():
            manager.wait_leading()

    def stop(self, report: Report) -> None:
        """Stop everything, even if a manager that ended by itself makes this fail."""
        with ExitStack() as ends:
            ends.callback(self.management.stop)
            for manager in self._processes:
                ends.callback(manager.stop)
            for each in self.managers.values():
                report.process(each.process)
            self.helpers.stop()


def installed_providers(provider: ProviderUnderTest) -> dict[str, str]:
    """Return the installed providers by type: the parts under test, and helpers for the rest."""
    helpers = {"bootstrap": "fake", "control-plane": "fake"}
    return {**helpers, **{part.type: part.name for part in provider.parts}}


def install_variables(provider: ProviderUnderTest) -> dict[str, str]:
    """Return the provider's variables for `clusterctl init`."""
    concurrency = {part.concurrency_variable: CONCURRENCY for part in provider.parts}
    return {**provider.variables, **concurrency}


class Stack:
    """A core release, a provider, one simulated cloud, and management clusters on demand."""

    def __init__(
        self,
        base: Base,
        workload: ApiServer | None,
        combination: Combination,
        provider: ProviderUnderTest,
        report: Report,
        environment: Mapping[str, str] | None = None,
        cloud: SimulatedCloud | None = None,
    ) -> None:
        """`environment` is that of the provider's managers, beyond what they always get.

        A `cloud` of the caller's is for a provider that does not use the simulated one.

        Without `workload` each cluster boots one of its own: see `fakes/booting.py`.
        """
        self.name = str(combination)
        self._gates = combination.gates
        self._environment = dict(environment or {})
        self.provider = provider
        self.shared_workload = workload
        self.report = report
        self.dialect = Dialect(combination.core_contract)
        self._base = base
        self.series = series = combination.series
        self.folder = base.folder / self.name
        self.cloud = cloud or SimulatedCloud(self.folder / "cloud")
        self._repository = self._filled_repository()
        self.clusterctl = Clusterctl(base.tools, series, self._repository.config, self.folder)
        log = self.folder / "kubelet.log"
        kubelets = [Kubelet(workload.client, self.cloud, self.name, log)] if workload else []
        self._kubelet = Loop(f"kubelet-{self.name}", log, [each.tick for each in kubelets])
        self._sites: list[Site] = []

    @property
    def workload(self) -> ApiServer:
        """Return the API server that holds the Nodes of all workload clusters."""
        assert self.shared_workload is not None, "each cluster has one of its own"
        return self.shared_workload

    def start(self) -> Site:
        """Start the kubelet and the first management cluster, ready for clusters."""
        self._kubelet.start()
        site = self.add_site("first")
        for prerequisite in self.provider.prerequisites:
            site.management.client.apply(prerequisite)
        return site

    def add_site(self, name: str) -> Site:
        """Start one more management cluster with its own controllers, on the same cloud."""
        full = f"{name}-{self.name}"
        management = ManagementCluster(self._base, full, self.series, self.clusterctl, self._gates)
        helpers = self._helpers(full, management)
        site = Site(management, self._managers(management), helpers, self._kubeadm(management))
        self._sites.append(site)
        with self.report.phase(self.name, f"start management cluster {name}"):
            site.start(self.provider)
        return site

    @contextmanager
    def temporary_sites(self) -> Iterator[None]:
        """Stop the management clusters added meanwhile; idle ones take processor time."""
        kept = len(self._sites)
        try:
            yield
        finally:
            while len(self._sites) > kept:
                self._sites.pop().stop(self.report)

    def offer(self, provider: ProviderUnderTest, *series: str) -> None:
        """Add a release of the provider, and of each given series of core, to the repository."""
        for each in series:
            self._repository.add_core(self._base.tools, each, self._base.pki)
        provider.add_to(self._repository, self.rewrite, self._base.pki)

    def rewrite(self, documents: list[JSON]) -> list[JSON]:
        """Return the provider's templates with kubeadm's kinds replaced."""
        return without_kubeadm(documents)

    def clusterctl_of(self, series: str) -> Clusterctl:
        """Return the clusterctl of a release series."""
        return Clusterctl(self._base.tools, series, self._repository.config, self.folder)

    def upgrade(self, provider: ProviderUnderTest, series: str = "") -> None:
        """Continue with another release of the provider and, if given, another series of core.

        Both must be in the repository. Helpers continue unchanged: a newer core also
        accepts the older format.
        """
        if series:
            self._speak(series)
        self.provider = provider
        for site in self._sites:
            managers = self._managers(site.management)
            site.upgrade(provider, managers, self.clusterctl, series)

    def upgrade_core(self, series: str) -> None:
        """Continue with another series of core from the repository; managers keep running."""
        self._speak(series)
        targets = {"core": f"cluster-api:{core_release(series)}"}
        for site in self._sites:
            site.management.upgrade(self.clusterctl, targets, {}, series)

    def restart_core(self) -> None:
        """Restart core, as an upgrade of the provider alone to another API version requires.

        Core keeps watching a kind in the API version of its first object, but reads use the
        version of the newest contract: a Cluster would wait for the resync if an object's
        last event arrived before the other cache had it.
        """
        for site in self._sites:
            site.management.core.stop()
            site.management.core.start()

    def stop(self) -> None:
        """Stop all processes, even if stopping some of them fails."""
        with ExitStack() as ends:
            ends.callback(self._kubelet.stop)
            for site in self._sites:
                ends.callback(site.stop, self.report)

    def _helpers(self, name: str, management: ManagementCluster) -> Loop:
        client, log = management.client, management.folder / "helpers.log"
        ticks: list[Callable[[], None]] = []
        kinds: set[tuple[str, str]] = set()
        if not self.provider.has("bootstrap"):
            ticks.append(BootstrapProvider(client, self.dialect, log).tick)
            kinds |= self.dialect.kinds_of_bootstrap
        if not self.provider.has("control-plane"):
            helper = ControlPlaneProvider(
                client,
                self.dialect,
                self.workload.kubeconfig_text,
                log,
                self.provider.bootstrap_kind or HELPER_CONFIG,
            )
            ticks.append(helper.tick)
            kinds |= self.dialect.kinds_of_control_plane
        return Loop(f"helpers-{name}", log, ticks, Changes(client, sorted(kinds)))

    def _kubeadm(self, management: ManagementCluster) -> tuple[KubeadmManager, ...]:
        return ()

    def _speak(self, series: str) -> None:
        self.clusterctl = self.clusterctl_of(series)
        self.dialect = Dialect(core_contract(series))

    def _managers(self, management: ManagementCluster) -> dict[str, Controllers]:
        return {
            part.type: Controllers(self.provider, part, management, self.cloud, self._environment)
            for part in self.provider.parts
        }

    def _filled_repository(self) -> ClusterctlRepository:
        repository = ClusterctlRepository(self.folder / "repository")
        repository.add_core(self._base.tools, self.series, self._base.pki)
        add_helpers(repository, self.dialect.contract)
        self.provider.add_to(repository, self.rewrite, self._base.pki)
        return repository
