"""The kubeconfig Secret of a cluster (CP-22, SEC-01)."""

from __future__ import annotations

from capsmith_runtime.controlplane.secrets.contents import (
    KubeconfigContent,
    adoption_patch,
    encode,
    kubeconfig_content,
    new_secret,
)
from capsmith_runtime.controlplane.secrets.report import SecretReport
from capsmith_runtime.controlplane.secrets.store import CachedSecret, SecretStore
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.workload.kubeconfig import SECRET_KEY, secret_name

CachedKubeconfig = CachedSecret[KubeconfigContent]


class KubeconfigSecrets:
    """Reads and writes ``<cluster>-kubeconfig``, but never one that users have created."""

    def __init__(self, store: SecretStore) -> None:
        self._store = store

    async def get(
        self, owner: JSON, cluster: NamespacedName, report: SecretReport
    ) -> CachedKubeconfig | None:
        """Return the kubeconfig if the watch has delivered one, checked or adopted."""
        key = NamespacedName(cluster.namespace, secret_name(cluster.name))
        secret = await self._store.find(key, kubeconfig_content)
        if secret is None:
            return None
        return await self._check_or_adopt(secret, owner, cluster, report)

    async def write(
        self,
        owner: JSON,
        cluster: NamespacedName,
        content: bytes,
        secret: CachedKubeconfig | None,
        report: SecretReport,
    ) -> CachedKubeconfig | None:
        """Replace ``secret``, or create the Secret; one that others have created is kept.

        None if it was deleted in the meantime.
        """
        data = {SECRET_KEY: content}
        if secret is not None:
            body = {"data": encode(data)}
            return await self._store.patch(secret, body, kubeconfig_content)
        obj = new_secret(secret_name(cluster.name), cluster, owner, data)
        created = await self._store.create(obj, kubeconfig_content)
        if created is None:
            return None
        return await self._check_or_adopt(created, owner, cluster, report)

    async def _check_or_adopt(
        self, secret: CachedKubeconfig, owner: JSON, cluster: NamespacedName, report: SecretReport
    ) -> CachedKubeconfig:
        """Set owner and label on a managed Secret; report what is wrong with one of users."""
        patch = adoption_patch(secret.obj, cluster.name, owner)
        if not secret.is_managed:
            _check(secret, "labels" in patch, cluster, report)
        elif patch:
            return await self._store.patch(secret, {"metadata": patch}, kubeconfig_content)
        return secret


def _check(
    secret: CachedKubeconfig, unlabelled: bool, cluster: NamespacedName, report: SecretReport
) -> None:
    name, content = secret_name(cluster.name), secret.content
    if content.fault:
        report.add_unusable(name, content.fault)
    elif unlabelled:
        report.add_unlabelled(name, cluster.name)
    elif content.validity is not None:
        report.check_expiry(name, content.validity.end)
