"""Pools of machines: the kind of their machines, and the fields that machines get from them."""

from __future__ import annotations

from capsmith.provider.model import Component, Resource, Role

POOL_FLAVOR = "machinepool"
"""The flavor whose workers are a pool; followed by ``-<kind>`` it is a pool of that kind."""
MACHINES = "machines"
"""The feature of a pool that has a Machine for each of its machines (MP-07)."""


def pool_machine(pool: Resource, component: Component) -> Resource:
    """Return the resource of the machines of a pool with Machines."""
    machines = component.role(Role.INFRA_MACHINE)
    return next(machine for machine in machines if machine.kind == pool.machine_kind)


def shared_fields(pool: Resource, component: Component) -> tuple[str, ...]:
    """Return the fields that each machine of a pool gets from the pool, under the same name."""
    of_machines = {field.name for field in pool_machine(pool, component).spec_fields}
    return tuple(field.name for field in pool.spec_fields if field.name in of_machines)
