"""Clients for workload clusters, created from kubeconfig Secrets (SEC-01)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Final

from lightkube import ConfigError, SingleConfig
from lightkube.config.models import Cluster, Context, User

from capsmith_runtime.contract import metadata
from capsmith_runtime.errors import NotFoundError, UnauthorizedError, UnreachableError
from capsmith_runtime.kube.client import (
    JSON,
    KubeClient,
    NamespacedName,
    Page,
    ResourceType,
    Selection,
    WatchEvent,
)
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.lightkube_client import LightkubeClient
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.workload.kubeconfig import (
    SECRET_KEY,
    Access,
    KubeconfigError,
    parse,
    render,
    secret_name,
)

MAX_RESPONSE_BYTES: Final = 8 * 1024 * 1024
"""Maximum size of a response: a tenant's kubeconfig may name any server, which must not be able to
fill the manager's memory."""


class ClusterUnreachableError(UnreachableError):
    """Raised if a workload cluster does not respond, or if its certificate is not trusted."""


class GuardedClient:
    """A `KubeClient` that calls `on_failure` after errors that an outdated kubeconfig may cause."""

    def __init__(self, inner: KubeClient, cluster: str, on_failure: Callable[[], None]) -> None:
        self._inner = inner
        self._cluster = cluster
        self._on_failure = on_failure

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return one page of a list; see `KubeClient.list_page`."""
        with self._guard():
            return await self._inner.list_page(resource, selection, limit=limit, token=token)

    async def watch(
        self, resource: ResourceType, selection: Selection, *, resource_version: str
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield the events of a watch; see `KubeClient.watch`."""
        events = self._inner.watch(resource, selection, resource_version=resource_version)
        with self._guard():
            async with aclosing(events) as stream:
                async for event in stream:
                    yield event

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        """Return one object from the API server; see `KubeClient.get`."""
        with self._guard():
            return await self._inner.get(resource, key)

    async def create(self, resource: ResourceType, obj: JSON) -> JSON:
        """Create an object and return it; see `KubeClient.create`."""
        with self._guard():
            return await self._inner.create(resource, obj)

    async def update(self, resource: ResourceType, obj: JSON) -> JSON:
        """Replace an object and return the result; see `KubeClient.update`."""
        with self._guard():
            return await self._inner.update(resource, obj)

    async def patch(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        """Apply a JSON merge patch and return the object; see `KubeClient.patch`."""
        with self._guard():
            return await self._inner.patch(resource, key, body, resource_version=resource_version)

    async def patch_status(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        """Apply a JSON merge patch to the status; see `KubeClient.patch_status`."""
        with self._guard():
            return await self._inner.patch_status(
                resource, key, body, resource_version=resource_version
            )

    async def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> JSON:
        """Apply an object by server-side apply and return it; see `KubeClient.apply`."""
        with self._guard():
            return await self._inner.apply(resource, obj, force=force)

    async def delete(self, resource: ResourceType, key: NamespacedName, *, uid: str = "") -> None:
        """Request the deletion of an object; see `KubeClient.delete`."""
        with self._guard():
            await self._inner.delete(resource, key, uid=uid)

    async def served_versions(self, group: str) -> tuple[str, ...]:
        """Return the served versions of an API group; see `KubeClient.served_versions`."""
        with self._guard():
            return await self._inner.served_versions(group)

    async def close(self) -> None:
        """Close all connections to the workload cluster's API server."""
        await self._inner.close()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except UnreachableError as error:
            self._on_failure()
            message = f"workload cluster {self._cluster}: {error.message}"
            raise ClusterUnreachableError(
                message, api_reason=error.api_reason, is_of_runtime=True
            ) from error
        # The kubeconfig may have been renewed in the meantime, so the next call reads it again.
        except UnauthorizedError:
            self._on_failure()
            raise


SECRET: Final = ResourceType("", "v1", "Secret", "secrets")
REASON_NO_KUBECONFIG: Final = "WaitingForKubeconfig"
REASON_UNUSABLE_KUBECONFIG: Final = "KubeconfigNotUsable"

_IDLE_CHECK_SECONDS: Final = 60.0
_NEVER: Final = float("-inf")
_log = get_logger("workload")


class NoKubeconfigError(NotAvailableError):
    """Raised if a workload cluster's kubeconfig Secret does not exist yet."""


class UnusableKubeconfigError(NotAvailableError):
    """Raised if a workload cluster's kubeconfig is invalid or not self-contained."""


def check_kubeconfig(cluster: str, secret: JSON) -> bytes:
    """Return a self-contained kubeconfig built from a cluster's kubeconfig Secret.

    It is rebuilt, not copied, because a kubeconfig can refer to programs to run and files to read.
    Raises UnusableKubeconfigError if the Secret's kubeconfig refers to any.
    """
    name = secret_name(cluster)
    try:
        return render(cluster, parse(_read_content(name, secret)))
    except KubeconfigError as error:
        raise _unusable(name, str(error)) from error


def _read_content(name: str, secret: JSON) -> bytes:
    try:
        content = base64.b64decode(metadata.text(secret, "data", SECRET_KEY), validate=True)
    except binascii.Error:
        content = b""
    if not content:
        raise _unusable(name, f'it has no key "{SECRET_KEY}"')
    return content


@dataclass(slots=True)
class _Connection:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    client: GuardedClient | None = None
    digest: bytes = b""
    """Digest of the kubeconfig that the client was created from."""
    checked_at: float = _NEVER
    """Time when the last read of the Secret began."""
    used_at: float = 0.0


class WorkloadClients:
    """One client for each cluster, kept while it is in use and its kubeconfig is unchanged.

    The manager must run ``run``.
    """

    def __init__(
        self,
        management: KubeClient,
        metrics: Metrics,
        *,
        field_manager: str,
        request_seconds: float = 10.0,
        refresh_seconds: float = 30.0,
        idle_seconds: float = 600.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._management = management
        self._metrics = metrics
        self._field_manager = field_manager
        self._request_seconds = request_seconds
        self._refresh_seconds = refresh_seconds
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._connections: dict[NamespacedName, _Connection] = {}
        self._retired: dict[asyncio.Task[None], KubeClient] = {}

    async def get(self, namespace: str, cluster: str) -> KubeClient:
        """Return a cluster's client; do not keep it, because a new kubeconfig closes it.

        The client's methods raise ``ClusterUnreachableError`` if the cluster does not respond in
        time. This method raises NoKubeconfigError, UnusableKubeconfigError, and any error that
        occurs when the Secret is read.
        """
        key = NamespacedName(namespace, cluster)
        connection = self._connections.setdefault(key, _Connection())
        # Before the lock is taken: a client that callers wait for must not count as idle.
        connection.used_at = self._clock()
        # Many reconciles of one cluster may ask at the same time; the first reads the Secret for
        # all.
        async with connection.lock:
            fresh = self._clock() - connection.checked_at < self._refresh_seconds
            if connection.client is None or not fresh:
                await self._refresh(key, connection)
            assert connection.client is not None
            return connection.client

    def invalidate(self, namespace: str, cluster: str) -> None:
        """Make the next :meth:`get` read the cluster's kubeconfig again."""
        connection = self._connections.get(NamespacedName(namespace, cluster))
        if connection is not None:
            connection.checked_at = _NEVER

    async def run(self) -> None:
        """Close idle clients until cancelled, then close all clients."""
        try:
            while True:
                await asyncio.sleep(_IDLE_CHECK_SECONDS)
                self.close_idle(self._clock())
        finally:
            await self.close()

    def close_idle(self, now: float) -> None:
        """Close clients that have been idle for too long; ``now`` is the clock's current time."""
        limit = now - self._idle_seconds
        for key, connection in list(self._connections.items()):
            # While the lock is held, a caller is about to get this client.
            if connection.used_at < limit and not connection.lock.locked():
                self._retire(connection)
                del self._connections[key]

    async def close(self) -> None:
        """Close all connections immediately, including those with running requests."""
        for connection in self._connections.values():
            self._retire(connection)
        self._connections.clear()
        for task, client in list(self._retired.items()):
            task.cancel()
            await client.close()

    async def _refresh(self, key: NamespacedName, connection: _Connection) -> None:
        # Set before the read: an invalidation during the read must not be lost.
        connection.checked_at = self._clock()
        try:
            await self._replace_client(key, connection)
        except BaseException:
            # The next caller repeats a read that failed.
            connection.checked_at = _NEVER
            raise

    async def _replace_client(self, key: NamespacedName, connection: _Connection) -> None:
        """Read the kubeconfig, and open another client if it has changed."""
        try:
            content = await self._kubeconfig(key)
            digest = hashlib.sha256(content).digest()
            # The old client is kept if the kubeconfig is the same: its connections are open and
            # authenticated.
            if connection.client is None or digest != connection.digest:
                client = self._open(key, content)
                self._retire(connection)
                connection.client, connection.digest = client, digest
        # If the kubeconfig was deleted or is no longer valid, its former content must not be used
        # either.
        except NotAvailableError:
            self._retire(connection)
            raise

    async def _kubeconfig(self, key: NamespacedName) -> bytes:
        name = secret_name(key.name)
        try:
            secret = await self._management.get(SECRET, NamespacedName(key.namespace, name))
        except NotFoundError:
            raise NoKubeconfigError(
                Waiting(REASON_NO_KUBECONFIG, f"Secret {name} does not exist")
            ) from None
        return _read_content(name, secret)

    def _open(self, key: NamespacedName, content: bytes) -> GuardedClient:
        name = secret_name(key.name)
        try:
            access = parse(content)
        except KubeconfigError as error:
            raise _unusable(name, str(error)) from error
        try:
            client = self._connect(key.name, access)
        except ConfigError as error:
            raise _unusable(name, str(error)) from error
        if client is None:
            raise _unusable(name, "its certificates or keys cannot be read")
        _log.info("connected", cluster=str(key), server=access.server)
        return GuardedClient(client, str(key), lambda: self.invalidate(*key))

    def _connect(self, cluster: str, access: Access) -> KubeClient | None:
        """Return a client.

        Returns None if certificates or keys are unusable, because the error could reveal them.
        """
        try:
            return LightkubeClient(
                self._metrics,
                field_manager=self._field_manager,
                config=lambda: build_lightkube_config(cluster, access),
                request_seconds=self._request_seconds,
                requests=self._metrics.workload_requests,
                max_response_bytes=MAX_RESPONSE_BYTES,
            )
        except (OSError, ValueError):
            return None

    def _retire(self, connection: _Connection) -> None:
        """Close a client after the request timeout; watches still open are aborted."""
        client, connection.client = connection.client, None
        if client is not None:
            # Requests that are on their way finish: their callers cannot know that the kubeconfig
            # has changed.
            task = asyncio.create_task(_close_later(client, self._request_seconds))
            self._retired[task] = client
            task.add_done_callback(self._retired.pop)


def build_lightkube_config(cluster: str, access: Access) -> SingleConfig:
    """Return the configuration for a lightkube client that connects with ``access``."""
    return SingleConfig(
        context_name=cluster,
        context=Context(cluster=cluster, user=cluster),
        cluster=Cluster(
            server=access.server,
            certificate_auth_data=_text(access.authority),
            insecure=access.insecure,
        ),
        user=User(
            client_cert_data=_text(access.certificate),
            client_key_data=_text(access.key),
            token=access.token or None,
            username=access.username or None,
            password=access.password or None,
        ),
    )


async def _close_later(client: KubeClient, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await client.close()


def _text(content: bytes) -> str | None:
    return base64.b64encode(content).decode() if content else None


def _unusable(secret: str, message: str) -> UnusableKubeconfigError:
    return UnusableKubeconfigError(
        Waiting(REASON_UNUSABLE_KUBECONFIG, f"Secret {secret} cannot be used: {message}")
    )
