"""Creates and deletes a pool's machines; every step can be retried after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import WATCH_FILTER_LABEL
from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.errors import AlreadyExistsError, ConflictError, NotFoundError
from capsmith_runtime.infrastructure.machine_pool.kinds import MachinePoolMachinesKind
from capsmith_runtime.infrastructure.machine_pool.plan import PoolMember, assign_failure_domains
from capsmith_runtime.infrastructure.machine_pool.pool_machines import (
    MAX_DIGITS,
    PoolMachines,
    PoolMachinesLister,
    format_machine_name,
    is_owned,
    key_beside,
    pool_labels,
)
from capsmith_runtime.infrastructure.machine_pool.recorded_spec import build_record
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType, key_of
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.patch import write
from capsmith_runtime.reconcile.live import is_alive
from capsmith_runtime.reconcile.patcher import Patcher

EXPIRY_SECONDS: Final = 30.0
"""Seconds after which an expectation is dropped.

A machine that another client deletes immediately may never appear in the cache.
"""


# A plan from caches that lag behind would create machines again, or delete too many. The next plan
# therefore waits until the caches show what the last one did, which takes milliseconds. The caches
# may also lag behind a former leader, so the first plan of a process is made from the API server,
# and so is the plan after an expectation that was not met in time.
@dataclass(slots=True)
class _Pending:
    """The expectations for one pool."""

    pool_uid: str
    created: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    expires_at: float = 0.0


class PoolExpectations:
    """For each pool, the changes that must appear in the caches before the next plan uses them."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._pools: dict[NamespacedName, _Pending] = {}

    def needs_live(self, pool: JSON) -> bool:
        """Return whether the next plan must read the machines from the API server."""
        return self._pending(pool) is None

    def begin(self, pool: JSON) -> None:
        """Record that the pool's machines were just read live, and drop earlier expectations."""
        self._pools[key_of(pool)] = _Pending(metadata.uid(pool))

    def expect(
        self, pool: JSON, *, created: Iterable[str] = (), deleted: Iterable[str] = ()
    ) -> None:
        """Record changes to await in the caches: created objects by name, deleted ones by UID."""
        pending = self._pending(pool)
        if pending is not None:
            pending.created.update(created)
            pending.deleted.update(deleted)
            pending.expires_at = self._clock() + EXPIRY_SECONDS

    def seconds_left(self, pool: JSON, machines: PoolMachines) -> float:
        """Return the maximum number of seconds to wait for the caches, or 0 if they are up to date.

        Expectations that are not met in time are dropped, and the next plan uses machines from the
        API server.
        """
        pending = self._pending(pool)
        if pending is None:
            return 0.0
        pending.created.difference_update(machines.infra_machines)
        if pending.deleted:
            # A deletion is visible as soon as the object has a deletion timestamp: finalizers may
            # keep it for long.
            pending.deleted &= machines.uids_not_deleting()
        if not pending.created and not pending.deleted:
            return 0.0
        left = pending.expires_at - self._clock()
        if left <= 0:
            self.forget(key_of(pool))
        return max(0.0, left)

    def forget(self, key: NamespacedName) -> None:
        """Drop the expectations for a pool that no longer exists."""
        self._pools.pop(key, None)

    def _pending(self, pool: JSON) -> _Pending | None:
        found = self._pools.get(key_of(pool))
        return found if found is not None and found.pool_uid == metadata.uid(pool) else None


T = TypeVar("T")
R = TypeVar("R")

_CONCURRENCY = 10


class _Current(NamedTuple):
    """A pool's machines whose metadata is known to be current."""

    desired: tuple[str, str, str]
    """The pool's UID and API version, and the record of its spec."""
    machines: Mapping[str, JSON]


class PoolMachineClient:
    """Creates and deletes machines for one kind of pool."""

    def __init__(
        self, client: KubeClient, kind: MachinePoolMachinesKind, lister: PoolMachinesLister
    ) -> None:
        self._client = client
        self._kind = kind
        self._lister = lister
        self.expectations = PoolExpectations()
        self._current: dict[NamespacedName, _Current] = {}

    def forget(self, pool: NamespacedName) -> None:
        """Drop what is known about a pool that no longer exists."""
        self.expectations.forget(pool)
        self._current.pop(pool, None)

    async def create(
        self, patcher: Patcher, pool: MachinePool, members: Sequence[PoolMember], count: int
    ) -> bool:
        """Create ``count`` machines, or return False if one of their names is already in use.

        ``members`` are the existing machines. The number of the next machine is written after the
        creation; if a crash prevents that, it is derived from the existing machines' numbers.
        """
        # The annotation alone may be behind after a crash, and the machines alone after the newest
        # was deleted.
        first = max([self._created_count(patcher.obj), *(member.number + 1 for member in members)])
        domains = assign_failure_domains(pool.failure_domains, members, count)
        manifests = [
            self._manifest(patcher.obj, pool, first + offset, domain)
            for offset, domain in enumerate(domains)
        ]
        with self._uncertain_after_error(patcher.obj):
            created = await _for_each(manifests, self._create)
        if all(created):
            names = [manifest["metadata"]["name"] for manifest in manifests]
            self.expectations.expect(patcher.obj, created=names)
        else:
            self.expectations.forget(key_of(patcher.obj))
        await patcher.annotate(self._kind.count_annotation, str(first + count))
        return all(created)

    async def update_metadata(self, pool: JSON, machines: PoolMachines) -> None:
        """Update the pool machines' owner references, and their records of the pool's spec.

        Lost references are restored, and existing ones get the pool's current API version. A
        machine without a record gets a record of the current spec, unless its spec differs.  Only
        machines that have changed since the last call are looked at: a rollout reconciles the pool
        several times for each of its machines.
        """
        record = build_record(self._lister.machine_spec(pool))
        desired = metadata.uid(pool), pool["apiVersion"], record
        found = self._find_changed(pool, desired, machines.infra_machines)
        may_own = False
        if not all(is_owned(obj, pool) for obj in found):
            # The cache may not show yet that the pool is being deleted (SM-11).
            may_own = await is_alive(self._client, self._kind.resource, pool)
        outdated = [
            obj
            for obj in found
            if not metadata.is_deleting(obj)
            and (
                (may_own and not is_owned(obj, pool))
                or _has_former_owner(obj, pool)
                or self._can_adopt(obj, pool, record)
            )
        ]
        await _for_each(outdated, lambda obj: self._update(obj, pool, record, may_own))
        # A machine that was updated is another object in the cache, and is looked at once more.
        self._current[key_of(pool)] = _Current(desired, machines.infra_machines)

    def _find_changed(
        self, pool: JSON, desired: tuple[str, str, str], machines: Mapping[str, JSON]
    ) -> list[JSON]:
        """Return the machines that are not known to have the metadata that ``desired`` implies."""
        known = self._current.get(key_of(pool))
        current = known.machines if known is not None and known.desired == desired else {}
        # Compared by identity: a cache replaces an object that has changed.
        return [obj for name, obj in machines.items() if current.get(name) is not obj]

    def _can_adopt(self, obj: JSON, pool: JSON, record: str) -> bool:
        recorded = metadata.annotations(obj).get(self._kind.spec_annotation)
        return recorded != record and not self._lister.has_former_spec(obj, pool)

    async def _update(self, obj: JSON, pool: JSON, record: str, may_own: bool) -> None:
        informer, fields = self._lister.informer, dict(obj["metadata"])
        owners = metadata.current_owners(obj, pool)
        if may_own and not is_owned(obj, pool):
            owners = [*owners, self._owner_reference(pool)]
        fields["ownerReferences"] = owners
        if self._can_adopt(obj, pool, record):
            annotations = metadata.annotations(obj)
            fields["annotations"] = {**annotations, self._kind.spec_annotation: record}
        new = {**obj, "metadata": fields}
        with suppress(NotFoundError):
            await write(self._client, informer.resource, obj, new, informer.update_from_write)

    async def delete(self, pool: JSON, machines: PoolMachines, names: Sequence[str]) -> None:
        """Delete machines by deleting their Machines, which drains the Nodes (MP-10).

        An infrastructure machine without a Machine has no Node and is deleted directly. If core
        creates a Machine for it at the same time, the next reconcile deletes that orphan.
        """

        async def delete_one(name: str) -> None:
            machine = machines.machines.get(name) or await self._machine(pool, name)
            if machine is not None:
                await self.delete_machine(pool, machine)
            else:
                obj = machines.infra_machines[name]
                await self._delete(pool, self._kind.machines, obj)

        await _for_each(names, delete_one)

    async def delete_machine(self, pool: JSON, machine: JSON) -> None:
        """Request the deletion of a Machine, unless it is being deleted or was replaced."""
        await self._delete(pool, self._lister.machine_type, machine)

    async def _delete(self, pool: JSON, resource: ResourceType, obj: JSON) -> None:
        if metadata.is_deleting(obj):
            return
        uid = metadata.uid(obj)
        # It may have been deleted, and perhaps replaced by an object of the same name.
        with self._uncertain_after_error(pool), suppress(NotFoundError, ConflictError):
            await self._client.delete(resource, key_of(obj), uid=uid)
        self.expectations.expect(pool, deleted=[uid])

    @contextmanager
    def _uncertain_after_error(self, pool: JSON) -> Iterator[None]:
        """Make the next plan from live objects after a failed request, which may have succeeded."""
        try:
            yield
        except BaseException:
            self.expectations.forget(key_of(pool))
            raise

    async def _machine(self, pool: JSON, name: str) -> JSON | None:
        try:
            obj = await self._client.get(self._lister.machine_type, key_beside(pool, name))
        except NotFoundError:
            return None
        # A user may have given this name to a Machine with other infrastructure.
        return obj if self._lister.is_machine(obj) else None

    async def _create(self, manifest: JSON) -> bool:
        try:
            await self._client.create(self._kind.machines, manifest)
        except AlreadyExistsError:
            return False
        return True

    def _created_count(self, pool: JSON) -> int:
        text = metadata.annotations(pool).get(self._kind.count_annotation, "")
        # Users can edit it; a name has no room for more digits.
        return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else 0

    def _manifest(self, pool: JSON, machine_pool: MachinePool, number: int, domain: str) -> JSON:
        kind, labels = self._kind, pool_labels(pool, machine_pool.name)
        watch_filter = metadata.labels(pool).get(WATCH_FILTER_LABEL)
        if watch_filter is not None:
            labels[WATCH_FILTER_LABEL] = watch_filter
        annotations = {
            kind.spec_annotation: build_record(self._lister.machine_spec(pool)),
            kind.version_annotation: machine_pool.version,
            kind.failure_domain_annotation: domain,
        }
        return {
            "apiVersion": kind.machines.api_version,
            "kind": kind.machines.kind,
            "metadata": {
                "name": format_machine_name(metadata.name(pool), number),
                "namespace": metadata.namespace(pool),
                "labels": labels,
                "annotations": {name: value for name, value in annotations.items() if value},
                "ownerReferences": [self._owner_reference(pool)],
            },
            "spec": self._lister.machine_spec(pool),
        }

    def _owner_reference(self, pool: JSON) -> JSON:
        # Without `controller`, because the Machine is the controller (MP-09).
        return {
            "apiVersion": self._kind.resource.api_version,
            "kind": self._kind.resource.kind,
            "name": metadata.name(pool),
            "uid": metadata.uid(pool),
        }


def _has_former_owner(obj: JSON, pool: JSON) -> bool:
    uid, version = metadata.uid(pool), pool["apiVersion"]
    owners = metadata.items(obj, "metadata", "ownerReferences")
    return any(owner["uid"] == uid and owner["apiVersion"] != version for owner in owners)


async def _for_each(items: Sequence[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """Run ``work`` for all items in batches, and return the results in order.

    After an error, no further batch is started and the error is raised.
    """
    done: list[R] = []
    errors: list[BaseException] = []
    for start in range(0, len(items), _CONCURRENCY):
        batch = [work(item) for item in items[start : start + _CONCURRENCY]]
        for result in await asyncio.gather(*batch, return_exceptions=True):
            if isinstance(result, BaseException):
                errors.append(result)
            else:
                done.append(result)
        if errors:
            raise errors[0]
    return done
