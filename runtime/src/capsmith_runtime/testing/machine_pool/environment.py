"""A fake management cluster for machine pools, with or without Machines."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator
from typing import Any, Self

from capsmith_runtime.component import Component
from capsmith_runtime.contract.metadata import label_value
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.machine_pool.kinds import MachinePoolMachinesKind
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType, Selection, WatchEvent
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.testing.core_machine_pool import VERSION
from capsmith_runtime.testing.environment import TestEnvironment
from capsmith_runtime.testing.fake_api import FakeApi, merged
from capsmith_runtime.testing.infrastructure.fake_core import (
    BOOTSTRAP_SECRET,
    GROUP,
    NAMESPACE,
    FakeCore,
)
from capsmith_runtime.testing.manifests import Manifests
from capsmith_runtime.testing.other_values import find_other_field
from capsmith_runtime.testing.provider import InfrastructureDouble, ProviderUnderTest

FINALIZER = "machine.cluster.x-k8s.io"


STEP_SECONDS = 0.01


class FakePoolMachines:
    """Acts as core for pools' machines: creates a Machine for each, and sets its nodeRef.

    When a Machine is deleted, its infrastructure machine is removed first, then the Machine.
    """

    def __init__(self, api: FakeApi, kind: str) -> None:
        self._api = api
        self._kind = kind
        self._hold_machines = False
        self._hold_nodes = False

    @property
    def hold_machines(self) -> bool:
        """Return whether no Machines are created, as if the workload cluster were unreachable."""
        return self._hold_machines

    @hold_machines.setter
    def hold_machines(self, value: bool) -> None:
        self._hold_machines = value
        self._api.announce()

    @property
    def hold_nodes(self) -> bool:
        """Return whether machines are kept from becoming Nodes."""
        return self._hold_nodes

    @hold_nodes.setter
    def hold_nodes(self, value: bool) -> None:
        self._hold_nodes = value
        self._api.announce()

    async def run(self) -> None:
        """Act as core until the task is cancelled."""
        seen: object = None
        while True:
            while seen == self._state():
                await self._api.wait_for_change()
            await asyncio.sleep(STEP_SECONDS)
            seen = self._state()
            for pool in self._api.all("MachinePool"):
                self._play(pool)
            for machine in self._api.all("Machine"):
                try:
                    self._machine(machine)
                except NotFoundError:
                    continue

    def _state(self) -> tuple[int, bool, bool]:
        return self._api.version, self.hold_machines, self.hold_nodes

    def _play(self, pool: JSON) -> None:
        reference = pool["spec"]["template"]["spec"]["infrastructureRef"]
        key = NamespacedName(pool["metadata"]["namespace"], reference["name"])
        infrastructure = self._api.find(reference["kind"], key)
        status = (infrastructure or {}).get("status") or {}
        leaving = "deletionTimestamp" in pool["metadata"]
        # Without the kind's name core does not look for machines at all (MP-07).
        if leaving or self.hold_machines or "infrastructureMachineKind" not in status:
            return
        assert status["infrastructureMachineKind"] == self._kind
        for obj in self._api.all(self._kind):
            key = NamespacedName(obj["metadata"]["namespace"], obj["metadata"]["name"])
            if self._is_of(obj, pool) and self._api.find("Machine", key) is None:
                self._api.add(self._new(obj, pool))

    @staticmethod
    def _is_of(obj: JSON, pool: JSON) -> bool:
        labels = obj["metadata"].get("labels") or {}
        if labels.get(f"{GROUP}/cluster-name") != pool["spec"]["clusterName"]:
            return False
        return f"{GROUP}/pool-name" in labels

    def _new(self, obj: JSON, pool: JSON) -> JSON:
        old = self._api.core_version == "v1beta1"
        group = obj["apiVersion"].partition("/")[0]
        kind = {"apiVersion": obj["apiVersion"]} if old else {"apiGroup": group}
        reference = {**kind, "kind": obj["kind"], "name": obj["metadata"]["name"]}
        return {
            "apiVersion": pool["apiVersion"],
            "kind": "Machine",
            "metadata": {
                "namespace": obj["metadata"]["namespace"],
                "name": obj["metadata"]["name"],
                "labels": dict(obj["metadata"]["labels"]),
                "finalizers": [FINALIZER],
                "ownerReferences": [_reference(pool)],
            },
            "spec": {
                "clusterName": pool["spec"]["clusterName"],
                # Core v1.10 leaves the name out, later ones leave it empty (IM-21).
                "bootstrap": {} if old else {"dataSecretName": ""},
                "infrastructureRef": reference,
            },
        }

    def _machine(self, machine: JSON) -> None:
        key = NamespacedName(machine["metadata"]["namespace"], machine["metadata"]["name"])
        obj = self._api.find(self._kind, key)
        if "deletionTimestamp" in machine["metadata"]:
            self._end(key, obj)
        elif obj is not None:
            self._begin(machine, key, obj)

    def _begin(self, machine: JSON, key: NamespacedName, obj: JSON) -> None:
        owners = obj["metadata"]["ownerReferences"]
        # If there were another controlling owner, core would give up here (MP-09).
        assert not [owner for owner in owners if owner.get("controller")] or any(
            owner["uid"] == machine["metadata"]["uid"] for owner in owners
        )
        if all(owner["kind"] != "Machine" for owner in owners):
            both = {"ownerReferences": [*owners, _reference(machine)]}
            self._api.change(self._kind, key, {"metadata": both})
        joined = "nodeRef" in (machine.get("status") or {})
        if not joined and not self.hold_nodes and obj["spec"].get("providerID"):
            self._api.change("Machine", key, {"status": {"nodeRef": {"name": key.name}}})

    def _end(self, key: NamespacedName, obj: JSON | None) -> None:
        if obj is None:
            self._api.change("Machine", key, {"metadata": {"finalizers": None}})
        # Core waits for the infrastructure before it removes its finalizer from the Machine.
        elif "deletionTimestamp" not in obj["metadata"]:
            self._api.remove(self._kind, key)


def _reference(owner: JSON) -> JSON:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }


LAG_SECONDS = 0.03
ELSEWHERE = f"{GROUP}/replicas-managed-by"
DELETE = f"{GROUP}/delete-machine"


class SlowApi(FakeApi):
    """A fake API server whose writes take effect immediately, but whose watches lag behind."""

    def __init__(self, core_version: str, manifests: Manifests) -> None:
        super().__init__(core_version, manifests)
        self.lags: dict[str, float] = {}
        """Delay of watches in seconds by kind; other kinds have the default delay."""

    async def watch(
        self, resource: ResourceType, selection: Selection, *, resource_version: str
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield the events of a watch, each with a delay."""
        events = super().watch(resource, selection, resource_version=resource_version)
        async for event in events:
            await asyncio.sleep(self.lags.get(resource.kind, LAG_SECONDS))
            yield event


class MachinePoolEnvironment(TestEnvironment):
    """A management cluster with a running cluster and a pool."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        *,
        infrastructure: InfrastructureDouble,
        controllers: InfrastructureControllers,
        kind: Kind[Any],
        slow: bool = False,
    ) -> None:
        super().__init__(provider, component, core_version)
        if slow:
            self.api = SlowApi(core_version, self.manifests)
        self.infrastructure = infrastructure
        self.controllers = controllers
        self.kind = kind
        self.cluster = NamespacedName(NAMESPACE, "c1")
        self.pool = NamespacedName(NAMESPACE, "p1")
        machine = next(iter(controllers.machines), None)
        self.core = FakeCore(self.api, controllers.clusters[0], machine, manifests=self.manifests)
        self.core.add_credentials(controllers.identities, component.namespace)
        machines = kind.machines.kind if isinstance(kind, MachinePoolMachinesKind) else ""
        self.machines = FakePoolMachines(self.api, machines)
        self._core_at_work: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._core_at_work = asyncio.create_task(self.machines.run())
        await self._running_cluster()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._core_at_work is not None:
            self._core_at_work.cancel()
        await super().__aexit__(*exc)

    def add_pool(self, replicas: int, *, bootstrap: bool = True, **spec: Any) -> None:
        """Add a MachinePool, and its infrastructure object with the owner that core sets."""
        resource = self.kind.resource
        group = (
            {"apiVersion": resource.api_version}
            if self.is_old_core
            else {"apiGroup": resource.group}
        )
        template = {
            "clusterName": self.cluster.name,
            "version": VERSION,
            "bootstrap": {"configRef": {"name": self.pool.name}},
            "infrastructureRef": {**group, "kind": resource.kind, "name": self.pool.name},
        }
        owner = self.api.add(
            {
                "apiVersion": f"{GROUP}/{self.api.core_version}",
                "kind": "MachinePool",
                "metadata": {"namespace": NAMESPACE, "name": self.machine_pool.name},
                "spec": {
                    "clusterName": self.cluster.name,
                    "replicas": replicas,
                    "template": {"spec": template},
                    **spec,
                },
            }
        )
        self.api.add(self._infrastructure(owner))
        if bootstrap:
            self.write_bootstrap("first")
            self.name_bootstrap()

    @property
    def machine_pool(self) -> NamespacedName:
        """Return the key of the MachinePool; ``use_long_name`` changes its name."""
        return NamespacedName(NAMESPACE, self._machine_pool_name)

    _machine_pool_name = "mp1"

    def use_long_name(self) -> None:
        """Give the MachinePool a name that is too long to be a label value."""
        self._machine_pool_name = (
            "a-machine-pool-with-a-name-that-is-longer-than-what-a-label-can-hold"
        )

    def write_bootstrap(self, text: str) -> None:
        """Replace the content of the bootstrap data Secret, which gets ``text`` as a comment."""
        content = f"#cloud-config\n# {text}\nruncmd: [join --token {BOOTSTRAP_SECRET}]\n"
        data = {"value": base64.b64encode(content.encode()).decode()}
        key = NamespacedName(NAMESPACE, "p1-bootstrap")
        if self.api.find("Secret", key) is not None:
            self.api.change("Secret", key, {"data": data})
            return
        labels = {f"{GROUP}/cluster-name": self.cluster.name}
        metadata = {"namespace": key.namespace, "name": key.name, "labels": labels}
        self.api.add({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

    def name_bootstrap(self) -> None:
        """Set the data Secret's name in the MachinePool, as core does."""
        bootstrap = {"bootstrap": {"dataSecretName": "p1-bootstrap"}}
        self.change_pool({"template": {"spec": bootstrap}})

    def change_pool(self, spec: JSON) -> None:
        """Change fields in the MachinePool's spec, as a user does."""
        self.api.change("MachinePool", self.machine_pool, {"spec": spec})

    def scale(self, replicas: int) -> None:
        """Change the desired number of machines."""
        self.change_pool({"replicas": replicas})

    def upgrade(self, version: str) -> None:
        """Change the desired Kubernetes version."""
        self.change_pool({"template": {"spec": {"version": version}}})

    def note(self, annotations: dict[str, str]) -> None:
        """Set annotations on the MachinePool."""
        self.api.change(
            "MachinePool", self.machine_pool, {"metadata": {"annotations": annotations}}
        )

    def infra_pool(self) -> JSON:
        """Return the pool's infrastructure object from the fake API server."""
        found = self.api.find(self.kind.resource.kind, self.pool)
        assert found is not None, "the pool is gone"
        return found

    def replicas(self) -> int:
        """Return ``spec.replicas`` of the MachinePool."""
        found = self.api.find("MachinePool", self.machine_pool)
        assert found is not None
        return int(found["spec"]["replicas"])

    def ids(self) -> list[str]:
        """Return the provider ids that the pool reports."""
        return list(self.infra_pool()["spec"].get("providerIDList") or [])

    def instances(self) -> dict[str, JSON]:
        """Return what the pool's status says about each machine, keyed by provider id."""
        return {entry["providerID"]: entry for entry in self.list_instances()}

    def list_instances(self) -> list[JSON]:
        """Return what the pool's status says about each machine; a CRD may lack provider ids."""
        return list((self.infra_pool().get("status") or {}).get("instances") or [])

    def is_settled(self, count: int) -> bool:
        """Return whether the pool reports ``count`` machines, and exactly as many servers exist."""
        obj = self.infra_pool()
        status = obj.get("status") or {}
        reported = (status.get("ready"), status.get("replicas"), len(self.ids()))
        return reported == (True, count, count) and len(self.infrastructure.servers()) == count

    async def settled(self, count: int) -> None:
        """Wait until there are ``count`` machines and the manager has stopped sending requests."""
        await self.eventually(f"{count} machines", lambda: self.is_settled(count))
        await self.quiet()
        assert self.is_settled(count)

    def pool_labels(self) -> dict[str, str]:
        """Return the labels that core uses to find the pool's machines (MP-08)."""
        return {
            f"{GROUP}/cluster-name": self.cluster.name,
            f"{GROUP}/pool-name": label_value(self.machine_pool.name),
        }

    def _infrastructure(self, owner: JSON) -> JSON:
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": "MachinePool",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        return {
            "apiVersion": self.kind.resource.api_version,
            "kind": self.kind.resource.kind,
            "metadata": {
                "namespace": NAMESPACE,
                "name": self.pool.name,
                "labels": {f"{GROUP}/cluster-name": self.cluster.name},
                "ownerReferences": [reference],
            },
            "spec": self.manifests.sample_spec(self.kind.resource.kind),
        }

    async def _running_cluster(self) -> None:
        key = self.core.add_cluster(self.cluster.name)
        await self.eventually(
            "the cluster is provisioned",
            lambda: self.core.provisioned(self.core.infra_cluster(key)),
        )
        self.core.infrastructure_is_ready(key)


class PoolMachinesEnvironment(MachinePoolEnvironment):
    """A management cluster with a pool whose machines have Machines."""

    kind: MachinePoolMachinesKind

    def infra_machines(self) -> list[JSON]:
        """Return the infrastructure machines of the pool."""
        return [each for each in self.api.all(self.kind.machines.kind) if is_pooled(each)]

    def names(self) -> set[str]:
        """Return the names of the pool's machines."""
        return {machine["metadata"]["name"] for machine in self.infra_machines()}

    def created(self) -> list[NamespacedName]:
        """Return the keys of all machines that the manager created; keys may repeat."""
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
        """Set annotations on the Machine with this name."""
        key = NamespacedName(self.pool.namespace, name)
        self.api.change("Machine", key, {"metadata": {"annotations": annotations}})

    def change_new_machines(self, spec: JSON) -> None:
        """Merge ``spec`` into the spec of each machine that is created, as a webhook does."""

        def change(obj: JSON) -> JSON:
            return merged(obj, {"spec": spec}) if obj["kind"] == self.kind.machines.kind else obj

        self.api.admission = change

    def edit_machine(self, name: str, spec: JSON) -> None:
        """Change the spec of one of the pool's machines, as a user does."""
        key = NamespacedName(self.pool.namespace, name)
        self.api.change(self.kind.machines.kind, key, {"spec": spec})

    def other_field(self) -> tuple[str, Any] | None:
        """Return the name of a spec field that machines copy, and another valid value for it.

        Returns None if there is no such field.
        """
        spec = self.infra_pool()["spec"]
        return find_other_field(self.manifests, self.kind.resource, spec, self.kind.machine_fields)

    def failure_domains(self) -> list[str]:
        """Return two failure domains of the infrastructure cluster, or else two fixed names."""
        names = self.core.failure_domains(self.cluster)
        return names[:2] if len(names) > 1 else ["zone-1", "zone-2"]

    async def gone(self) -> None:
        """Wait until the pool is gone, and check that none of its infrastructure is left."""
        kind = self.kind.resource.kind
        await self.eventually("it is gone", lambda: self.api.find(kind, self.pool) is None)
        assert self.infrastructure.servers() == []
        assert self.infra_machines() == []
        assert self.api.all("Machine") == []


def is_pooled(machine: JSON) -> bool:
    """Return whether core considers an infrastructure machine part of a pool."""
    return f"{GROUP}/pool-name" in (machine["metadata"].get("labels") or {})
