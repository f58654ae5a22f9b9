"""Reconcilers of add-ons, called for one cluster at a time, with their arguments and results."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from capsmith_runtime.api.serialization import DecodingError
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.errors import NotFoundError, check_reason
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType, Selection
from capsmith_runtime.reconcile.kubernetes_client import wait_for
from capsmith_runtime.reconcile.results import Deleted, Waiting
from capsmith_runtime.reconcile.scopes import OptionalCredentialsScope, SessionScope
from capsmith_runtime.reconcile.sessions import Credentials, SessionUser

__all__ = [
    "AddonDeleteScope",
    "AddonReconciler",
    "AddonScope",
    "AddonState",
    "ResourceType",
    "Workload",
]

Spec = TypeVar("Spec")
T = TypeVar("T")

_PAGE = 250


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class AddonScope(SessionScope, Generic[Spec]):
    """An add-on to install on a cluster: the argument of ``reconcile_normal``."""

    spec: Spec
    """The add-on's spec, as an instance of the generated class."""
    credentials: Credentials = field(default_factory=Credentials, repr=False)
    """Content of the identity's Secret, or empty without the feature ``credentials``."""

    def _session_credentials(self) -> Credentials:
        return self.credentials


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class AddonDeleteScope(OptionalCredentialsScope, Generic[Spec]):
    """An add-on to remove from a cluster: the argument of ``reconcile_delete``."""

    _spec: Spec | DecodingError
    _credentials: Credentials | Waiting = field(default_factory=Credentials, repr=False)

    @property
    def spec(self) -> Spec:
        """Return the current spec.

        Raises DecodingError if the spec is invalid.
        """
        if isinstance(self._spec, DecodingError):
            raise self._spec
        return self._spec


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonState:
    """The state of an add-on on a cluster where it is installed."""

    ready: bool = True
    """Whether the add-on works on the cluster."""
    reason: str = ""
    """Reason in CamelCase; if empty, it is ``Ready`` or ``NotReady``, depending on ``ready``."""
    message: str = ""
    """Message about this cluster, which the add-on's status shows."""
    requeue_after: float | None = None
    """Seconds until the next reconcile, or None for the resync period."""

    def __post_init__(self) -> None:
        if self.reason:
            check_reason(self.reason)


class Workload:
    """Client for a workload cluster, with the permissions of its kubeconfig.

    Each method has a variant for asynchronous code whose name ends in ``_async``. Methods raise
    ApiError on failure. If the cluster does not respond, do not catch the error, so that the add-on
    is reconciled again later.
    """

    def __init__(
        self,
        client: KubeClient,
        kubeconfig: Callable[[], Awaitable[bytes]],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._client = client
        self._kubeconfig = kubeconfig
        self._loop = loop

    def apply(self, resource: ResourceType, obj: JSON) -> JSON:
        """Set the fields in ``obj`` with server-side apply, and leave all other fields unchanged.

        Ownership of fields is taken over from other field managers. If the object does not exist,
        it is created.
        """
        return self._wait(lambda: self.apply_async(resource, obj))

    async def apply_async(self, resource: ResourceType, obj: JSON) -> JSON:
        """Apply an object without blocking the event loop; see ``apply``."""
        return await self._client.apply(resource, obj, force=True)

    def find(self, resource: ResourceType, name: str, namespace: str = "") -> JSON | None:
        """Return an object, or None if it does not exist."""
        return self._wait(lambda: self.find_async(resource, name, namespace))

    async def find_async(
        self, resource: ResourceType, name: str, namespace: str = ""
    ) -> JSON | None:
        """Return an object without blocking the event loop; see ``find``."""
        try:
            return await self._client.get(resource, NamespacedName(namespace, name))
        except NotFoundError:
            return None

    def find_all(self, resource: ResourceType, namespace: str = "", labels: str = "") -> list[JSON]:
        """Return all objects of a kind that have the given labels.

        An empty ``namespace`` means all namespaces; empty ``labels`` select every object.
        """
        return self._wait(lambda: self.find_all_async(resource, namespace, labels))

    async def find_all_async(
        self, resource: ResourceType, namespace: str = "", labels: str = ""
    ) -> list[JSON]:
        """Return objects without blocking the event loop; see ``find_all``."""
        selection = Selection(namespace=namespace, labels=labels)
        objects: list[JSON] = []
        token = ""
        while True:
            page = await self._client.list_page(resource, selection, limit=_PAGE, token=token)
            objects += page.items
            token = page.token
            if not token:
                return objects

    def delete(self, resource: ResourceType, name: str, namespace: str = "") -> bool:
        """Request the deletion of an object, or return False if it does not exist.

        Does not wait until the object is gone.
        """
        return self._wait(lambda: self.delete_async(resource, name, namespace))

    async def delete_async(self, resource: ResourceType, name: str, namespace: str = "") -> bool:
        """Delete an object without blocking the event loop; see ``delete``."""
        try:
            await self._client.delete(resource, NamespacedName(namespace, name))
        except NotFoundError:
            return False
        return True

    def kubeconfig(self) -> bytes:
        """Return the kubeconfig for use with other tools.

        It contains credentials: never store it where others can read it.
        """
        return self._wait(self.kubeconfig_async)

    async def kubeconfig_async(self) -> bytes:
        """Return the kubeconfig without blocking the event loop; see ``kubeconfig``."""
        return await self._kubeconfig()

    def _wait(self, work: Callable[[], Awaitable[T]]) -> T:
        return wait_for(work, self._loop)


class AddonReconciler(SessionUser, ABC, Generic[Spec]):
    """Base class for add-on reconcilers, called repeatedly for each selected cluster.

    Both methods may be ``def`` or ``async def``. They are called again after a crash at any point,
    and concurrently for different clusters.
    """

    @abstractmethod
    def reconcile_normal(
        self, addon: AddonScope[Spec], cluster: Cluster, workload: Workload
    ) -> AddonState | Waiting | Awaitable[AddonState | Waiting]:
        """Install or update the add-on on the cluster and return its state."""

    @abstractmethod
    def reconcile_delete(
        self, addon: AddonDeleteScope[Spec], cluster: Cluster, workload: Workload
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Remove the add-on from the cluster; return Deleted only once the removal is confirmed."""
