"""Pools of machines: which kind their machines are, and what these get from the pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capsmith.provider.model import Component, Resource, Role

if TYPE_CHECKING:
    from capsmith.spec.model import ProviderSpec
    from capsmith.spec.sections import KindSpec

POOL_FLAVOR = "machinepool"
"""The flavor whose workers are a pool; followed by ``-<kind>`` it is a pool of that kind."""
MACHINES = "machines"
"""The feature of a pool that has a Machine for each of its machines (MP-07)."""


def pool_machine_kind(pool: KindSpec, spec: ProviderSpec) -> str | None:
    """The kind of the machines of a pool: as it is written, or the only one that there is."""
    written: str | None = getattr(pool, "machine_kind", None)  # kinds of infrastructure have it
    if written is not None:
        return written
    kinds = machine_kinds(spec)
    return kinds[0] if len(kinds) == 1 else None


def machine_kinds(spec: ProviderSpec) -> list[str]:
    """The kinds of the description that implement InfraMachine."""
    return [kind for _, kind, found in spec.kinds() if found.implements == "InfraMachine"]


def pool_flavors(spec: ProviderSpec) -> tuple[str, ...]:
    """The flavors of a provider with pools, unless the author names others: one for each kind."""
    pools = [kind for _, kind, found in spec.kinds() if found.implements == "InfraMachinePool"]
    further = (f"{POOL_FLAVOR}-{kind.lower()}" for kind in pools[1:])
    return (*(POOL_FLAVOR for _ in pools[:1]), *further)


def pool_machine(pool: Resource, component: Component) -> Resource:
    """The resource of the machines of a pool with Machines."""
    machines = component.role(Role.INFRA_MACHINE)
    return next(machine for machine in machines if machine.kind == pool.machine_kind)


def shared_fields(pool: Resource, component: Component) -> tuple[str, ...]:
    """The fields that each machine of a pool gets from the pool, under the same name."""
    of_machines = {field.name for field in pool_machine(pool, component).spec_fields}
    return tuple(field.name for field in pool.spec_fields if field.name in of_machines)
