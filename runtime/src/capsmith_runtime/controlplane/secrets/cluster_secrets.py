"""Certificates and kubeconfig for a cluster whose control plane consists of Machines.

Secrets that users created are used unchanged: they are never owned, renewed or replaced. Missing
keys are generated only as long as nothing can depend on earlier ones; after that, they must be
restored from a backup.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import ObjectRef
from capsmith_runtime.controlplane.control_plane import ControlPlane
from capsmith_runtime.controlplane.secrets.certificates import (
    CertificateError,
    is_signed_by,
    sign_client,
)
from capsmith_runtime.controlplane.secrets.contents import (
    AUTHORITY,
    CERTIFICATE,
    ETCD,
    EXTERNAL_ETCD,
    KEY,
    PURPOSES,
    KeyPairContent,
    KubeconfigContent,
    Purpose,
    SecretReport,
    build_adoption_patch,
    build_secret,
    create_key_pair,
    read_authority,
    read_key_pair,
    read_signing_keys,
)
from capsmith_runtime.controlplane.secrets.store import (
    CachedKubeconfig,
    CachedSecret,
    KubeconfigSecrets,
    SecretStore,
)
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.workload import kubeconfig
from capsmith_runtime.workload.client import WorkloadClients

CachedKeyPair = CachedSecret[KeyPairContent]


class ClusterSecrets:
    """Manages the Secrets ``<cluster>-ca``, ``-etcd``, ``-proxy``, ``-sa`` and ``-kubeconfig``."""

    def __init__(
        self, store: SecretStore, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = store
        self._kubeconfigs = KubeconfigSecrets(store)
        self._now = now

    async def reconcile(
        self,
        owner: JSON,
        cluster: Cluster,
        *,
        generate: bool,
        configurations: Collection[ObjectRef] = (),
    ) -> SecretReport:
        """Create missing Secrets, renew the kubeconfig, and return a report on all Secrets.

        Missing keys are generated only if ``generate`` is true. Set it only while nothing can
        depend on keys that have been lost.  ``configurations`` are bootstrap configurations whose
        keys the owner takes over.  Errors of the API server are propagated.
        """
        report, key = SecretReport(now=self._now()), NamespacedName(cluster.namespace, cluster.name)
        pairs = {
            purpose: await self._reconcile_pair(
                owner, key, purpose, generate, configurations, report
            )
            for purpose in PURPOSES
        }
        secret = await self._kubeconfigs.get(owner, key, report)
        authority, endpoint = pairs[AUTHORITY], cluster.control_plane_endpoint
        if report.has_other_owner:
            return report
        if authority is None or endpoint is None or (secret is not None and not secret.is_managed):
            return report
        server = kubeconfig.server_url(endpoint)
        if secret is None or _is_outdated(secret.content, server, authority.content, report.now):
            secret = await self._write_kubeconfig(owner, key, server, secret, report)
        if secret is not None and secret.is_managed:
            report.renewal = _renewal(secret.content, authority.content)
        return report

    async def _reconcile_pair(
        self,
        owner: JSON,
        cluster: NamespacedName,
        purpose: Purpose,
        generate: bool,
        configurations: Collection[ObjectRef],
        report: SecretReport,
    ) -> CachedKeyPair | None:
        """Return a key pair, or None if it is unusable, for the reason added to ``report``."""
        name = purpose.secret_name(cluster.name)
        key = NamespacedName(cluster.namespace, name)
        extract = read_authority if purpose.common_name else read_signing_keys
        secret = await self._store.find(key, extract)
        if secret is None and generate:
            pair = create_key_pair(purpose, report.now)
            content = {CERTIFICATE: pair.certificate, KEY: pair.key}
            secret = await self._store.create(build_secret(name, cluster, owner, content), extract)
        elif secret is None:
            # The watch may lag behind: only the API server can confirm that a Secret is missing
            # before the user is asked to restore it.
            secret = await self._store.read(key, extract)
        if secret is None:
            report.add_missing(name)
            return None
        patch = build_adoption_patch(secret.obj, cluster.name, owner, configurations)
        other = self._store.find_other_owner(secret, owner) if secret.is_managed else ""
        if other:
            report.add_taken(name, other)
            return None
        if patch and secret.is_managed:
            secret = await self._store.patch(secret, {"metadata": patch}, extract)
        elif "labels" in patch:
            report.add_unlabelled(name, cluster.name)
        return secret if await self._is_usable(secret, cluster, purpose, report) else None

    async def _is_usable(
        self, secret: CachedKeyPair, cluster: NamespacedName, purpose: Purpose, report: SecretReport
    ) -> bool:
        content, name = secret.content, metadata.name(secret.obj)
        fault = content.fault
        is_foreign_etcd = purpose is ETCD and not secret.is_managed
        if fault and is_foreign_etcd and await self._has_external_etcd(cluster):
            fault = content.fault_without_key
        if fault:
            report.add_unusable(name, fault)
            return False
        return content.expiry is None or report.check_expiry(name, content.expiry)

    async def _has_external_etcd(self, cluster: NamespacedName) -> bool:
        """Return whether users run etcd themselves, so that its CA key is not needed here."""
        try:
            await self._store.raw(
                NamespacedName(cluster.namespace, f"{cluster.name}-{EXTERNAL_ETCD}")
            )
        except NotFoundError:
            return False
        return True

    async def _write_kubeconfig(
        self,
        owner: JSON,
        cluster: NamespacedName,
        server: str,
        secret: CachedKubeconfig | None,
        report: SecretReport,
    ) -> CachedKubeconfig | None:
        """Write a kubeconfig with a client certificate signed by the current CA (SEC-01)."""
        name = AUTHORITY.secret_name(cluster.name)
        try:
            pair = read_key_pair(await self._store.raw(NamespacedName(cluster.namespace, name)))
            client = sign_client(
                pair, kubeconfig.ADMINISTRATOR, [kubeconfig.ADMINISTRATORS], report.now
            )
        except CertificateError as error:
            # It was usable a moment ago: a user is changing it, and the watch will report that.
            report.add_unusable(name, str(error))
            return secret
        access = kubeconfig.Access(
            server=server,
            authority=pair.certificate,
            certificate=client.certificate,
            key=client.key,
        )
        content = kubeconfig.render(cluster.name, access)
        return await self._kubeconfigs.write(owner, cluster, content, secret, report)


def _is_outdated(
    content: KubeconfigContent, server: str, authority: KeyPairContent, now: datetime
) -> bool:
    """Return whether a managed kubeconfig must be written again."""
    # A kubeconfig that was written here always has a client certificate.
    if content.fault or content.validity is None:
        return True
    # A renewed authority may keep its key: the signature alone would not show that clients still
    # trust the old certificate.
    if (content.server, content.authority) != (server, authority.certificate):
        return True
    if not is_signed_by(content.certificate, authority.certificate):
        return True
    due = _renewal(content, authority)
    return due is not None and due <= now


def _renewal(content: KubeconfigContent, authority: KeyPairContent) -> datetime | None:
    """Return the time halfway through the certificate's life, at which it is renewed.

    Returns None if its CA expires first, because renewal would gain nothing (SEC-01).
    """
    validity = content.validity
    if validity is None or (authority.expiry is not None and authority.expiry <= validity.end):
        return None
    return validity.half_life


class ClusterAccess:
    """Secrets and workload clients, shared by all of a manager's control planes.

    The manager runs ``informer`` and ``run``.
    """

    def __init__(self, caches: Caches, field_manager: str) -> None:
        self._store = SecretStore(caches)
        self._secrets = ClusterSecrets(self._store)
        self._clients = WorkloadClients(caches.client, caches.metrics, field_manager=field_manager)

    @property
    def informer(self) -> Informer:
        """Return the informer for cluster Secrets."""
        return self._store.informer

    async def run(self) -> None:
        """Close idle workload cluster connections until cancelled."""
        await self._clients.run()

    def add_owners(self, informer: Informer) -> None:
        """Register the informer for a kind of control planes, which own the Secrets."""
        self._store.add_owners(informer)

    def set_handler(self, handler: Callable[[NamespacedName], None]) -> None:
        """Register a function to call with a cluster's key when another client changes a Secret."""
        self._store.set_handler(handler)

    async def reconcile_secrets(self, control_plane: ControlPlane) -> SecretReport:
        """Create missing Secrets and renew the kubeconfig, and return a report on all of them.

        Keys are created only while no Machine can be using earlier ones.  Those that an owned
        Machine's bootstrap configuration owns are taken over.
        """
        values = metadata.annotations(control_plane.obj)
        pending = control_plane.annotations.pending_machine in values
        in_use = pending or control_plane.machines or control_plane.foreign_machines
        return await self._secrets.reconcile(
            control_plane.obj,
            control_plane.cluster,
            generate=not in_use,
            configurations=[
                machine.bootstrap for machine in control_plane.machines if machine.bootstrap
            ],
        )

    async def workload(self, cluster: Cluster) -> KubeClient:
        """Return a client for the workload cluster.

        Raises NotAvailableError if there is no usable kubeconfig.
        """
        return await self._clients.get(cluster.namespace, cluster.name)
