"""A fake management cluster for machine pools with Machines."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.infrastructure.machine_pool.kinds import MachinePoolMachinesKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.infrastructure.fake_core import GROUP
from capsmith_runtime.testing.infrastructure.pool_environment import MachinePoolEnvironment
from capsmith_runtime.testing.schema_check import complaints

ELSEWHERE = f"{GROUP}/replicas-managed-by"
DELETE = f"{GROUP}/delete-machine"


class PoolMachinesEnvironment(MachinePoolEnvironment):
    """A pool, and its machines as core and the infrastructure have them."""

    kind: MachinePoolMachinesKind

    def infra_machines(self) -> list[JSON]:
        """Return the machines of the pool."""
        return [each for each in self.api.all(self.kind.machines.kind) if is_pooled(each)]

    def names(self) -> set[str]:
        """Return the names of the machines of the pool."""
        return {machine["metadata"]["name"] for machine in self.infra_machines()}

    def created(self) -> list[NamespacedName]:
        """Return the keys of all machines that the manager created, repeated ones included."""
        kind = self.kind.machines.kind
        return [key for verb, of, key in self.api.requests if (verb, of) == ("create", kind)]

    def joined(self) -> int:
        """Return the number of Machines that have a Node and are not being deleted."""
        return sum(
            "nodeRef" in (machine.get("status") or {})
            and "deletionTimestamp" not in machine["metadata"]
            for machine in self.api.all("Machine")
        )

    def note_machine(self, name: str, annotations: dict[str, str]) -> None:
        """Annotate a Machine."""
        key = NamespacedName(self.pool.namespace, name)
        self.api.change("Machine", key, {"metadata": {"annotations": annotations}})

    def other_field(self) -> tuple[str, Any] | None:
        """Return a field that machines get from the pool, and another valid value for it."""
        spec, resource = self.infra_pool()["spec"], self.kind.resource
        rules = self.manifests.schema(resource.kind, resource.version)["properties"]["spec"]
        for name in self.kind.machine_fields:
            for other in _others(spec.get(name)):
                if not list(complaints(rules, {**spec, name: other}, "spec")):
                    return name, other
        return None

    async def gone(self) -> None:
        """Wait until the pool is gone, and check that nothing is left of it."""
        kind = self.kind.resource.kind
        await self.eventually("it is gone", lambda: self.api.find(kind, self.pool) is None)
        assert self.infrastructure.servers() == []
        assert self.infra_machines() == []
        assert self.api.all("Machine") == []


def is_pooled(machine: JSON) -> bool:
    """Report whether core considers it a machine of a pool."""
    return f"{GROUP}/pool-name" in (machine["metadata"].get("labels") or {})


def _others(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    return [f"{value}2"] if isinstance(value, str) else []
