"""Groups of controllers, each with its informers, watches and background tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol

from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.records import Record
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.workqueue import WorkQueue
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.session_tasks import ReadinessCheck
from capsmith_runtime.reconcile.sessions import Credentials

Queues = Mapping[str, WorkQueue[NamespacedName]]
"""The work queues, keyed by kind."""
Reconcile = Callable[[NamespacedName], Awaitable[Result]]
Runnable = Callable[[], Coroutine[Any, Any, None]]
"""Factory for a task that runs until it is cancelled."""


class CredentialsSource(Protocol):
    """Source from which other groups read the credentials for their objects."""

    def add_users(
        self,
        informer: Informer,
        enqueue: Callable[[JSON], None] | None = None,
        *,
        has_default: bool = False,
    ) -> None:
        """Register the informer for a kind with ``spec.identityRef``; call this before it runs.

        ``enqueue`` is called with each object whose identity has changed. If it is None, the
        object's key is added to its kind's queue. ``has_default`` is true if the objects use the
        identity of their Cluster's infrastructure by default, and record which one they use.
        """
        ...

    async def read(self, obj: JSON) -> Credentials | Waiting:
        """Return the credentials of the identity that an object refers to.

        The credentials are empty if the object refers to no identity.
        """
        ...

    async def read_of_member(self, obj: JSON, cluster: Cluster | None) -> Credentials | Waiting:
        """Return the credentials for an object that belongs to a Cluster.

        The object's own identity takes precedence over that of the Cluster's infrastructure. If the
        infrastructure is gone, the identity recorded on the object is used.
        """
        ...

    def build_record(self, obj: JSON, cluster: Cluster) -> Mapping[Record, str]:
        """Return the records of the identity that an object of a Cluster uses, and its sources.

        The mapping is empty if the identity is unknown or cannot be used.
        """
        ...

    def build_own_record(self, obj: JSON) -> Mapping[Record, str]:
        """Return the records of the identity that an object names, and of its sources."""
        ...


class ControllerGroup:
    """Controllers that belong together; nothing runs until the manager starts them."""

    @property
    def informers(self) -> Sequence[Informer]:
        """Return the group's informers, apart from those in :class:`.caches.Caches`."""
        return ()

    def reconcilers(self) -> Iterable[tuple[str, Reconcile]]:
        """Yield each kind with its reconcile function, which is called only on the leader."""
        return ()

    def setup_watches(self, queues: Queues) -> None:
        """Register event handlers; called before the informers start."""

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Look up the manager's other groups that this group shares resources with.

        Called once, before the manager starts anything.
        """

    @property
    def credentials(self) -> CredentialsSource | None:
        """Return the source of credentials for other groups, or None if this group has none."""
        return None

    @property
    def ready(self) -> bool:
        """Return whether the group is ready, not counting its informers."""
        return True

    @property
    def healthy(self) -> bool:
        """Return whether the group works; if it stays unhealthy, the manager is restarted."""
        return True

    @property
    def readiness_checks(self) -> Sequence[ReadinessCheck]:
        """Return further checks, which the manager runs and shows by name at ``/readyz``."""
        return ()

    async def drain(self) -> None:
        """Wait until clients have been redirected to another process, before the manager stops.

        A group with a server continues to serve in the meantime.
        """

    @property
    def runnables(self) -> Sequence[Runnable]:
        """Return the background tasks that run from the start, on the leader and all replicas."""
        return ()

    @property
    def leader_runnables(self) -> Sequence[Runnable]:
        """Return the background tasks that run only on the leader."""
        return ()


ControllerGroupFactory = Callable[[Caches, ControllerContext], ControllerGroup]
