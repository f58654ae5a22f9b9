"""Servers for a lab with a node, on which core and the kubeadm providers run as Pods.

All servers run in the node's namespaces; see :mod:`capsmith.clusters.node`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from capsmith.clusters.lab.folder import LabFolder, read_pid
from capsmith.clusters.lab.state import LabState, write_state
from capsmith.clusters.lab.supervision import SupervisedServers
from capsmith.clusters.node.components import add_releases, list_images
from capsmith.clusters.node.daemons import NodeProcesses
from capsmith.clusters.node.plan import (
    ADDRESS,
    CONTROLLER_FLAGS,
    SERVICE,
    NodePaths,
    build_api_server_flags,
)
from capsmith.clusters.node.tools import NodeTools
from capsmith.clusters.processes.clusterctl import Clusterctl
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.kubeadm import KUBEADM_TYPES
from capsmith.clusters.processes.pki import ADMIN_GROUP, Pki
from capsmith.clusters.processes.process import Process
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.servers import ApiServer, ControllerManager, Etcd
from capsmith.clusters.processes.tools import Toolbox, core_releases, kubernetes_version
from capsmith.clusters.processes.tools.catalogue import has_kubeadm
from capsmith.errors import CapsmithError

# As in a lab without a node: ClusterClasses are enabled, and core's rate limits and checks do not
# dominate the run time.
_VARIABLES = {
    "CLUSTER_TOPOLOGY": "true",
    "EXP_MACHINE_SET_PREFLIGHT_CHECKS": "false",
    "EXP_RECONCILER_RATE_LIMITING": "false",
}


class NodeServers:
    """The servers of a lab with a node, started in order and restarted if they exit."""

    def __init__(
        self, lab: LabFolder, series: str, tools: Toolbox, node_tools: NodeTools, port: int
    ) -> None:
        """Define all servers, without starting any.

        ``port`` is the port of the management cluster's API server.
        """
        self._lab = lab
        self._series = series
        self._tools = tools
        self._node_tools = node_tools
        paths = NodePaths(lab.node)
        pki = Pki(lab.pki, names=[ADDRESS, SERVICE])
        caller = pki.issue("apiserver-kubelet", ["apiserver.invalid"], "apiserver", ADMIN_GROUP)
        flags = build_api_server_flags(pki.ca, caller.cert, caller.key)
        self._etcd = Etcd(tools, lab.root)
        self._apiserver = ApiServer(
            *(tools, pki, self._etcd, lab.management, lab.management.name, port),
            audited=False,
            others=flags,
        )
        self._controllers = ControllerManager(
            tools, pki, self._apiserver, lab.management, CONTROLLER_FLAGS
        )
        self._node = NodeProcesses(paths, lab.root, node_tools, pki, self._apiserver.url)
        machines = [sys.executable, "-m", "capsmith.clusters.lab.simulated", str(lab.root)]
        self._machines = Process("machines", machines, lab.root / "machines.log")
        self._supervised = SupervisedServers(lab.state, self._state)

    @property
    def step_count(self) -> int:
        """Return the number of progress messages that starting the servers reports."""
        return 6

    def start(self, progress: Callable[[str], None]) -> None:
        """Start all servers and install core.

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
        """Stop the servers. The kernel kills the Pods along with the namespaces."""
        node = self._node.processes.values()
        servers = (self._controllers.process, self._apiserver.process, self._etcd.process)
        for each in (self._machines, *node, *servers):
            with suppress(CapsmithError):
                each.kill()

    def _start(self, progress: Callable[[str], None]) -> None:
        progress("starting etcd and kube-apiserver")
        self._etcd.start()
        self._supervised.add("etcd", self._etcd.process)
        self._apiserver.start()
        self._supervised.add("apiserver", self._apiserver.process)
        progress("starting the node: containerd, kubelet, kube-scheduler, kube-proxy")
        self._node.start()
        for name, process in self._node.processes.items():
            self._supervised.add(name, process)
        self._controllers.start()
        self._supervised.add("controllers", self._controllers.process)
        self._node.add_images(list_images(self._tools, self._node_tools, self._series), progress)
        progress("waiting until the Node is ready")
        self._node.wait_ready(self._apiserver.client)
        self._install(progress)
        self._supervised.expect("machines")
        write_state(self._lab.state, self._state())
        progress("starting the simulated machines")
        self._machines.start()
        self._supervised.add("machines", self._machines)
        self._machines.wait_ready((self._lab.root / "workload.json").exists)

    def _install(self, progress: Callable[[str], None]) -> None:
        progress("installing cert-manager and Cluster API with clusterctl init, as Pods")
        repository = ClusterctlRepository(self._lab.repository)
        add_releases(repository, self._tools, self._node_tools, self._series)
        clusterctl = Clusterctl(self._tools, self._series, repository.config, self._lab.root)
        name = "kubeadm" if has_kubeadm(self._series) else "-"
        providers = dict.fromkeys(KUBEADM_TYPES, name)
        kubeconfig: Path = self._apiserver.kubeconfig
        clusterctl.init(kubeconfig, providers, _VARIABLES, is_awaited=True)

    def _state(self) -> LabState:
        return LabState(
            pid=read_pid(self._lab),
            core=core_releases()[self._series],
            series=self._series,
            kubernetes=self._tools.kubernetes or kubernetes_version(),
            kubeconfig=str(self._apiserver.kubeconfig),
            simulated=True,
            tools={name: str(folder) for name, folder in self._tools.folders.items()},
            found={name: str(path) for name, path in self._tools.found.items()},
            etcd=self._etcd.url,
            # A process id in the namespaces means nothing on the host.
            components=tuple(replace(each, pid=0) for each in self._supervised.list_states()),
            address=ADDRESS,
            node=str(self._lab.node),
            ctr=str(self._node_tools.containerd / "ctr"),
        )
