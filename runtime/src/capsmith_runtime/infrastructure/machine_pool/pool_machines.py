"""Reads the machines of a pool with Machines from the caches or the API server.

A cache may lag behind this process's own writes; ``PoolExpectations`` decides whether a plan is
made from the cache or from the live objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.machine_pool import (
    POOL_NAME_LABEL,
    owning_machine_pool,
    read_pool_machine,
)
from capsmith_runtime.contract.metadata import label_value
from capsmith_runtime.contract.model import Object
from capsmith_runtime.infrastructure.caches import InfrastructureCaches
from capsmith_runtime.infrastructure.machine_pool.kinds import MachinePoolMachinesKind
from capsmith_runtime.infrastructure.machine_pool.plan import PoolMember
from capsmith_runtime.infrastructure.machine_pool.recorded_spec import is_outdated
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType, Selection, key_of
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import BY_OWNER, BY_POOL, cluster_name_of
from capsmith_runtime.reconcile.kinds import core_type

_PAGE = 250


@dataclass(frozen=True, slots=True)
class PoolMachines:
    """A pool's infrastructure machines and their Machines, keyed by name."""

    infra_machines: Mapping[str, JSON]
    machines: Mapping[str, JSON]

    def __bool__(self) -> bool:
        return bool(self.infra_machines or self.machines)

    def uids_not_deleting(self) -> set[str]:
        """Return the UIDs of all objects that are not being deleted."""
        objects = (*self.infra_machines.values(), *self.machines.values())
        return {metadata.uid(obj) for obj in objects if not metadata.is_deleting(obj)}

    def names_to_delete(self) -> list[str]:
        """Return the names of all machines whose deletion has not been requested."""
        alone = [name for name in self.infra_machines if name not in self.machines]
        objects = {**self.machines, **{name: self.infra_machines[name] for name in alone}}
        return [name for name, obj in objects.items() if not metadata.is_deleting(obj)]

    @property
    def orphaned_machines(self) -> list[JSON]:
        """Return Machines without an infrastructure machine, which no other controller deletes.

        Core creates such a Machine if it sees the previous Machine's deletion before the
        infrastructure machine's deletion.
        """
        return [
            machine
            for name, machine in self.machines.items()
            if name not in self.infra_machines and not metadata.is_deleting(machine)
        ]


class CachedPoolMachines(NamedTuple):
    """A pool's cached objects, which are decoded when they are read.

    Comparing two instances shows whether an object has changed, without decoding any object.
    """

    owned: Sequence[JSON]
    """Infrastructure machines that the pool owns."""
    labelled: Sequence[JSON]
    """Infrastructure machines that have the pool's label and no owner but their Machine."""
    machines: Sequence[JSON]
    """Machines of the MachinePool."""


class _Members(NamedTuple):
    """A pool's members, with the objects that each was read from."""

    desired: tuple[JSON, str]
    entries: Mapping[str, tuple[JSON, JSON | None, PoolMember]]


class PoolMachinesLister:
    """Lists the machines that belong to one kind of pool."""

    def __init__(self, caches: InfrastructureCaches, kind: MachinePoolMachinesKind) -> None:
        self.machine_type = core_type(
            caches.core.reader.version, constants.MACHINE_KIND, "machines"
        )
        self._caches = caches
        self._kind = kind
        self._members: dict[NamespacedName, _Members] = {}
        # The objects that were last read for each pool, so that the cache need not decode them
        # again: while a pool is created or deleted, each event of one machine reads all of them.
        self._last: dict[NamespacedName, PoolMachines] = {}

    @property
    def informer(self) -> Informer:
        """Return the informer for all infrastructure machines, with or without a pool."""
        found: Informer = self._caches.machines[self._kind.machines.kind]
        return found

    def select(self, pool: JSON) -> CachedPoolMachines:
        """Return a pool's objects from the caches, without decoding them."""
        name, namespace = owning_machine_pool(pool), metadata.namespace(pool)
        return CachedPoolMachines(
            owned=self.informer.by_index(BY_OWNER, metadata.uid(pool)),
            labelled=self.informer.by_index(BY_POOL, f"{namespace}/{label_value(name or '')}"),
            machines=self._caches.core.machines.by_index(BY_POOL, f"{namespace}/{name}"),
        )

    def read(self, pool: JSON, found: CachedPoolMachines) -> PoolMachines:
        """Return a pool's machines, decoded from the result of `select`.

        Labelled objects count only if they have lost their owner reference.
        """
        lost = [obj for obj in found.labelled if has_lost_owner(obj, pool)]
        machines = self._join(pool, [*found.owned, *lost], found.machines)
        self._last[key_of(pool)] = machines
        return machines

    async def live(self, pool: JSON) -> PoolMachines:
        """Return a pool's machines from the API server.

        Machines are listed first.  Core creates them only for existing infrastructure machines, so
        the second list contains every Machine's infrastructure machine unless it was deleted.
        """
        owner = owning_machine_pool(pool)
        selection = _selection(pool, owner)
        machines = await self._listed(self.machine_type, selection)
        found = await self._listed(self._kind.machines, selection)
        return self._join(
            pool,
            [obj for obj in found if is_owned(obj, pool) or has_lost_owner(obj, pool)],
            [obj for obj in machines if owning_machine_pool(obj) == owner],
        )

    def _join(
        self, pool: JSON, infra_machines: Iterable[JSON], machines: Iterable[JSON]
    ) -> PoolMachines:
        """Return a pool's machines; ``machines`` are all Machines of its MachinePool.

        A MachinePool that now names another pool owns the Machines of both: the former pool keeps
        its machines until it is deleted.
        """
        own, name = _by_name(infra_machines), metadata.name(pool)
        found = {
            each: obj
            for each, obj in _by_name(machines).items()
            if each in own or (parse_machine_number(name, each) >= 0 and self.is_machine(obj))
        }
        return PoolMachines(own, found)

    def is_machine(self, obj: JSON) -> bool:
        """Return whether a Machine refers to an infrastructure machine of the pool's kind."""
        reference = metadata.mapping(obj, "spec", "infrastructureRef")
        version, resource = metadata.text(reference, "apiVersion"), self._kind.machines
        group = metadata.text(reference, "apiGroup") or version.partition("/")[0]
        return (group, metadata.text(reference, "kind")) == (resource.group, resource.kind)

    def members(self, machines: PoolMachines, pool: JSON, version: str | None) -> list[PoolMember]:
        """Return the pool's machines as input for the plan.

        ``version`` is the desired Kubernetes version. The PoolMember of each machine is cached
        until the machine's object changes.
        """
        desired = self.machine_spec(pool), version or ""
        known = self._members.get(key_of(pool))
        if known is None or known.desired != desired:
            known = _Members(desired, {})
        found: dict[str, tuple[JSON, JSON | None, PoolMember]] = {}
        for name, obj in machines.infra_machines.items():
            machine = machines.machines.get(name)
            entry = known.entries.get(name)
            # Compared by identity: a cache replaces an object that has changed, and never modifies
            # it.
            if entry is None or entry[0] is not obj or entry[1] is not machine:
                entry = obj, machine, self._member(obj, machine, pool, version or "")
            found[name] = entry
        self._members[key_of(pool)] = _Members(desired, found)
        return [entry[2] for entry in found.values()]

    def forget(self, pool: NamespacedName) -> None:
        """Drop the results cached for a pool that no longer exists."""
        self._members.pop(pool, None)
        self._last.pop(pool, None)

    def machine_spec(self, pool: JSON) -> JSON:
        """Return the spec that a pool's machines should have."""
        spec = metadata.mapping(pool, "spec")
        return {name: spec[name] for name in self._kind.machine_fields if name in spec}

    def _member(self, obj: JSON, machine: JSON | None, pool: JSON, version: str) -> PoolMember:
        view = read_pool_machine(machine) if machine is not None else None
        annotations = metadata.annotations(obj)
        return PoolMember(
            name=metadata.name(obj),
            number=parse_machine_number(metadata.name(pool), metadata.name(obj)),
            deleting=metadata.is_deleting(obj) or (view is not None and view.deleting),
            delete_requested=view is not None and view.delete_requested,
            unhealthy=view is not None and view.unhealthy,
            outdated=annotations.get(self._kind.version_annotation, "") != version
            or self.has_former_spec(obj, pool),
            has_node=view is not None and view.has_node,
            failure_domain=annotations.get(self._kind.failure_domain_annotation, ""),
        )

    def has_former_spec(self, obj: JSON, pool: JSON) -> bool:
        """Return whether a machine was created from an earlier spec of its pool."""
        record = metadata.annotations(obj).get(self._kind.spec_annotation, "")
        return is_outdated(record, metadata.mapping(obj, "spec"), self.machine_spec(pool))

    async def _listed(self, resource: ResourceType, selection: Selection) -> list[JSON]:
        found: list[JSON] = []
        token = ""
        while True:
            page = await self._caches.core.client.list_page(
                resource, selection, limit=_PAGE, token=token
            )
            found += page.items
            token = page.token
            if not token:
                return found


def pool_labels(pool: JSON, machine_pool: str) -> dict[str, str]:
    """Return the labels that core uses to find a pool's machines (MP-08)."""
    labels = {POOL_NAME_LABEL: label_value(machine_pool)}
    cluster = cluster_name_of(pool)
    return {constants.CLUSTER_NAME_LABEL: cluster, **labels} if cluster else labels


def is_owned(obj: Object, pool: Object) -> bool:
    """Return whether a pool owns an infrastructure machine (MP-09)."""
    owners = metadata.items(obj, "metadata", "ownerReferences")
    return any(owner.get("uid") == metadata.uid(pool) for owner in owners)


def has_lost_owner(obj: JSON, pool: JSON) -> bool:
    """Return whether a machine belongs to the pool but has lost its owner reference (SM-11).

    Such a machine has the labels and the name that the pool gave it, and no other controller as its
    owner. If it did not count, its Machine would appear to have lost its server, and be deleted.
    """
    if parse_machine_number(metadata.name(pool), metadata.name(obj)) < 0:
        return False
    labels = pool_labels(pool, owning_machine_pool(pool) or "")
    return labels.items() <= metadata.labels(obj).items() and not _has_creator(obj)


def _has_creator(obj: JSON) -> bool:
    """Return whether ``obj`` has an owner other than its Machine, whose reference core restores."""
    owners = metadata.items(obj, "metadata", "ownerReferences")
    return any(owner.get("kind") != constants.MACHINE_KIND for owner in owners)


def labelled_pool(obj: JSON) -> Iterable[str]:
    """Yield the index key of a machine that no pool owns: the MachinePool that its label names.

    Machines that a pool owns are not indexed, because each reconcile reads all indexed machines.
    """
    name = metadata.labels(obj).get(POOL_NAME_LABEL)
    if name and not _has_creator(obj):
        yield f"{metadata.namespace(obj)}/{name}"


def key_beside(pool: JSON, name: str) -> NamespacedName:
    """Return the key of an object with this name in the pool's namespace."""
    return NamespacedName(metadata.namespace(pool), name)


def _selection(pool: JSON, owner: str | None) -> Selection:
    labels = pool_labels(pool, owner or "")
    text = ",".join(f"{name}={value}" for name, value in labels.items())
    return Selection(namespace=metadata.namespace(pool), labels=text)


def _by_name(objects: Iterable[JSON]) -> dict[str, JSON]:
    return {obj["metadata"]["name"]: obj for obj in objects}


_LIMIT: Final = 63
"""Maximum length of a machine name: Nodes have the same name, and host names cannot be longer."""


MAX_DIGITS: Final = 7
"""Maximum number of digits in the number of a machine."""


_BASE: Final = _LIMIT - MAX_DIGITS - 1


_HASH: Final = 8


# Numbered names, so that no machine is created twice: a controller with an outdated cache creates
# a machine with the same name again, and receives AlreadyExists. Numbers only grow: a name never
# refers to two machines, nor to two Nodes.
def format_machine_name(pool: str, number: int) -> str:
    """Return the name of a pool's machine: ``<pool>-<number>``."""
    return f"{_base(pool)}-{number}"


def parse_machine_number(pool: str, name: str) -> int:
    """Return the number in the machine name ``name``, or -1 if it is not a name of ``pool``."""
    base, _, number = name.rpartition("-")
    return int(number) if base == _base(pool) and number.isdecimal() else -1


def _base(pool: str) -> str:
    if len(pool) <= _BASE:
        return pool
    digest = hashlib.sha256(pool.encode()).hexdigest()[:_HASH]
    return f"{pool[: _BASE - _HASH - 1].rstrip('.-')}-{digest}"
