"""A fake management cluster for control planes, with core's Machine controller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Self

from capsmith_runtime.component import Component
from capsmith_runtime.contract.field_paths import write_at_own_paths
from capsmith_runtime.controlplane.annotations import Annotations
from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.controlplane.fake_machines import (
    VERSION,
    FakeMachines,
    crd_of,
    template_of,
)
from capsmith_runtime.testing.environment import TestEnvironment
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests
from capsmith_runtime.testing.provider import ProviderUnderTest

NAMESPACE = "default"
GROUP = "cluster.x-k8s.io"
CLUSTER = NamespacedName(NAMESPACE, "c1")
CONTROL_PLANE = NamespacedName(NAMESPACE, "c1-cp")


class ControlPlaneEnvironment(TestEnvironment):
    """A fake cluster with provisioned infrastructure, and its control plane."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        kind: ControlPlaneKind,
    ) -> None:
        super().__init__(provider, component, core_version)
        self.kind = kind
        self.annotations = Annotations(kind.finalizer)
        self.workload = FakeApi(core_version, Manifests(()))
        """The API server of the workload cluster, with a Node for each Machine that has joined."""
        self.is_unreachable = False
        """Whether the API server of the workload cluster does not respond."""
        self.machines = FakeMachines(self.api, self.workload, kind, self.initialized)
        self._core_at_work: asyncio.Task[None] | None = None
        for made in (
            crd_of("infrastructure.cluster.x-k8s.io", "FakeMachineTemplate"),
            crd_of("infrastructure.cluster.x-k8s.io", "FakeMachine"),
            self._bootstrap_crd(),
            template_of("t1"),
            self._cluster(),
        ):
            self.api.add(made)

    async def __aenter__(self) -> Self:
        self._core_at_work = asyncio.create_task(self.machines.run())
        return await super().__aenter__()

    async def __aexit__(self, *exc: object) -> None:
        await super().__aexit__(*exc)
        if self._core_at_work is not None:
            self._core_at_work.cancel()
            (ended,) = await asyncio.gather(self._core_at_work, return_exceptions=True)
            assert isinstance(ended, asyncio.CancelledError), repr(ended)

    def add_control_plane(self, replicas: int = 3, **changes: Any) -> None:
        """Add a control plane as core creates it; ``changes`` override its spec."""
        cluster = self.api.find("Cluster", CLUSTER)
        assert cluster is not None
        owner = {
            "apiVersion": cluster["apiVersion"],
            "kind": "Cluster",
            "name": CLUSTER.name,
            "uid": cluster["metadata"]["uid"],
        }
        spec = {
            **self.manifests.sample_spec(self.kind.resource.kind),
            **self._at_own_paths({**self._spec(replicas), **changes}),
        }
        self.api.add(
            {
                "apiVersion": self.kind.resource.api_version,
                "kind": self.kind.resource.kind,
                "metadata": {
                    "namespace": NAMESPACE,
                    "name": CONTROL_PLANE.name,
                    "labels": {f"{GROUP}/cluster-name": CLUSTER.name},
                    "ownerReferences": [owner],
                },
                "spec": spec,
            }
        )

    async def running(self, replicas: int = 3, **changes: Any) -> None:
        """Add a control plane, and wait until it runs with ``replicas`` Machines."""
        self.add_control_plane(replicas, **changes)
        await self.settled(replicas)

    async def settled(self, replicas: int) -> None:
        """Wait until exactly ``replicas`` up-to-date Machines exist and writes have stopped."""
        await self.up_to_date(replicas)
        await self.quiet()

    async def up_to_date(self, replicas: int) -> None:
        """Wait until exactly ``replicas`` Machines exist and all of them are up to date.

        Unlike :meth:`settled`, does not wait until the manager has stopped writing.
        """
        await self.eventually(
            f"{replicas} machines are up to date", lambda: self._is_settled(replicas)
        )

    def change(self, **spec: Any) -> None:
        """Change fields in the control plane's spec, as a user does."""
        own = self._at_own_paths(spec)
        self.api.change(self.kind.resource.kind, CONTROL_PLANE, {"spec": own})

    def change_machines(self) -> None:
        """Request other Machines: with another version or, if the CRD has none, template."""
        if self.has_version:
            self.change(version="1.35.0")
        else:
            self.api.add(template_of("t2"))
            self.change(machineTemplate=self.from_template("t2"))

    @property
    def has_version(self) -> bool:
        """Return whether the CRD has ``spec.version``."""
        resource = self.kind.resource
        kind: JSON = {"apiVersion": resource.api_version, "kind": resource.kind}
        return self.has_field(kind, "spec", "version")

    def obj(self) -> JSON:
        """Return the control plane's current object; the test fails if it does not exist."""
        found = self.api.find(self.kind.resource.kind, CONTROL_PLANE)
        assert found is not None, "the control plane is gone"
        return found

    def status(self) -> JSON:
        """Return the status of the control plane."""
        return self.obj().get("status") or {}

    def initialized(self) -> bool:
        """Return whether the control plane is reported as initialized (CP-02, CP-03)."""
        found = self.api.find(self.kind.resource.kind, CONTROL_PLANE) or {}
        status = found.get("status") or {}
        if self.contract == "v1beta1":
            return status.get("initialized") is True
        return (status.get("initialization") or {}).get("controlPlaneInitialized") is True

    def names(self) -> list[str]:
        """Return the names of all Machines."""
        return sorted(each["metadata"]["name"] for each in self.api.all("Machine"))

    def machine_template(self, **changes: Any) -> JSON:
        """Return ``spec.machineTemplate``, whose fields differ between the contract versions."""
        template = dict(self._spec(1)["machineTemplate"])
        if self.contract == "v1beta1":
            return {**template, **changes}
        metadata = {"metadata": changes.pop("metadata")} if "metadata" in changes else {}
        return {**metadata, "spec": {**template["spec"], **changes}}

    def from_template(self, name: str) -> JSON:
        """Return a ``spec.machineTemplate`` that refers to this infrastructure template."""
        return self.machine_template(infrastructureRef=self._reference(name))

    def _at_own_paths(self, spec: JSON) -> JSON:
        """Return a spec with the contract's fields where the CRD has them."""
        return dict(write_at_own_paths({"spec": spec}, self.kind.field_paths)["spec"])

    def _bootstrap_crd(self) -> JSON:
        """Return this repository's own CRD, or another provider's."""
        kind = self.kind
        own = (
            each
            for each in self.manifests.crds()
            if each["spec"]["names"]["kind"] == kind.bootstrap_kind
        )
        return next(own, crd_of(kind.bootstrap_group, kind.bootstrap_kind))

    def _reference(self, name: str) -> JSON:
        group, kind = "infrastructure.cluster.x-k8s.io", "FakeMachineTemplate"
        if self.contract == "v1beta1":
            return {
                "apiVersion": f"{group}/v1",
                "kind": kind,
                "name": name,
                "namespace": NAMESPACE,
            }
        return {"apiGroup": group, "kind": kind, "name": name}

    def _is_settled(self, replicas: int) -> bool:
        machines = self.api.all("Machine")
        return len(machines) == replicas and all(_is_up_to_date(each) for each in machines)

    def _spec(self, replicas: int) -> JSON:
        if self.contract == "v1beta1":
            template: JSON = {"infrastructureRef": self._reference("t1")}
        else:
            template = {"spec": {"infrastructureRef": self._reference("t1")}}
        version = {"version": VERSION} if self.has_version else {}
        return {"replicas": replicas, **version, "machineTemplate": template}

    def _cluster(self) -> JSON:
        domains: Any = [{"name": name, "controlPlane": name != "w"} for name in ("a", "b", "w")]
        status: JSON = {"initialization": {"infrastructureProvisioned": True}}
        if self.api.core_version == "v1beta1":
            status = {"infrastructureReady": True}
            domains = {each["name"]: {"controlPlane": each["controlPlane"]} for each in domains}
        return {
            "apiVersion": f"{GROUP}/{self.api.core_version}",
            "kind": "Cluster",
            "metadata": {"namespace": NAMESPACE, "name": CLUSTER.name},
            "spec": {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}},
            "status": {**status, "failureDomains": domains},
        }


def conditions(obj: JSON) -> Iterable[JSON]:
    """Return all conditions of one of core's objects, in either contract version's format."""
    status = obj.get("status") or {}
    new = (status.get("v1beta2") or {}).get("conditions") or ()
    return (*(status.get("conditions") or ()), *new)


def condition(obj: JSON, condition_type: str) -> JSON:
    """Return a condition of an object, or an empty object if it has none of that type."""
    return next((each for each in conditions(obj) if each["type"] == condition_type), {})


def shows(obj: JSON, condition_type: str, status: str) -> bool:
    """Return whether an object has a condition of this type and status."""
    return any(
        (each["type"], each["status"]) == (condition_type, status) for each in conditions(obj)
    )


def _is_up_to_date(machine: JSON) -> bool:
    has_node = "nodeRef" in (machine.get("status") or {})
    leaving = "deletionTimestamp" in machine["metadata"]
    return has_node and not leaving and shows(machine, "UpToDate", "True")
