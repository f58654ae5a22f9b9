"""A client whose errors name the workload cluster, to tell it from the management cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager

from capsmith_runtime.kube.client import (
    JSON,
    KubeClient,
    NamespacedName,
    Page,
    ResourceType,
    Selection,
    Unauthorized,
    Unreachable,
    WatchEvent,
)


class ClusterUnreachableError(Unreachable):
    """No answer from a workload cluster: refused, reset, timed out, or the certificate is wrong."""


class GuardedClient:
    """Implements `KubeClient`; calls `on_failure` when the kubeconfig may be out of date."""

    def __init__(self, inner: KubeClient, cluster: str, on_failure: Callable[[], None]) -> None:
        self._inner = inner
        self._cluster = cluster
        self._on_failure = on_failure

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        """See KubeClient."""
        with self._guard():
            return await self._inner.list_page(resource, selection, limit=limit, token=token)

    async def watch(
        self, resource: ResourceType, selection: Selection, *, resource_version: str
    ) -> AsyncGenerator[WatchEvent, None]:
        """See KubeClient."""
        events = self._inner.watch(resource, selection, resource_version=resource_version)
        with self._guard():
            async with aclosing(events) as stream:
                async for event in stream:
                    yield event

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        """See KubeClient."""
        with self._guard():
            return await self._inner.get(resource, key)

    async def create(self, resource: ResourceType, obj: JSON) -> JSON:
        """See KubeClient."""
        with self._guard():
            return await self._inner.create(resource, obj)

    async def patch(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        """See KubeClient."""
        with self._guard():
            return await self._inner.patch(resource, key, body, resource_version=resource_version)

    async def patch_status(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        """See KubeClient."""
        with self._guard():
            return await self._inner.patch_status(
                resource, key, body, resource_version=resource_version
            )

    async def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> JSON:
        """See KubeClient."""
        with self._guard():
            return await self._inner.apply(resource, obj, force=force)

    async def delete(self, resource: ResourceType, key: NamespacedName, *, uid: str = "") -> None:
        """See KubeClient."""
        with self._guard():
            await self._inner.delete(resource, key, uid=uid)

    async def served_versions(self, group: str) -> tuple[str, ...]:
        """See KubeClient."""
        with self._guard():
            return await self._inner.served_versions(group)

    async def close(self) -> None:
        """See KubeClient."""
        await self._inner.close()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except Unreachable as error:
            self._on_failure()
            message = f"workload cluster {self._cluster}: {error.message}"
            raise ClusterUnreachableError(0, error.reason, message) from error
        except Unauthorized:
            self._on_failure()
            raise
