"""Where a pool's allocation is stored: in its status or, if the CRD lacks the field, an annotation.

Both belong to the pool, so that a write can be locked by the pool's resource version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.ipam.address_index import PoolKey
from capsmith_runtime.kube.client import JSON, KubeClient, ResourceType
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.patch import merge_patch, remove_absent_fields

Allocation = Mapping[str, Any]
"""A holder and its reservations."""
_FIELD: Final = "allocation"
_IN_STATUS: Final = 500
"""Maximum number of reservations in a status; the schema allows twice as many."""
_IN_ANNOTATION: Final = 100
"""Maximum number of reservations in an annotation: all annotations together have 256 KiB."""


def build_annotation(group: str) -> str:
    """Return the name of the annotation that stores the allocation of the group's pools."""
    return f"{group}/{_FIELD}"


def read_allocation(resource: ResourceType, pool: JSON) -> Allocation:
    """Return a pool's allocation; empty if there is none, or if it is unreadable."""
    if not _is_annotated(resource):
        return metadata.mapping(pool, "status", _FIELD)
    text = metadata.annotations(pool).get(build_annotation(resource.group))
    return metadata.parse_object(text) or {}


def _is_annotated(resource: ResourceType) -> bool:
    return f"status.{_FIELD}" in resource.absent_fields


class AllocationStore:
    """Reads and writes the allocation and the counts of one pool."""

    def __init__(self, pool: PoolKey, pools: Informer, client: KubeClient) -> None:
        self._pool = pool
        self._pools = pools
        self._client = client

    @property
    def max_reservations(self) -> int:
        """Return how many addresses may be reserved at the same time."""
        return _IN_ANNOTATION if _is_annotated(self._pools.resource) else _IN_STATUS

    def read(self, pool: JSON) -> Allocation:
        """Return a pool's allocation; empty if there is none, or if it is unreadable."""
        return read_allocation(self._pools.resource, pool)

    def has_counts(self, pool: JSON, counts: JSON) -> bool:
        """Return whether the pool's status has these counts, as far as its CRD has the fields."""
        status = metadata.mapping(pool, "status")
        known = self._select_known({"addresses": counts})
        return all(status.get(name) == count for name, count in known.items())

    async def write(self, pool: JSON, allocation: Allocation, counts: JSON | None = None) -> JSON:
        """Write what has changed of the allocation and the counts; return the pool.

        Raises ConflictError if the pool has changed before the allocation is written.
        """
        status: JSON = {} if counts is None else {"addresses": counts}
        if _is_annotated(self._pools.resource):
            pool = await self._write_annotation(pool, allocation)
        else:
            status[_FIELD] = allocation
        written = metadata.mapping(pool, "status")
        change = merge_patch(
            {name: written.get(name) for name in status}, self._select_known(status)
        )
        if not change:
            return pool
        # Counts need no lock: the next change of the pool corrects them.
        return await self._patch_status(
            pool, change, locked=not _is_annotated(self._pools.resource)
        )

    async def write_counts(self, pool: JSON, counts: JSON) -> JSON:
        """Write the counts, whatever else has changed, and return the pool."""
        status = self._select_known({"addresses": counts})
        return await self._patch_status(pool, status, locked=False)

    async def _write_annotation(self, pool: JSON, allocation: Allocation) -> JSON:
        filled = {name: value for name, value in allocation.items() if value}
        if filled == self.read(pool):
            return pool
        text = json.dumps(filled, separators=(",", ":"), sort_keys=True)
        name = build_annotation(self._pools.resource.group)
        patched = await self._client.patch(
            self._pools.resource,
            self._pool.key,
            {"metadata": {"annotations": {name: text}}},
            resource_version=pool["metadata"]["resourceVersion"],
        )
        self._pools.update_from_write(patched)
        return patched

    async def _patch_status(self, pool: JSON, status: JSON, *, locked: bool) -> JSON:
        patched = await self._client.patch_status(
            self._pools.resource,
            self._pool.key,
            {"status": status},
            resource_version=pool["metadata"]["resourceVersion"] if locked else "",
        )
        self._pools.update_from_write(patched)
        return patched

    def _select_known(self, status: JSON) -> JSON:
        """Return the fields of a status that the pool's CRD has."""
        known: JSON = remove_absent_fields(self._pools.resource, {"status": status})["status"]
        return known
