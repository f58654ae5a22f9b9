"""Own creations and deletions of a pool's machines that the caches do not show yet.

A plan from caches that lag behind would create machines again, or delete others in addition.  So
the next plan waits until the caches show what the last one did, which takes milliseconds.  The
caches may also be older than what a former leader did: the first plan of a process is made from
the API server, and so is the one after an expectation that was not met in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.infrastructure.machine_pool.pool_machines import PoolMachines
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.clock import monotonic

EXPIRY_SECONDS: Final = 30.0
"""A machine that was deleted at once by another client may never be in the cache."""


@dataclass(slots=True)
class _Pending:
    """Expectations of one pool."""

    pool_uid: str
    created: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    expires_at: float = 0.0


class PoolExpectations:
    """What the caches must show before they are good for a plan, by pool."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._pools: dict[NamespacedName, _Pending] = {}

    def needs_live(self, pool: JSON) -> bool:
        """Return whether the next plan needs the machines from the API server."""
        return self._pending(pool) is None

    def begin(self, pool: JSON) -> None:
        """Note that the machines were read from the API server, and nothing is pending."""
        self._pools[key_of(pool)] = _Pending(metadata.uid(pool))

    def expect(
        self, pool: JSON, *, created: Iterable[str] = (), deleted: Iterable[str] = ()
    ) -> None:
        """Note names of created and UIDs of deleted objects, Machines or infrastructure."""
        pending = self._pending(pool)
        if pending is not None:
            pending.created.update(created)
            pending.deleted.update(deleted)
            pending.expires_at = self._clock() + EXPIRY_SECONDS

    def seconds_left(self, pool: JSON, machines: PoolMachines) -> float:
        """Return how long to wait at most for the caches; 0 if they show everything.

        Expectations that are not met in time are dropped, and the next plan is made from the API
        server.
        """
        pending = self._pending(pool)
        if pending is None:
            return 0.0
        pending.created.difference_update(machines.infra_machines)
        if pending.deleted:
            pending.deleted &= machines.uids_not_deleting()
        if not pending.created and not pending.deleted:
            return 0.0
        left = pending.expires_at - self._clock()
        if left <= 0:
            self.forget(key_of(pool))
        return max(0.0, left)

    def forget(self, key: NamespacedName) -> None:
        """Drop what is known of a pool."""
        self._pools.pop(key, None)

    def _pending(self, pool: JSON) -> _Pending | None:
        found = self._pools.get(key_of(pool))
        return found if found is not None and found.pool_uid == metadata.uid(pool) else None
