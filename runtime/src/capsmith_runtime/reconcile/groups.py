"""Groups of controllers, each with its informers, watches and background tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.workqueue import WorkQueue
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext

Queues = Mapping[str, WorkQueue[NamespacedName]]
"""The work queues by kind."""
Reconcile = Callable[[NamespacedName], Awaitable[Result]]
Runnable = Callable[[], Coroutine[Any, Any, None]]
"""A task that runs until it is cancelled."""


class ControllerGroup:
    """Controllers that belong together; nothing runs until the manager starts them."""

    @property
    def informers(self) -> Sequence[Informer]:
        """Informers of this group, in addition to the informers of :class:`.caches.Caches`."""
        return ()

    def reconcilers(self) -> Iterable[tuple[str, Reconcile]]:
        """Yield each kind with its reconcile function; they run only on the leader."""
        return ()

    def setup_watches(self, queues: Queues) -> None:
        """Register event handlers.  Call before the informers start."""

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Find other groups of the manager with which to share resources.

        Called once, before the manager starts anything.
        """

    @property
    def ready(self) -> bool:
        """Whether the group is ready, apart from its informers."""
        return True

    @property
    def healthy(self) -> bool:
        """Whether the group works; a manager that is unhealthy for long is restarted."""
        return True

    async def drain(self) -> None:
        """Return when clients have been redirected to another process; the manager stops then.

        A group with a server continues to serve meanwhile.
        """

    @property
    def runnables(self) -> Sequence[Runnable]:
        """Background tasks that run from the start, on the leader and on all replicas."""
        return ()

    @property
    def leader_runnables(self) -> Sequence[Runnable]:
        """Background tasks that run only on the leader."""
        return ()


ControllerGroupFactory = Callable[[Caches, ControllerContext], ControllerGroup]
