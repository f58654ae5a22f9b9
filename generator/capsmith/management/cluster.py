"""A management cluster: API server, controller manager, core and installed providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from capsmith.management.clusterctl import Clusterctl
from capsmith.management.core import USER, CapiCore
from capsmith.management.kube import JSON, ApiError, KubeClient
from capsmith.management.pki import Pki
from capsmith.management.repository import WEBHOOK_PORT_VARIABLE
from capsmith.management.servers import ApiServer, ControllerManager, Etcd
from capsmith.management.tools import Toolbox
from capsmith.management.wait import NotYet, eventually

_MOVE = "clusterctl.cluster.x-k8s.io/move"


@dataclass(frozen=True)
class Base:
    """What the management clusters of a session share."""

    tools: Toolbox
    pki: Pki
    etcd: Etcd
    folder: Path


class ManagementCluster:
    """One management cluster, created by the real `clusterctl init`."""

    def __init__(
        self, base: Base, name: str, series: str, clusterctl: Clusterctl, gates: str = ""
    ) -> None:
        folder = base.folder / name
        self._base = base
        self._gates = gates
        self.name = name
        self.series = series
        self.folder = folder
        self.pki = base.pki
        self.clusterctl = clusterctl
        self.apiserver = ApiServer(base.tools, base.pki, base.etcd, folder, name)
        self.controllers = ControllerManager(base.tools, base.pki, self.apiserver, folder)
        self.core = CapiCore(base.tools, series, base.pki, self.apiserver, folder, gates)

    @property
    def client(self) -> KubeClient:
        """A client with all permissions."""
        return self.apiserver.client

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig file with all permissions."""
        return self.apiserver.kubeconfig

    def start(self, providers: Mapping[str, str], variables: dict[str, str]) -> None:
        """Start the processes, and install providers by type.

        CRDs precede the garbage collector, aggregated roles precede core's watches. Raises
        ProcessError, ClusterctlError or TimeoutError.
        """
        self.apiserver.start()
        for crd in _cert_manager_crds():
            self.client.apply(crd)
        _wait_established(self.client)
        port = {WEBHOOK_PORT_VARIABLE: str(self.core.webhook_port)}
        self.clusterctl.init(self.kubeconfig, providers, {**variables, **port})
        _wait_established(self.client)
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
        """Install other releases by `clusterctl upgrade apply`; stop their managers before.

        Given a series, replace core too. The garbage collector restarts, because it would otherwise
        read the new versions only after half a minute.
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
        _wait_established(self.client)
        self.controllers.stop()
        self.controllers.start()
        self.wait_core_permitted()
        if series:
            self.core.start()

    def stop(self) -> None:
        """Stop all processes."""
        for part in (self.core, self.controllers, self.apiserver):
            part.stop()

    def wait_core_permitted(self) -> None:
        """Wait for core's permissions: a refused informer backs off for many seconds."""
        self.wait_permitted(USER, list(self.provider_resources()))

    def wait_permitted(self, user: str, resources: Iterable[tuple[str, str]]) -> None:
        """Wait until a user may list resources, given by group and plural.

        Roles reach the authorizer, and are aggregated, some time after their creation. Raises
        TimeoutError with the missing permissions.
        """

        def permitted() -> bool:
            missing = [each for each in resources if not self.may(user, "list", *each)]
            if missing:
                raise NotYet(f"{user} may not list {missing}")
            return True

        eventually(permitted, what="roles in force")

    def core_may(self, verb: str, group: str, plural: str) -> bool:
        """Return whether core's ServiceAccount has a permission."""
        return self.may(USER, verb, group, plural)

    def may(self, user: str, verb: str, group: str, plural: str) -> bool:
        """Return whether a user has a permission."""
        attributes = {"verb": verb, "group": group, "resource": plural}
        review: JSON = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": attributes},
        }
        return bool(self.client.create({**review, "metadata": {}})["status"]["allowed"])

    def provider_resources(self) -> Iterable[tuple[str, str]]:
        """Yield group and plural of each kind that providers install for core to use."""
        for crd in self.client.list("apiextensions.k8s.io/v1", "CustomResourceDefinition"):
            labels, spec = crd["metadata"].get("labels", {}), crd["spec"]
            label = labels.get("cluster.x-k8s.io/provider", "")
            foreign = label.startswith(("infrastructure-", "bootstrap-", "control-plane-"))
            # Core reads no cluster-scoped kinds, and none that clusterctl moves by their label:
            # identities, and the provider's own kinds.
            moved = any(key.startswith(_MOVE) for key in labels)
            if foreign and spec["scope"] == "Namespaced" and not moved:
                yield spec["group"], spec["names"]["plural"]

    def ensure_namespace(self, name: str) -> None:
        """Create a namespace unless it exists."""
        try:
            self.client.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
        except ApiError as error:
            if error.status != 409:
                raise


def _wait_established(client: KubeClient) -> None:
    def established() -> bool:
        crds = client.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        return all(_has_condition(crd, "Established") for crd in crds)

    eventually(established, what="all CRDs established")


def _has_condition(obj: JSON, kind: str) -> bool:
    conditions = obj.get("status", {}).get("conditions") or []
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


def _cert_manager_crds() -> list[JSON]:
    """Return the two kinds by which clusterctl detects an installed cert-manager."""
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
