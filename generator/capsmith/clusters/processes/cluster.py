"""A management cluster: API server, controller manager, core and installed providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from capsmith.clusters.processes.clusterctl import Clusterctl
from capsmith.clusters.processes.connection import Connection
from capsmith.clusters.processes.core import CapiCore
from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.repository import WEBHOOK_PORT_VARIABLE
from capsmith.clusters.processes.servers import ApiServer, ControllerManager, Etcd
from capsmith.clusters.processes.tools import Toolbox


@dataclass(frozen=True)
class Base:
    """The tools, certificates, etcd and folder shared by a session's management clusters."""

    tools: Toolbox
    pki: Pki
    etcd: Etcd
    folder: Path


class ManagementCluster(Connection):
    """A management cluster of local processes, initialized by the real `clusterctl init`."""

    def __init__(
        self,
        base: Base,
        name: str,
        series: str,
        clusterctl: Clusterctl,
        gates: str = "",
        *,
        audited: bool = True,
    ) -> None:
        """Define the cluster's processes, without starting them.

        If ``audited`` is true, the API server logs each request from a ServiceAccount.  ``gates``
        are feature gates for core.
        """
        folder = base.folder / name
        self._base = base
        self._gates = gates
        self.name = name
        self.series = series
        self.folder = folder
        self.pki = base.pki
        self.clusterctl = clusterctl
        self.apiserver = ApiServer(base.tools, base.pki, base.etcd, folder, name, audited=audited)
        self.controllers = ControllerManager(base.tools, base.pki, self.apiserver, folder)
        self.core = CapiCore(base.tools, series, base.pki, self.apiserver, folder, gates)

    @property
    def client(self) -> KubeClient:
        """Return a client that has all permissions."""
        return self.apiserver.client

    @property
    def kubeconfig(self) -> Path:
        """Return the path to a kubeconfig that grants all permissions."""
        return self.apiserver.kubeconfig

    @property
    def serving(self) -> tuple[Path, Path]:
        """Return the paths to the certificate and key that managers use for serving webhooks."""
        return self.pki.serving.cert, self.pki.serving.key

    def start(
        self,
        providers: Mapping[str, str],
        variables: dict[str, str],
        progress: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Start the processes and install ``providers``, which maps provider types to names.

        ``variables`` are values for clusterctl's variables; ``progress`` receives messages about
        the current step.  CRDs exist before the garbage collector starts, and aggregated roles are
        effective before core starts its watches.  Raises ProcessError if a process fails,
        ClusterctlError if clusterctl fails, and TimeoutError if a state is not reached in time.
        """
        progress("starting kube-apiserver")
        self.apiserver.start()
        # This makes clusterctl believe that cert-manager is installed.  cert-manager would issue
        # nothing here, because this run creates the certificates itself.
        for crd in _cert_manager_crds():
            self.client.apply(crd)
        self.wait_established()
        port = {WEBHOOK_PORT_VARIABLE: str(self.core.webhook_port)}
        progress("installing Cluster API with clusterctl init")
        self.clusterctl.init(self.kubeconfig, providers, {**variables, **port})
        self.wait_established()
        progress("starting kube-controller-manager and core")
        self.controllers.start()
        self.wait_core_permitted()
        self.core.start()

    def upgrade(
        self,
        clusterctl: Clusterctl,
        targets: Mapping[str, str],
        variables: Mapping[str, str],
        series: str = "",
    ) -> None:
        """Upgrade providers with `clusterctl upgrade apply`, after stopping their managers.

        ``targets`` maps types to names with versions.  If ``series`` is set, core is upgraded to
        that release series as well.  The garbage collector is restarted, because it would otherwise
        discover the new versions only after half a minute.
        """
        self.clusterctl = clusterctl
        if series:
            self.core.stop()
            self.series = series
            self.core = CapiCore(
                self._base.tools, series, self.pki, self.apiserver, self.folder, self._gates
            )
        port = {WEBHOOK_PORT_VARIABLE: str(self.core.webhook_port)}
        clusterctl.upgrade(self.kubeconfig, targets, {**variables, **port})
        self.wait_established()
        self.controllers.stop()
        self.controllers.start()
        self.wait_core_permitted()
        if series:
            self.core.start()

    def stop(self) -> None:
        """Stop Cluster API's core, the controller manager and the API server."""
        for part in (self.core, self.controllers, self.apiserver):
            part.stop()


def _cert_manager_crds() -> list[JSON]:
    """Return the two CRDs by which clusterctl detects an installed cert-manager."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.lower()}s.cert-manager.io"},
            "spec": {
                "group": "cert-manager.io",
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        }
        for kind in ("Issuer", "Certificate")
    ]
