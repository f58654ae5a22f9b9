"""Fake management clusters with the manager of a provider whose kinds implement Remediation."""

from __future__ import annotations

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.remediation.caches import RemediationKind
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import GROUP
from capsmith_runtime.testing.provider import (
    HasRemediations,
    InfrastructureDouble,
    ProviderUnderTest,
)


class RemediationEnvironment(InfrastructureEnvironment):
    """A management cluster with the infrastructure's kinds and one kind of remediation."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        *,
        infrastructure: InfrastructureDouble,
        controllers: InfrastructureControllers,
        kind: RemediationKind,
    ) -> None:
        super().__init__(
            provider,
            component,
            core_version,
            infrastructure=infrastructure,
            controllers=controllers,
            cluster_kind=controllers.clusters[0],
            machine_kind=controllers.machines[0],
        )
        self.kind = kind

    def carried_out(self) -> list[str]:
        """Return a name, in any format, for each remediation that has been carried out."""
        double = self.infrastructure
        assert isinstance(double, HasRemediations), f"{type(double).__name__} needs remediations()"
        return double.remediations()

    async def unhealthy_machine(self) -> NamespacedName:
        """Add a cluster with a machine, and wait until the machine is provisioned."""
        return await self.running_machine(await self.running_cluster())

    def add(
        self,
        machine: NamespacedName,
        *,
        annotations: JSON | None = None,
        is_marked: bool = True,
    ) -> None:
        """Add the remediation of a Machine, as core does for a MachineHealthCheck.

        Core creates the remediation first, and marks the Machine afterwards, unless ``is_marked``
        is false.
        """
        resource = self.kind.resource
        owner = self.core_machine(machine)
        names = {name: owner["metadata"][name] for name in ("name", "uid")}
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **names}
        self.api.add(
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {
                    "namespace": machine.namespace,
                    "name": machine.name,
                    "annotations": dict(annotations or {}),
                    "labels": {f"{GROUP}/cluster-name": owner["spec"]["clusterName"]},
                    "ownerReferences": [reference],
                },
                "spec": self.manifests.sample_spec(resource.kind),
            }
        )
        if is_marked:
            self.mark(machine, healthy=False)

    def mark(self, machine: NamespacedName, *, healthy: bool) -> None:
        """Write the result of a health check into a Machine, as core does."""
        status = self.core_machine(machine).get("status") or {}
        health = {"type": "HealthCheckSucceeded", "status": str(healthy), "reason": "HealthCheck"}
        externally = {"type": "ExternallyRemediated", "status": "False", "reason": "Waiting"}
        new = [health] if healthy else [health, externally]
        names = {each["type"] for each in new}

        def replace(listed: list[JSON]) -> list[JSON]:
            return [*(each for each in listed if each["type"] not in names), *new]

        changed: JSON = {"conditions": replace(status.get("conditions", []))}
        if self.is_old_core:
            nested = status.get("v1beta2") or {}
            changed["v1beta2"] = {"conditions": replace(nested.get("conditions", []))}
        self.api.change("Machine", machine, {"status": changed})

    def core_machine(self, key: NamespacedName) -> JSON:
        """Return a Machine; the test fails if it does not exist."""
        machine = self.api.find("Machine", key)
        assert machine is not None, f"Machine {key} is gone"
        return machine

    def change(self, key: NamespacedName, body: JSON) -> None:
        """Apply a merge patch to the remediation, as a user does."""
        self.api.change(self.kind.resource.kind, key, body)

    def delete(self, key: NamespacedName) -> None:
        """Delete the remediation, as core does once the Machine is healthy, and then mark that."""
        self.api.remove(self.kind.resource.kind, key)
        if self.api.find("Machine", key) is not None:
            self.mark(key, healthy=True)

    def found(self, key: NamespacedName) -> JSON | None:
        """Return the remediation, or None if it no longer exists."""
        return self.api.find(self.kind.resource.kind, key)

    def remediation(self, key: NamespacedName) -> JSON:
        """Return the remediation; the test fails if it does not exist."""
        obj = self.found(key)
        assert obj is not None, f"{key} is gone"
        return obj

    async def is_complete(self, key: NamespacedName) -> None:
        """Wait until the remediation has been carried out and is reported as complete."""

        def holds() -> bool:
            obj = self.remediation(key)
            if not self.has_conditions(obj):
                return bool(self.carried_out())
            return condition(obj, "Ready")[0] == "True"

        await self.eventually("the remediation is complete", holds)

    async def is_deleted(self, key: NamespacedName) -> None:
        """Wait until the remediation is gone."""
        await self.eventually("the remediation is gone", lambda: self.found(key) is None)
