"""Run the managers of Cluster API's kubeadm providers as processes, next to core's manager."""

from __future__ import annotations

from capsmith.clusters.processes.cluster import Base, ManagementCluster
from capsmith.clusters.processes.component import ReleaseComponent
from capsmith.clusters.processes.manager import ProviderManager
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.tools import core_releases
from capsmith.clusters.processes.tools.catalogue import kubeadm_module

KUBEADM_TYPES = ("bootstrap", "control-plane")
_VARIABLES = {
    # As in core: without the gate, the webhooks refuse templates of ClusterClasses.
    "CLUSTER_TOPOLOGY": "true",
    # The limit of one reconcile per object and second would dominate the run time.
    "EXP_RECONCILER_RATE_LIMITING": "false",
}


def add_kubeadm(repository: ClusterctlRepository, base: Base, series: str) -> None:
    """Add both kubeadm providers of a release series to a clusterctl repository.

    Their webhooks call this computer.
    """
    out = base.tools.folders[kubeadm_module(series)]
    for component in (ReleaseComponent(out, type) for type in KUBEADM_TYPES):
        text = (out / component.file).read_text()
        files = {
            component.file: component.localise(text, base.pki.ca_bundle),
            "metadata.yaml": (out / "metadata.yaml").read_text(),
        }
        repository.add(component.label, core_releases()[series], component.file, files)


class KubeadmManager(ProviderManager):
    """The manager of one kubeadm provider, with the settings from its installed Deployment."""

    def __init__(
        self,
        base: Base,
        management: ManagementCluster,
        type: str,
        gates: str = "",
        *,
        kept: bool = True,
    ) -> None:
        """Define the manager for the kubeadm provider whose type is `bootstrap` or `control-plane`.

        `gates` are feature gates in addition to those in its Deployment, as for core.  If ``kept``
        is true, the manager is restarted whenever it fails.
        """
        self.type = type
        module = kubeadm_module(management.series)
        self._part = ReleaseComponent(base.tools.folders[module], type)
        self._cluster = management
        binary = str(base.tools.path(module, f"{type}-manager"))
        flags = [f"--feature-gates={gates}"] if gates else []
        super().__init__([binary], self._part, management, flags=flags, kept=kept)

    @property
    def name(self) -> str:
        """Return the provider's name in clusterctl."""
        return self._part.name

    @property
    def variables(self) -> dict[str, str]:
        """Return the values of clusterctl variables for installing the provider.

        With these values, the installed provider uses this process as its manager.
        """
        return {**_VARIABLES, **super().variables}

    def start(self) -> None:
        """Start the manager once all providers' roles have taken effect."""
        (account,) = self._part.of("ServiceAccount")
        user = f"system:serviceaccount:{self._part.namespace}:{account['metadata']['name']}"
        self._cluster.wait_permitted(user, self._read())
        super().start()

    def _read(self) -> list[tuple[str, str]]:
        """Return the kinds that the manager reads: core's, its own, and cloned infrastructure."""
        crds = [crd["spec"] for crd in self._part.crds]
        found = [("cluster.x-k8s.io", "machines")]
        found += [(spec["group"], spec["names"]["plural"]) for spec in crds]
        if self.type == "control-plane":
            found += self._cluster.provider_resources()
        return found
