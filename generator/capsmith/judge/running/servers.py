"""Start management clusters for a run: core, the installed releases, and their managers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from capsmith.clusters.processes.cluster import Base, ManagementCluster
from capsmith.clusters.processes.clusterctl import Clusterctl
from capsmith.clusters.processes.component import ProviderRelease, ReleaseComponent
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.manager import ProviderManager
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.servers import Etcd
from capsmith.clusters.processes.tools import Toolbox
from capsmith.judge.running.booting import Booting
from capsmith.judge.running.cluster_session import ClusterSession

_INFRASTRUCTURE = "infrastructure"
# clusterctl installs the kubeadm providers unless a flag names others or none.
_NONE = "-"
_DEFAULTS = {"bootstrap": _NONE, "control-plane": _NONE}


class ManagerCommand(NamedTuple):
    """A component, and the command that runs its manager."""

    component: ReleaseComponent
    argv: tuple[str, ...]


@dataclass(frozen=True)
class Installation:
    """The releases to install into each management cluster, and the managers to start."""

    releases: tuple[ProviderRelease, ...]
    commands: tuple[ManagerCommand, ...]
    """One of each type of provider."""
    environment: Mapping[str, str]
    """Of the managers, beside that of their Deployments."""
    flags: tuple[str, ...]
    """Of the managers, after those of their Deployments."""
    variables: Mapping[str, str]
    """Of clusterctl."""
    prerequisites: Sequence[JSON]
    """Objects that are applied before the clusters, such as credentials."""


class RunningProvider:
    """A management cluster with core and the provider's managers."""

    def __init__(
        self, base: Base, name: str, series: str, clusterctl: Clusterctl, installed: Installation
    ) -> None:
        self.management = ManagementCluster(base, name, series, clusterctl)
        self._installed = installed
        self.managers = {
            component.type: ProviderManager(
                argv, component, self.management, installed.environment, installed.flags
            )
            for component, argv in installed.commands
        }
        """By type of provider."""

    @property
    def manager(self) -> ProviderManager:
        """Return the infrastructure manager, or the first manager if there is none."""
        return self.managers.get(_INFRASTRUCTURE) or next(iter(self.managers.values()))

    def start(self) -> None:
        """Start all processes and install the releases.  Raises CapsmithError if one fails."""
        names = {component.type: component.name for component, _ in self._installed.commands}
        variables = dict(self._installed.variables)
        for manager in self.managers.values():
            variables |= manager.variables
        try:
            self.management.start({**_DEFAULTS, **names}, variables)
        except TimeoutError as error:
            raise ProcessError(str(error)) from error
        # Before the managers, which may end if their credentials are missing.
        for each in self._installed.prerequisites:
            self.management.client.apply(each)
        for manager in self.managers.values():
            manager.start()

    def stop(self) -> None:
        """Stop all processes."""
        with ExitStack() as ends:
            ends.callback(self.management.stop)
            for manager in self.managers.values():
                ends.callback(manager.stop)


class ManagementServers:
    """The first management cluster of a run, and a second one if a check moves clusters."""

    def __init__(
        self,
        base: Base,
        series: str,
        installed: Installation,
        folder: Path,
        progress: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Define servers with their logs in a folder; etcd of the base must run."""
        self._base = replace(base, folder=folder)
        self._series = series
        self._installed = installed
        self._progress = progress
        repository = ClusterctlRepository(folder / "repository")
        repository.add_core(base.tools, series, base.pki)
        for release in installed.releases:
            release.add_to(repository, base.pki.ca_bundle)
        self.clusterctl = Clusterctl(base.tools, series, repository.config, folder)
        self.first = self._define("conformance-first")
        self._second: RunningProvider | None = None

    def start(self) -> None:
        """Start the first management cluster.  Raises CapsmithError if a process fails."""
        self._progress(f"starting kube-apiserver, core {self._series} and the managers")
        self.first.start()

    def start_target(self) -> KubeClient:
        """Start the second management cluster and return its client."""
        if self._second is None:
            self._progress("starting a second management cluster")
            self._second = self._define("conformance-second")
            self._second.start()
        return self._second.management.client

    def move(self, namespace: str) -> None:
        """Move the clusters of a namespace to the second management cluster, if it runs."""
        if self._second is None:
            raise ValueError("There is no second management cluster.")
        target = self._second.management
        self.clusterctl.move(self.first.management.kubeconfig, target.kubeconfig, namespace)

    def booting(self, session: ClusterSession, report: Callable[[str], None]) -> Booting:
        """Return a context in which machines that nothing boots appear to run."""
        return Booting(self._base, session, report)

    def stop(self) -> None:
        """Stop all processes."""
        with ExitStack() as ends:
            for each in (self.first, self._second):
                if each is not None:
                    ends.callback(each.stop)

    def _define(self, name: str) -> RunningProvider:
        return RunningProvider(self._base, name, self._series, self.clusterctl, self._installed)


@contextmanager
def start_servers(
    tools: Toolbox,
    series: str,
    installed: Installation,
    folder: Path,
    progress: Callable[[str], None],
) -> Iterator[ManagementServers]:
    """Start etcd and the first management cluster; stop everything when the context ends."""
    etcd = Etcd(tools, folder)
    base = Base(tools, Pki(folder / "pki"), etcd, folder)
    servers = ManagementServers(base, series, installed, folder, progress)
    with ExitStack() as ends:
        ends.callback(etcd.stop)
        etcd.start()
        ends.callback(servers.stop)
        servers.start()
        yield servers
