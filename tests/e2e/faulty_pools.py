"""Faults of a generated provider's machine pools and addresses; see `faulty_manager.py`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from capsmith_runtime.infrastructure.machine_pool import plan, steps
from capsmith_runtime.infrastructure.machine_pool.create import PoolMachineClient
from capsmith_runtime.ipam.addresses import IPAddressWriter
from capsmith_runtime.ipam.claims import ClaimController
from capsmith_runtime.kube.client import JSON


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace a function with the one that `make` returns for it."""
    setattr(owner, name, make(getattr(owner, name)))


def pool_unsorted() -> None:
    """Report the provider IDs of more than two machines in reverse order."""

    def make(write: Any) -> Any:
        def faulty(obj: Any, facts: Any, features: Any) -> JSON:
            spec: JSON = write(obj, facts, features)
            ids = spec.get("providerIDList") or []
            return {**spec, "providerIDList": ids[::-1] if len(ids) > 2 else ids}

        return faulty

    replace(steps, "build_pool_spec", make)


def pool_controls_machines() -> None:
    def make(manifest: Any) -> Any:
        def faulty(self: Any, *arguments: Any) -> JSON:
            machine: JSON = manifest(self, *arguments)
            machine["metadata"]["ownerReferences"][0]["controller"] = True
            return machine

        return faulty

    replace(PoolMachineClient, "_manifest", make)


def pool_ignores_mark() -> None:
    def make(order: Any) -> Any:
        def faulty(members: Any) -> Any:
            return order([dataclasses.replace(each, delete_requested=False) for each in members])

        return faulty

    replace(plan, "_deletion_order", make)


def unblocked_address() -> None:
    def make(owners: Any) -> Any:
        def faulty(self: Any, *arguments: Any) -> list[JSON]:
            found: list[JSON] = owners(self, *arguments)
            return [{**each, "blockOwnerDeletion": False} for each in found]

        return faulty

    replace(IPAddressWriter, "_owner_references", make)


def ignored_pause_of_claims() -> None:
    replace(ClaimController, "_is_claim_paused", lambda _: lambda self, obj, claim, cluster: False)
