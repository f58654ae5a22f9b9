"""A fake of core's MachinePool and Machine controllers, for pools with Machines."""

from __future__ import annotations

import asyncio

from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.infrastructure.fake_core import GROUP

FINALIZER = "machine.cluster.x-k8s.io"
STEP_SECONDS = 0.01


class FakePoolMachines:
    """Creates a Machine for each machine of a pool, gives it a Node, and removes both in order."""

    def __init__(self, api: FakeApi, kind: str) -> None:
        self._api = api
        self._kind = kind
        self.hold_machines = False
        """While it is set, no Machines are created, as if the workload cluster were unreachable."""
        self.hold_nodes = False
        """While it is set, no machine becomes a Node."""

    async def run(self) -> None:
        """Run until cancelled."""
        seen: object = None
        while True:
            await asyncio.sleep(STEP_SECONDS)
            state = self._api.version, self.hold_machines, self.hold_nodes
            if seen == state:
                continue
            seen = state
            for pool in self._api.all("MachinePool"):
                self._play(pool)
            for machine in self._api.all("Machine"):
                try:
                    self._machine(machine)
                except NotFoundError:
                    continue

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
        # Were there another controlling owner, core would give up here (MP-09).
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
