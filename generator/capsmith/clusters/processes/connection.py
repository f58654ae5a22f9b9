"""A connection to a management cluster, for clients in any process."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import NotYet, eventually

CORE_USER = "system:serviceaccount:capi-system:capi-manager"
"""User name that belongs to core's ServiceAccount."""

_CLUSTERCTL_NAMESPACE = "cert-manager-test"
_MOVE = "clusterctl.cluster.x-k8s.io/move"


class Connection:
    """A connection to a management cluster's API server, with a folder for its files."""

    name: str
    folder: Path

    @property
    def client(self) -> KubeClient:
        """Return a client that has all permissions."""
        raise NotImplementedError

    @property
    def kubeconfig(self) -> Path:
        """Return the path to a kubeconfig that grants all permissions."""
        raise NotImplementedError

    @property
    def serving(self) -> tuple[Path, Path]:
        """Return the paths to the certificate and key with which local managers serve webhooks."""
        raise NotImplementedError

    def wait_core_permitted(self) -> None:
        """Wait until core's RBAC permissions take effect.

        If core started earlier, its informers would be denied access and would back off for a long
        time.
        """
        self.wait_permitted(CORE_USER, list(self.provider_resources()))

    def wait_permitted(self, user: str, resources: Iterable[tuple[str, str]]) -> None:
        """Wait until a user may list ``resources``, given as (group, plural).

        New roles take some time to be aggregated and become effective.  Raises TimeoutError with
        the missing permissions.
        """

        def permitted() -> bool:
            missing = [each for each in resources if not self.may(user, "list", *each)]
            if missing:
                raise NotYet(f"{user} cannot list {missing}")
            return True

        eventually(permitted, what="roles in force")

    def core_may(self, verb: str, group: str, plural: str) -> bool:
        """Return whether core's ServiceAccount has a permission."""
        return self.may(CORE_USER, verb, group, plural)

    def may(self, user: str, verb: str, group: str, plural: str) -> bool:
        """Return whether a user has a permission, according to the API server."""
        attributes = {"verb": verb, "group": group, "resource": plural}
        review: JSON = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": attributes},
        }
        # The API server only answers a review and does not store it.
        return bool(self.client.create({**review, "metadata": {}})["status"]["allowed"])

    def provider_resources(self) -> Iterable[tuple[str, str]]:
        """Yield (group, plural) for each provider-defined kind that core reads."""
        for crd in self.client.list("apiextensions.k8s.io/v1", "CustomResourceDefinition"):
            labels, spec = crd["metadata"].get("labels", {}), crd["spec"]
            label = labels.get("cluster.x-k8s.io/provider", "")
            foreign = label.startswith(("infrastructure-", "bootstrap-", "control-plane-"))
            # Core reads neither cluster-scoped kinds nor kinds that clusterctl moves because of
            # their label, such as identities and the provider's own kinds.
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

    def wait_established(self) -> None:
        """Wait until all CustomResourceDefinitions are established.

        Raises TimeoutError if that takes too long.
        """

        def established() -> bool:
            crds = self.client.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
            return all(_has_condition(crd, "Established") for crd in crds)

        eventually(established, what="all CRDs established")

    def wait_clusterctl(self) -> None:
        """Wait until `clusterctl init` can again detect that cert-manager is installed.

        clusterctl tests cert-manager in a temporary namespace.  While that namespace is being
        deleted, clusterctl assumes that cert-manager is missing and downloads it.
        """

        def is_deleted() -> bool:
            return self.client.find("v1", "Namespace", _CLUSTERCTL_NAMESPACE) is None

        eventually(is_deleted, what=f"the namespace {_CLUSTERCTL_NAMESPACE} is deleted")


def _has_condition(obj: JSON, kind: str) -> bool:
    conditions = obj.get("status", {}).get("conditions") or []
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)
