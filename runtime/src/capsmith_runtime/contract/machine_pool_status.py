"""An infrastructure machine pool's status, in each contract version's format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.model import Address, Condition, Object
from capsmith_runtime.contract.status_writer import build_addresses, set_extra_fields, set_or_drop

MAX_INSTANCES: Final = 10_000
"""Maximum length of the lists of instances and provider ids in the CRD (MP-03, MP-06)."""
MAX_BYTES: Final = 5 * 2**18
"""Maximum size of spec and status in bytes, because etcd rejects objects above 1.5 MiB."""
INSTANCE_STATUS: Final = "instanceStatus"
"""Feature of kinds whose instances have the author's status fields, and conditions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFacts:
    """A single machine in a pool, as it appears in the status (MP-06)."""

    name: str
    provider_id: str
    addresses: Sequence[Address]
    version: str | None
    ready: bool
    conditions: Sequence[Condition] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Status fields that only the instances of this kind have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """What a reconcile learned about a machine pool, for the pool's status."""

    provisioned: bool
    """Whether the pool is provisioned; once true, never reset (MP-01, MP-02)."""
    provider_ids: Sequence[str]
    provider_id: str | None = None
    instances: Sequence[InstanceFacts] = ()
    machine_kind: str | None = None
    """Kind of the machines, if core creates Machines for them (MP-07), otherwise None."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Status fields that only this kind has."""


class MachinePoolStatusWriter(Protocol):
    """Protocol for reading and writing a machine pool's status in one contract version's format."""

    @property
    def contract(self) -> str:
        """Return the contract version: ``v1beta1`` or ``v1beta2``."""
        ...

    def is_provisioned(self, obj: Object) -> bool:
        """Return whether the status reports the pool as provisioned (MP-01, MP-02)."""
        ...

    def build_status(
        self, obj: Object, facts: PoolFacts, features: Set[str], now: str
    ) -> dict[str, Any]:
        """Return the pool's complete status with ``facts``; its own conditions are unchanged.

        ``features`` names the optional fields that the kind has; ``now`` is a time in RFC 3339.
        """
        ...


def list_reductions(facts: PoolFacts) -> Iterator[PoolFacts]:
    """Yield the complete facts, then copies with less and less display-only data (MP-06).

    The machines lose their addresses first, then also their conditions and the author's status
    fields.
    """
    # A pool can have thousands of machines, and few pools need more than the first result.
    yield facts
    short = [replace(instance, addresses=()) for instance in facts.instances]
    yield replace(facts, instances=short)
    bare = [replace(instance, conditions=(), extra={}) for instance in short]
    yield replace(facts, instances=bare)


def is_storable(spec: Object, status: Object) -> bool:
    """Return whether a pool with this spec and status is small enough for the API server.

    A pool with more than ``MAX_INSTANCES`` machines is always too large.
    """
    if len(spec["providerIDList"]) > MAX_INSTANCES:
        return False
    # In bytes of UTF-8, as etcd counts them.
    parts = (json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in (spec, status))
    return sum(len(part.encode()) for part in parts) <= MAX_BYTES


def build_pool_spec(obj: Object, facts: PoolFacts, features: Set[str]) -> dict[str, Any]:
    """Return the spec with the sorted provider ids of all machines (MP-03, MP-05)."""
    # Sorted, so that a different order in the infrastructure's response is not a change.
    spec = {**(obj.get("spec") or {}), "providerIDList": sorted(set(facts.provider_ids))}
    # An earlier id is kept: it identifies the same pool.
    if "providerID" in features and facts.provider_id:
        spec["providerID"] = facts.provider_id
    return spec


def build_common_status(
    obj: Object, facts: PoolFacts, features: Set[str], now: str
) -> dict[str, Any]:
    """Return the pool's complete status with the fields that all contract versions have.

    The pool's own conditions are unchanged. See MP-01, MP-04, MP-06 and MP-07. failureReason and
    failureMessage are never written: core panics on them (MP-13).
    """
    status = {**(obj.get("status") or {}), "replicas": len(set(facts.provider_ids))}
    if facts.provisioned:
        status["ready"] = True
    if "instances" in features:
        set_or_drop(status, "instances", _build_instances(obj, facts.instances, features, now))
    if "machines" in features:
        set_or_drop(status, "infrastructureMachineKind", facts.machine_kind)
    return set_extra_fields(status, facts.extra)


def _in_order(instances: Sequence[InstanceFacts]) -> list[InstanceFacts]:
    # Sorted, because another order would be a change of the status.
    return sorted(instances, key=lambda one: (one.name, one.provider_id))


def _build_instances(
    obj: Object, instances: Sequence[InstanceFacts], features: Set[str], now: str
) -> list[dict[str, Any]]:
    if INSTANCE_STATUS not in features:
        return [_build_instance(one) for one in _in_order(instances)]
    before = {
        entry.get("providerID"): metadata.items(entry, "conditions")
        for entry in metadata.items(obj, "status", "instances")
    }
    found = []
    for one in _in_order(instances):
        entry = set_extra_fields(_build_instance(one), one.extra)
        types = {condition.type for condition in one.conditions}
        kept = [each for each in before.get(one.provider_id, ()) if each.get("type") in types]
        # In the format of metav1.Condition under every contract, because only users read them.
        # Without generation: the manager's own writes of providerIDList would change it.
        merged = conditions.merge(kept, one.conditions, generation=None, now=now)
        set_or_drop(entry, "conditions", merged)
        found.append(entry)
    return found


def _build_instance(one: InstanceFacts) -> dict[str, Any]:
    entry: dict[str, Any] = {"ready": one.ready}
    set_or_drop(entry, "instanceName", one.name)
    set_or_drop(entry, "providerID", one.provider_id)
    set_or_drop(entry, "version", one.version)
    set_or_drop(entry, "addresses", build_addresses(one.addresses))
    return entry


class V1Beta1PoolStatus:
    """Reads and writes a machine pool's status in contract v1beta1's format."""

    contract = "v1beta1"

    def is_provisioned(self, obj: Object) -> bool:
        """Return ``status.ready``, which reports whether the pool is provisioned (MP-01)."""
        return metadata.lookup(obj, "status", "ready") is True

    def build_status(
        self, obj: Object, facts: PoolFacts, features: Set[str], now: str
    ) -> dict[str, Any]:
        """Return the pool's complete status with ``facts``; its own conditions are unchanged."""
        return build_common_status(obj, facts, features, now)


class V1Beta2PoolStatus:
    """Reads and writes a machine pool's status in contract v1beta2's format."""

    contract = "v1beta2"

    def is_provisioned(self, obj: Object) -> bool:
        """Return whether either status field reports the pool as provisioned (MP-01, MP-02)."""
        new = metadata.lookup(obj, "status", "initialization", "provisioned")
        return new is True or metadata.lookup(obj, "status", "ready") is True

    def build_status(
        self, obj: Object, facts: PoolFacts, features: Set[str], now: str
    ) -> dict[str, Any]:
        """Return the pool's complete status with ``facts``; its own conditions are unchanged.

        ``ready`` and ``initialization.provisioned`` have the same value: the contract requires the
        latter, and every version of core so far reads the former (MP-01, MP-02).
        """
        status = build_common_status(obj, facts, features, now)
        if facts.provisioned:
            before = status.get("initialization") or {}
            status["initialization"] = {**before, "provisioned": True}
        return status


_WRITERS: Final[tuple[MachinePoolStatusWriter, ...]] = (V1Beta2PoolStatus(), V1Beta1PoolStatus())
POOL_STATUS_WRITERS: Final[Mapping[str, MachinePoolStatusWriter]] = {
    known.contract: known for known in _WRITERS
}
"""The MachinePoolStatusWriter for each contract version."""
