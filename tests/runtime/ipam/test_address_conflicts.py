"""IPAddresses with the same address, of which users may create thousands."""

from __future__ import annotations

from capsmith_runtime.ipam.address_index import MAX_CONFLICTS
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.store import Delta
from tests.runtime.ipam.allocator_environment import (
    ADDRESS_TYPE,
    REFERENCE,
    AllocatorEnvironment,
    object_of,
)


def _address(number: int) -> JSON:
    spec = {"address": "10.0.0.1", "claimRef": {"name": f"a{number}"}, "poolRef": REFERENCE}
    return object_of(ADDRESS_TYPE, f"a{number}", spec)


def test_only_a_few_others_are_reconciled_after_a_change() -> None:
    index, count = AllocatorEnvironment().index, 3 * MAX_CONFLICTS
    keys = [NamespacedName("default", f"a{number}") for number in range(count)]
    for number in range(count):
        update = index.update(Delta(None, _address(number)))

        others = keys[:number] if number <= MAX_CONFLICTS else []
        assert list(update.conflicting_addresses) == others
    # The last one that remains is reconciled, because it no longer has a conflict.
    for number in range(count - 1):
        update = index.update(Delta(_address(number), None))

        others = keys[number + 1 :] if count - number - 1 <= MAX_CONFLICTS else []
        assert list(update.conflicting_addresses) == others
