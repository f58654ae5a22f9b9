"""Secrets with bootstrap data, and Secrets with certificates."""

from __future__ import annotations

import base64
from typing import Final

from capsmith_runtime.bootstrap.api import CertificatePair, CertificatePurpose, CertificateReader
from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.bootstrap import (
    REASON_WAITING_FOR_CERTIFICATES,
    DataContent,
    Ownership,
    add_owner,
    build_data_secret,
    data_annotations,
    data_secret_of,
    encode_data,
    find_ownership,
    read_data_secret,
)
from capsmith_runtime.contract.constants import CLUSTER_NAME_LABEL
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Object
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName
from capsmith_runtime.reconcile.kinds import SECRET
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting

CERTIFICATES_SECONDS: Final = 10.0
"""Seconds between two look-ups of missing certificates, because no watch reports them."""


class DataSecretNameTakenError(Exception):
    """Raised if a Secret with the configuration's name belongs to another object."""


class DataSecretStore:
    """Reads and writes bootstrap data Secrets by name.

    It has no cache, because that would hold all of the management cluster's Secrets.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def read(self, config: JSON, cluster: str, *, in_use: bool) -> DataContent | None:
        """Return the content of the configuration's Secret, or None if there is no such Secret.

        A Secret whose owner has another UID was restored together with its configuration, or is
        left over from an earlier configuration with the same name. It is adopted if ``in_use`` is
        true, which means that a Machine or MachinePool names it, and deleted otherwise. Raises
        DataSecretNameTakenError if the Secret belongs to another object.
        """
        try:
            secret = await self._client.get(SECRET, _key(config))
        except NotFoundError:
            return None
        ownership = find_ownership(secret, config, cluster)
        if ownership is Ownership.FOREIGN:
            name = data_secret_of(config)
            raise DataSecretNameTakenError(f"Secret {name} belongs to another object")
        if ownership is Ownership.FORMER and not in_use:
            # By UID: another manager may have replaced the Secret since it was read.
            await self._client.delete(SECRET, _key(config), uid=metadata.uid(secret))
            return None
        await self._own(secret, config, cluster, ownership)
        return read_data_secret(secret, config)

    async def write(
        self, config: JSON, cluster: str, content: DataContent, *, replace: bool
    ) -> None:
        """Create the Secret, or replace the existing one's content if ``replace`` is true.

        A pool's data are replaced when one of their inputs has changed (MP-19). Raises
        AlreadyExistsError if the Secret to create exists: another manager has stored data that a
        machine may already use.
        """
        if not replace:
            # The creation fails if another manager has stored data in the meantime, which a machine
            # may already use.
            manifest = build_data_secret(config, cluster, content)
            await self._client.create(SECRET, manifest)
            return
        body = {
            "metadata": {"annotations": data_annotations(config, content)},
            "data": encode_data(content),
        }
        await self._client.patch(SECRET, _key(config), body)

    async def ensure_owner(self, config: JSON, cluster: str) -> None:
        """Restore the Secret's lost owner reference, or update its API version (SM-11, CRD-16).

        Does nothing if the Secret does not exist or belongs to another object.
        """
        try:
            secret = await self._client.get(SECRET, _key(config))
        except NotFoundError:
            return
        ownership = find_ownership(secret, config, cluster)
        if ownership is not Ownership.FOREIGN:
            await self._own(secret, config, cluster, ownership)

    async def _own(self, secret: JSON, config: JSON, cluster: str, ownership: Ownership) -> None:
        if ownership is Ownership.OURS:
            await self._update_owner(secret, config)
        else:
            await self._adopt(secret, config, cluster)

    async def _update_owner(self, secret: JSON, config: JSON) -> None:
        owners = metadata.current_owners(secret, config)
        # The usual case, in which the check costs no write.
        if owners == metadata.items(secret, "metadata", "ownerReferences"):
            return
        version = metadata.text(secret, "metadata", "resourceVersion")
        body = {"metadata": {"ownerReferences": owners}}
        await self._client.patch(SECRET, _key(config), body, resource_version=version)

    async def _adopt(self, secret: JSON, config: JSON, cluster: str) -> None:
        owners = add_owner(secret, config)
        # With the resource version, because a merge patch replaces the list of owners as a whole.
        body = {"metadata": {"ownerReferences": owners, "labels": {CLUSTER_NAME_LABEL: cluster}}}
        version = metadata.text(secret, "metadata", "resourceVersion")
        await self._client.patch(SECRET, _key(config), body, resource_version=version)


def create_certificate_reader(client: KubeClient, cluster: Cluster) -> CertificateReader:
    """Return the function that the reconciler uses to read a Cluster's certificates (SEC-03)."""

    async def read(purpose: CertificatePurpose) -> CertificatePair:
        name = f"{cluster.name}-{purpose}"
        try:
            secret = await client.get(SECRET, NamespacedName(cluster.namespace, name))
        except NotFoundError:
            raise _missing(f"Secret {name} does not exist") from None
        data = metadata.mapping(secret, "data")
        certificate, key = _text(data, "tls.crt"), _text(data, "tls.key")
        if not certificate:
            raise _missing(f'Secret {name} has no key "tls.crt"')
        # Users who sign certificates themselves may keep the key to themselves.
        return CertificatePair(certificate, key or None)

    return read


def _text(data: Object, key: str) -> str:
    return base64.b64decode(data.get(key, "")).decode()


def _missing(message: str) -> NotAvailableError:
    waiting = Waiting(REASON_WAITING_FOR_CERTIFICATES, message, CERTIFICATES_SECONDS)
    return NotAvailableError(waiting)


def _key(config: JSON) -> NamespacedName:
    return NamespacedName(metadata.namespace(config), data_secret_of(config))
