"""A fake for core's Machine controller and for the providers behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.provider import MembersDouble

FINALIZER = "machine.cluster.x-k8s.io"
PRE_TERMINATE = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/"
MEMBER_SECONDS = 1.0
"""Time that the software on the machines takes to notice a change."""
TIME = "2030-01-01T00:00:00Z"
VERSION = "v1.34.0"
"""Version of Kubernetes of the Nodes of Machines that have none."""
CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
NODE_ROLE = "node-role.kubernetes.io/control-plane"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"


class FakeMachines:
    """Adopts the objects of Machines, gives the Machines Nodes, and removes them in order."""

    def __init__(
        self,
        api: FakeApi,
        workload: FakeApi,
        kind: ControlPlaneKind,
        initialized: Callable[[], bool],
    ) -> None:
        self._api = api
        self._workload = workload
        self.members: MembersDouble | None = None
        """The author's test double of what runs on the machines."""
        self.left_behind: list[str] = []
        """Names of Nodes that were members when their servers were deleted, before others left."""
        self._kinds = ("FakeMachine", kind.bootstrap_kind)
        self._initialized = initialized
        self._hold = False
        self._draining = False

    @property
    def hold(self) -> bool:
        """Return whether new Machines are kept from making progress."""
        return self._hold

    @hold.setter
    def hold(self, value: bool) -> None:
        self._hold = value
        self._api.announce()

    @property
    def draining(self) -> bool:
        """Return whether Nodes of Machines being deleted are draining, which delays deletion."""
        return self._draining

    @draining.setter
    def draining(self, value: bool) -> None:
        self._draining = value
        self._api.announce()

    async def run(self) -> None:
        """Act as core's Machine controller until the task is cancelled."""
        members = asyncio.create_task(self._run_members())
        try:
            await self._run()
        finally:
            members.cancel()

    async def _run_members(self) -> None:
        """Let the software on the machines act, a while after each change."""
        seen = -1
        while self.members is not None:
            while seen == self._workload.version:
                await self._workload.wait_for_change()
            await asyncio.sleep(MEMBER_SECONDS)
            seen = self._workload.version
            self.members.act(self._workload)

    async def _run(self) -> None:
        seen: object = None
        while True:
            # Nothing has changed, so core would have had no event.
            while seen == self._state():
                await self._api.wait_for_change()
            await asyncio.sleep(0.002)
            seen = self._state()
            for machine in self._api.all("Machine"):
                if CONTROL_PLANE not in (machine["metadata"].get("labels") or {}):
                    continue
                try:
                    self._play(machine)
                except NotFoundError:
                    continue

    def _state(self) -> object:
        return self._api.version, self.hold, self.draining

    def condition(
        self, name: str, condition_type: str, status: str, reason: str = "Because"
    ) -> None:
        """Set a condition on a Machine, as core does."""
        machine = self._api.find("Machine", NamespacedName("default", name))
        assert machine is not None
        self._set(machine, condition_type, status, reason)

    def _play(self, machine: JSON) -> None:
        metadata = machine["metadata"]
        key = NamespacedName(metadata["namespace"], metadata["name"])
        leaving = "deletionTimestamp" in metadata
        if not leaving and not metadata.get("finalizers"):
            self._api.change("Machine", key, {"metadata": {"finalizers": [FINALIZER]}})
        elif leaving:
            self._end(machine, key)
        elif not self.hold and self._take_over(machine, key):
            self._begin(machine, key)

    def _take_over(self, machine: JSON, key: NamespacedName) -> bool:
        owner = {
            "apiVersion": machine["apiVersion"],
            "kind": "Machine",
            "name": key.name,
            "uid": machine["metadata"]["uid"],
            "controller": True,
        }
        for kind in self._kinds:
            clone = self._api.find(kind, key)
            assert clone is not None, f"{kind} {key} has to be there before its Machine"
            if clone["metadata"].get("ownerReferences") != [owner]:
                self._api.change(kind, key, {"metadata": {"ownerReferences": [owner]}})
        return True

    def _begin(self, machine: JSON, key: NamespacedName) -> None:
        if "providerID" not in machine["spec"]:
            self._api.change("Machine", key, {"spec": {"providerID": f"fake://{key.name}"}})
        elif self._initialized() and "nodeRef" not in (machine.get("status") or {}):
            # Core looks for Nodes only once the control plane is initialised.
            version = machine["spec"].get("version", VERSION)
            self._join(machine, find_node_name(key.name), version)
            found = {
                "nodeRef": {"name": find_node_name(key.name)},
                "nodeInfo": {"kubeletVersion": version},
            }
            self._api.change("Machine", key, {"status": found})
            for condition_type in ("NodeHealthy", "Ready", "Available"):
                current = self._api.find("Machine", key)
                assert current is not None
                self._set(current, condition_type, "True")

    def _end(self, machine: JSON, key: NamespacedName) -> None:
        if self.draining:
            self._set(machine, "Deleting", "True", "DrainingNode")
            return
        annotations = machine["metadata"].get("annotations") or {}
        # Core deletes the infrastructure only after all such hooks have been removed (SM-05).
        if any(name.startswith(PRE_TERMINATE) for name in annotations):
            self._set(machine, "Deleting", "True", "WaitingForPreTerminateHook")
            return
        for kind in self._kinds:
            if self._api.find(kind, key) is not None:
                self._api.remove(kind, key)
        self._leave(find_node_name(key.name))
        self._api.change("Machine", key, {"metadata": {"finalizers": None}})

    def _join(self, machine: JSON, name: str, version: str) -> None:
        """Add the Node of a Machine to the workload cluster, as its kubelet does."""
        if self._workload.find("Node", NamespacedName("", name)) is not None:
            return  # it has joined before a move
        self._workload.add(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {NODE_ROLE: ""}},
                "spec": {"providerID": machine["spec"]["providerID"]},
                "status": {
                    "nodeInfo": {"kubeletVersion": version},
                    "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                },
            }
        )
        # A server is a member before its Node is ready.
        if self.members is not None:
            self.members.act(self._workload)

    def _leave(self, name: str) -> None:
        """Remove the Node of a Machine whose server has been deleted."""
        key = NamespacedName("", name)
        if self._workload.find("Node", key) is None:
            return
        others = [each for each in self._workload.all("Node") if each["metadata"]["name"] != name]
        # The last member takes its cluster with it.
        if self.members is not None and others and name in self.members.members():
            self.left_behind.append(name)
        self._workload.remove("Node", key)

    def _set(
        self, machine: JSON, condition_type: str, status: str, reason: str = "Because"
    ) -> None:
        entry = {
            "type": condition_type,
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": TIME,
        }
        old = self._api.core_version == "v1beta1"
        holder: Any = machine.get("status") or {}
        listed = ((holder.get("v1beta2") or {}) if old else holder).get("conditions") or []
        if any((e["type"], e["status"], e["reason"]) == tuple(entry.values())[:3] for e in listed):
            return
        kept = [e for e in listed if e["type"] != condition_type]
        inner = {"conditions": [*kept, entry]}
        metadata = machine["metadata"]
        body = {"status": {"v1beta2": inner} if old else inner}
        self._api.change("Machine", NamespacedName(metadata["namespace"], metadata["name"]), body)


def find_node_name(machine: str) -> str:
    """Return the name of a Machine's Node, which differs from that of the Machine."""
    return f"{machine}-node"


def crd_of(group: str, kind: str, versions: tuple[str, ...] = ("v1",)) -> JSON:
    """Return another provider's CRD, labelled for both contract versions (GEN-01)."""
    plural = f"{kind.lower()}s"
    labels = {f"cluster.x-k8s.io/{contract}": versions[-1] for contract in ("v1beta1", "v1beta2")}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "labels": labels},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": name, "served": True} for name in versions],
        },
    }


def template_of(name: str) -> JSON:
    """Return an infrastructure template of a kind that another provider defines."""
    return {
        "apiVersion": f"{INFRASTRUCTURE}/v1",
        "kind": "FakeMachineTemplate",
        "metadata": {"namespace": "default", "name": name},
        "spec": {
            "template": {
                "metadata": {"labels": {"from": "template"}},
                "spec": {"size": name},
            }
        },
    }
