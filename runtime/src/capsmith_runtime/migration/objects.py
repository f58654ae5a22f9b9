"""The phases for one object: rewrite it unchanged, or remove managed fields of old versions."""

from __future__ import annotations

from capsmith_runtime.contract import metadata
from capsmith_runtime.kube.client import JSON, Conflict, KubeClient, NotFound, key_of
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.migration.definitions import Definition
from capsmith_runtime.migration.managed_fields import served_entries
from capsmith_runtime.migration.walk import WriteLimiter


class StorageVersionRewriter:
    """Lets the API server encode objects again, which it does in the storage version."""

    def __init__(
        self, client: KubeClient, crd: Definition, limiter: WriteLimiter, metrics: Metrics
    ) -> None:
        # Webhooks and policies of the cluster are rarely called for the status: none can reject it.
        self._patch = client.patch_status if crd.has_status else client.patch
        self._resource = crd.resource
        self._limiter = limiter
        self._rewritten = metrics.objects_rewritten.labels(crd.resource.kind)

    async def __call__(self, obj: JSON) -> None:
        """Patch nothing: the API server writes only objects that it stored in another version."""
        async with self._limiter.slot():
            try:
                await self._patch(self._resource, key_of(obj), {})
            except (NotFound, Conflict):
                return  # deleted, or just written by another client and thus in the storage version
        self._rewritten.inc()


class ManagedFieldsCleaner:
    """Removes managed fields of versions that are not served."""

    def __init__(self, client: KubeClient, crd: Definition, limiter: WriteLimiter) -> None:
        self._client = client
        self._crd = crd
        self._limiter = limiter

    async def __call__(self, obj: JSON) -> None:
        """Replace the managed fields of the object as it was read.

        Raise Conflict if it was changed since then: it has to be read again.
        """
        entries = served_entries(obj, self._crd.served, self._crd.storage_api_version)
        if entries is None:
            return
        body = {"metadata": {"managedFields": entries}}
        version = metadata.text(obj, "metadata", "resourceVersion")
        async with self._limiter.slot():
            try:
                await self._client.patch(
                    self._crd.resource, key_of(obj), body, resource_version=version
                )
            except NotFound:
                return
