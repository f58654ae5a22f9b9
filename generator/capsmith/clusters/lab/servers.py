"""A lab's servers: etcd, API server, core, the kubeadm providers, simulated machines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.state import LabState, write_state
from capsmith.clusters.lab.supervision import SupervisedServers
from capsmith.clusters.processes.cluster import Base, ManagementCluster
from capsmith.clusters.processes.clusterctl import Clusterctl
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.kubeadm import KUBEADM_TYPES, KubeadmManager, add_kubeadm
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.process import Process
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.servers import Etcd
from capsmith.clusters.processes.tools import Toolbox, core_releases, kubernetes_version
from capsmith.clusters.processes.tools.catalogue import (
    KUBERNETES,
    core_module,
    has_kubeadm,
    kubeadm_module,
)
from capsmith.errors import CapsmithError

_NONE = "-"


def module_names(series: str) -> list[str]:
    """Return the names of the tool modules that a lab needs for a release series of core."""
    kubeadm = [kubeadm_module(series)] if has_kubeadm(series) else []
    return [KUBERNETES, core_module(series), *kubeadm]


class LabServers:
    """A lab's servers, started in order and restarted if they exit."""

    def __init__(
        self, lab: LabFolder, series: str, tools: Toolbox, pid: int, gates: str = ""
    ) -> None:
        self._lab = lab
        self._series = series
        self._tools = tools
        self._pid = pid
        self._pki = Pki(lab.pki)
        self._etcd = Etcd(tools, lab.root)
        base = Base(tools, self._pki, self._etcd, lab.root)
        repository = ClusterctlRepository(lab.repository)
        repository.add_core(tools, series, self._pki)
        if has_kubeadm(series):
            add_kubeadm(repository, base, series)
        clusterctl = Clusterctl(tools, series, repository.config, lab.root)
        self._management = ManagementCluster(
            base, lab.management.name, series, clusterctl, gates, audited=False
        )
        self._kubeadm = [
            KubeadmManager(base, self._management, type, gates, kept=False)
            for type in (KUBEADM_TYPES if has_kubeadm(series) else ())
        ]
        machines = [sys.executable, "-m", "capsmith.clusters.lab.simulated", str(lab.root)]
        self._machines = Process("machines", machines, lab.root / "machines.log")
        self._supervised = SupervisedServers(lab.state, self._state)

    @property
    def step_count(self) -> int:
        """Return the number of progress messages that a start reports."""
        return 6 if self._kubeadm else 5

    def start(self, progress: Callable[[str], None]) -> None:
        """Start all servers.

        ``progress`` receives messages about the current step.  Raises CapsmithError if a server
        fails.
        """
        try:
            self._start(progress)
        except TimeoutError as error:
            raise ProcessError(str(error)) from error

    def look(self, now: float, note: Callable[[str], None]) -> None:
        """Restart servers that have exited, and write the lab's state if it changed.

        ``note`` receives messages about restarts.
        """
        self._supervised.look(now, note)

    def stop(self) -> None:
        """Stop all servers. Their data is not kept."""
        # Clients stop before the servers that they use.
        management = self._management
        parts = [self._machines, *self._managers(), management.core.process]
        parts += [
            management.controllers.process,
            management.apiserver.process,
            self._etcd.process,
        ]
        for each in parts:
            with suppress(CapsmithError):
                each.kill()

    def _start(self, progress: Callable[[str], None]) -> None:
        progress("starting etcd")
        self._etcd.start()
        self._supervised.add("etcd", self._etcd.process)
        providers = {each.type: each.name for each in self._kubeadm}
        ports = {key: value for each in self._kubeadm for key, value in each.variables.items()}
        initial = providers or dict.fromkeys(KUBEADM_TYPES, _NONE)
        management = self._management
        management.start(initial, ports, progress)
        self._supervised.add("apiserver", management.apiserver.process)
        self._supervised.add("controllers", management.controllers.process)
        self._supervised.add("core", management.core.process)
        self._supervised.expect("machines", *map(_name_kubeadm, self._kubeadm))
        write_state(self._lab.state, self._state())
        progress("starting the simulated machines")
        self._machines.start()
        self._supervised.add("machines", self._machines)
        if self._kubeadm:
            progress("starting the providers for kubeadm")
        for manager in self._kubeadm:
            manager.start()
            self._supervised.add(_name_kubeadm(manager), manager.process)
        self._wait_machines()

    def _wait_machines(self) -> None:
        """Wait until the API server for the first cluster runs, according to its state file."""
        self._machines.wait_ready((self._lab.root / "workload.json").exists)

    def _managers(self) -> list[Process]:
        found = []
        for manager in self._kubeadm:
            with suppress(ProcessError):
                found.append(manager.process)
        return found

    def _state(self) -> LabState:
        return LabState(
            pid=self._pid,
            core=core_releases()[self._series],
            series=self._series,
            kubernetes=self._tools.kubernetes or kubernetes_version(),
            kubeconfig=str(self._management.kubeconfig),
            simulated=True,
            tools={name: str(folder) for name, folder in self._tools.folders.items()},
            found={name: str(path) for name, path in self._tools.found.items()},
            etcd=self._etcd.url,
            components=self._supervised.list_states(),
        )


def _name_kubeadm(manager: KubeadmManager) -> str:
    return f"{manager.type}-kubeadm"
