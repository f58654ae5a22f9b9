"""Prerequisites of a new machine: the cluster's infrastructure, credentials and bootstrap data."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Protocol

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster, read_endpoint
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.identity.resolver import CredentialsResolver
from capsmith_runtime.infrastructure.api import InfraClusterView
from capsmith_runtime.infrastructure.caches import InfrastructureCaches, describe_missing
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName
from capsmith_runtime.reconcile.kinds import SECRET
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.scopes import BootstrapData, BootstrapReader
from capsmith_runtime.reconcile.sessions import Credentials

DEFAULT_FORMAT = "cloud-config"


class DataOwner(Protocol):
    """The owner of bootstrap data: a Machine or a MachinePool."""

    @property
    def name(self) -> str:
        """Return the name of the Machine or MachinePool."""
        ...

    @property
    def namespace(self) -> str:
        """Return the namespace of the owner and its Secret."""
        ...

    @property
    def data_secret_name(self) -> str | None:
        """Return the name of the Secret with the bootstrap data, or None until it is known."""
        ...


def create_bootstrap_reader(client: KubeClient, owner: DataOwner) -> BootstrapReader:
    """Return a function that reads the bootstrap data for ``owner``, a Machine or MachinePool."""

    async def read() -> BootstrapData:
        name = owner.data_secret_name
        if not name:
            # A Machine of a deleted MachinePool, whose bootstrap data it used (IM-21).
            raise _no_data(f"{owner.name} does not name a bootstrap Secret")
        try:
            secret = await client.get(SECRET, NamespacedName(owner.namespace, name))
        except NotFoundError:
            raise _no_data(f"Secret {name} does not exist") from None
        data = metadata.mapping(secret, "data")
        if "value" not in data:
            raise _no_data(f'Secret {name} has no key "value"')
        # Bytes, not text: bootstrap data may be compressed.
        kind = base64.b64decode(data.get("format", "")).decode()
        return BootstrapData(base64.b64decode(data["value"]), kind or DEFAULT_FORMAT)

    return read


def _no_data(message: str) -> NotAvailableError:
    return NotAvailableError(Waiting(constants.REASON_WAITING_FOR_BOOTSTRAP, message))


@dataclass(frozen=True, slots=True)
class ClusterInfrastructure:
    """A Cluster's infrastructure cluster and the credentials for it."""

    infra_cluster: InfraClusterView | None
    """The infrastructure cluster, or None if it was deleted or another provider manages it."""
    credentials: Credentials | Waiting
    blocker: Waiting | None
    """A Waiting that names what machines still need, or None if nothing is missing."""

    @property
    def ready_credentials(self) -> Credentials | Waiting:
        """Return the credentials, or a Waiting that names what a new machine still needs."""
        return self.blocker or self.credentials

    @classmethod
    async def of(
        cls,
        caches: InfrastructureCaches,
        credentials: CredentialsResolver,
        namespace: str,
        cluster: Cluster | None,
        name: str | None = None,
        user: JSON | None = None,
    ) -> ClusterInfrastructure:
        """Look up the infrastructure cluster and credentials of ``cluster``.

        If ``cluster`` is None, the infrastructure cluster is found by ``name``, the Cluster's name.
        ``user`` is the machine or pool that is being reconciled. The credentials come from the
        identity that ``user`` names, or else from the infrastructure cluster's identity, or, if the
        infrastructure cluster is gone, from the identity recorded on ``user``.
        """
        if cluster is None:
            obj = caches.orphaned_infra_cluster(namespace, name)
            return cls(_view(caches, obj), await _credentials(credentials, obj, user), None)
        obj = caches.infra_cluster_of(cluster)
        kind = caches.cluster_kind(cluster.infrastructure)
        if kind is None:
            # An infrastructure cluster of another provider refers to no identity of this one.
            own = await credentials.of_override(user) if user is not None else Credentials()
            return cls(_view(caches, obj), own, None)
        blocker = describe_missing(cluster, kind.resource.kind) if obj is None else None
        return cls(_view(caches, obj), await _credentials(credentials, obj, user), blocker)


async def _credentials(
    credentials: CredentialsResolver, infra_cluster: JSON | None, user: JSON | None
) -> Credentials | Waiting:
    if user is not None and credentials.has_override(user):
        return await credentials.of_override(user)
    if infra_cluster is None:
        # A tool that deletes everything together may delete the infrastructure cluster before its
        # machines.
        return await credentials.of_machine(user)
    return await credentials.of_object(infra_cluster)


def find_infra_cluster(
    caches: InfrastructureCaches, namespace: str, cluster: Cluster | None, name: str
) -> InfraClusterView | None:
    """Return a Cluster's infrastructure cluster, found by ``name`` if the Cluster is gone.

    Returns None if there is none, or if another provider manages it.
    """
    if cluster is None:
        return _view(caches, caches.orphaned_infra_cluster(namespace, name))
    return _view(caches, caches.infra_cluster_of(cluster))


def find_core_blocker(cluster: Cluster, owner: DataOwner, kind: str) -> Waiting | None:
    """Return Waiting while core does not allow the owner's machines to be created, otherwise None.

    See IM-19 and IM-20.
    """
    if not cluster.infrastructure_provisioned:
        message = f"infrastructure of Cluster {cluster.name} is not provisioned yet"
        return Waiting(constants.REASON_WAITING_FOR_INFRASTRUCTURE, message, None)
    # An empty name differs from None: a pool's machines use the pool's bootstrap data (IM-21).
    if owner.data_secret_name is None:
        message = f"bootstrap data of {kind} {owner.name} are not available yet"
        return Waiting(constants.REASON_WAITING_FOR_BOOTSTRAP, message, None)
    return None


def _view(caches: InfrastructureCaches, obj: JSON | None) -> InfraClusterView | None:
    if obj is None:
        return None
    (kind,) = (k for k in caches.kinds.clusters if k.resource.kind == obj["kind"])
    return InfraClusterView(
        name=metadata.name(obj),
        namespace=metadata.namespace(obj),
        external_id=kind.external_id(obj),
        control_plane_endpoint=read_endpoint(obj),
        raw_spec=metadata.mapping(obj, "spec"),
        raw_status=metadata.mapping(obj, "status"),
        kind=kind.resource.kind,
    )
