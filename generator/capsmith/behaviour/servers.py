"""Management clusters that a run starts: core, the installed release, and its manager."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from capsmith.management.cluster import Base, ManagementCluster
from capsmith.management.clusterctl import Clusterctl
from capsmith.management.errors import ProcessError
from capsmith.management.kube import JSON, KubeClient
from capsmith.management.manager import ProviderManager
from capsmith.management.pki import Pki
from capsmith.management.release import ProviderRelease
from capsmith.management.repository import Repository
from capsmith.management.servers import Etcd
from capsmith.management.tools import Toolbox

TYPE = "infrastructure"
# clusterctl installs the kubeadm providers by default, which a run without control planes lacks.
_NONE = "-"


@dataclass(frozen=True)
class Installation:
    """What is installed into each management cluster, and started there."""

    release: ProviderRelease
    argv: tuple[str, ...]
    """The command of the manager."""
    environment: Mapping[str, str]
    """Of the manager, beside that of its Deployment."""
    flags: tuple[str, ...]
    """Of the manager, after those of its Deployment."""
    variables: Mapping[str, str]
    """Of clusterctl."""
    prerequisites: Sequence[JSON]
    """Objects that are applied before the clusters, such as credentials."""


class RunningProvider:
    """A management cluster with core and the provider's manager."""

    def __init__(
        self, base: Base, name: str, series: str, clusterctl: Clusterctl, installed: Installation
    ) -> None:
        self.management = ManagementCluster(base, name, series, clusterctl)
        self._installed = installed
        component = installed.release.component(TYPE)
        self._name = component.name
        self.manager = ProviderManager(
            installed.argv, component, self.management, installed.environment, installed.flags
        )

    def start(self) -> None:
        """Start all processes and install the release; raises CapsmithError if one fails."""
        providers = {TYPE: self._name, "bootstrap": _NONE, "control-plane": _NONE}
        variables = {**self._installed.variables, **self.manager.variables}
        try:
            self.management.start(providers, variables)
        except TimeoutError as error:
            raise ProcessError(str(error)) from error
        for each in self._installed.prerequisites:
            self.management.client.apply(each)
        self.manager.start()

    def stop(self) -> None:
        """Stop all processes."""
        with ExitStack() as ends:
            ends.callback(self.management.stop)
            ends.callback(self.manager.stop)


class Servers:
    """The first management cluster of a run, and a second one when a check moves clusters."""

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
        repository = Repository(folder / "repository")
        repository.add_core(base.tools, series, base.pki)
        installed.release.add_to(repository, base.pki.ca_bundle)
        self.clusterctl = Clusterctl(base.tools, series, repository.config, folder)
        self.first = self._define("conformance-first")
        self._second: RunningProvider | None = None

    def start(self) -> None:
        """Start the first management cluster."""
        self._progress(f"starting kube-apiserver, core {self._series} and the manager")
        self.first.start()

    def move(self, namespace: str) -> KubeClient:
        """Start the second management cluster and move a namespace there; return its client."""
        if self._second is None:
            self._progress("starting a second management cluster")
            self._second = self._define("conformance-second")
            self._second.start()
        target = self._second.management
        self.clusterctl.move(self.first.management.kubeconfig, target.kubeconfig, namespace)
        return target.client

    def stop(self) -> None:
        """Stop all processes."""
        with ExitStack() as ends:
            for each in (self.first, self._second):
                if each is not None:
                    ends.callback(each.stop)

    def _define(self, name: str) -> RunningProvider:
        return RunningProvider(self._base, name, self._series, self.clusterctl, self._installed)


@contextmanager
def started(
    tools: Toolbox,
    series: str,
    installed: Installation,
    folder: Path,
    progress: Callable[[str], None],
) -> Iterator[Servers]:
    """Start etcd and the first management cluster, and stop everything in the end."""
    etcd = Etcd(tools, folder)
    base = Base(tools, Pki(folder / "pki"), etcd, folder)
    servers = Servers(base, series, installed, folder, progress)
    with ExitStack() as ends:
        ends.callback(etcd.stop)
        etcd.start()
        ends.callback(servers.stop)
        servers.start()
        yield servers
