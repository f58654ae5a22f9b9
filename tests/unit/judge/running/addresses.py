"""An IPAM provider in memory: as it should be, but for one fault."""

from __future__ import annotations

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.contract import CoreObjects
from capsmith.judge.running.ipam_session import IpamObjects, IpamSession
from tests.unit.judge.running.memory import (
    AT_ONCE,
    NAMESPACE,
    Memory,
    MemoryClient,
    MemoryManager,
    begin,
    condition,
    is_paused,
    owned,
    with_condition,
)

POOL: JSON = {
    "apiVersion": "ipam.cluster.x-k8s.io/v1alpha1",
    "kind": "BoxIPPool",
    "spec": {"first": "198.51.100.", "size": 4, "prefix": 24, "gateway": "198.51.100.1"},
}
_FINALIZER = "box.example.com/finalizer"


class AddressProvider:
    """Allocates the addresses of pools; names its fault."""

    def __init__(self, memory: Memory, fault: str = "") -> None:
        self._memory = memory
        self._fault = fault

    def reconcile(self) -> None:
        """Act on all claims, then on all pools."""
        for claim in self._memory.all("IPAddressClaim"):
            self._claim(claim)
        for pool in self._memory.all("BoxIPPool"):
            self._pool(pool)

    def restart(self) -> None:
        """Move all addresses, as a provider that keeps them in memory."""
        if self._fault == "forgets":
            for address in self._memory.all("IPAddress"):
                self._memory.write({**address, "spec": {**address["spec"], "address": "192.0.2.9"}})

    def _claim(self, claim: JSON) -> None:
        name, metadata = claim["metadata"]["name"], claim["metadata"]
        if "deletionTimestamp" in metadata:
            if self._fault != "keeps-addresses" and self._memory.find("IPAddress", name):
                self._memory.delete(("IPAddress", NAMESPACE, name))
            metadata["finalizers"] = []
            self._memory.write(claim)
            return
        if claim["spec"]["poolRef"]["kind"] != "BoxIPPool" and self._fault != "takes-foreign":
            return
        cluster_name = claim["spec"].get("clusterName", "")
        cluster = self._memory.find("Cluster", cluster_name)
        if is_paused(self._memory, claim, cluster) and self._fault != "ignores-pause":
            return
        if cluster_name and cluster is None and self._fault != "ignores-clusters":
            return
        if self._memory.find("IPAddress", name) is None:
            self._allocate(claim)

    def _allocate(self, claim: JSON) -> None:
        pool = self._memory.find("BoxIPPool", claim["spec"]["poolRef"]["name"])
        if pool is None or "deletionTimestamp" in pool["metadata"]:
            return
        taken = {each["spec"]["address"] for each in self._memory.all("IPAddress")}
        free = [
            address
            for number in range(pool["spec"]["size"])
            if (address := f"{pool['spec']['first']}{10 + number}") not in taken
            or self._fault == "allocates-twice"
        ]
        if not free:
            if self._fault != "silent":
                waiting = {"conditions": with_condition(claim, condition("Ready", "False"))}
                self._memory.write({**claim, "status": waiting})
            return
        name = claim["metadata"]["name"]
        if self._fault != "no-finalizer":
            claim["metadata"]["finalizers"] = [_FINALIZER]
        references = [owned(claim, controller=True), owned(pool)]
        if self._fault == "no-owner":
            references.pop()
        spec = {
            "address": "no address" if self._fault == "no-address" else free[0],
            "prefix": 24,
            "gateway": "192.0.2.1" if self._fault == "other-gateway" else "198.51.100.1",
            "claimRef": {"name": name},
            "poolRef": claim["spec"]["poolRef"],
        }
        metadata = {
            "name": name,
            "namespace": NAMESPACE,
            "ownerReferences": [{**each, "blockOwnerDeletion": True} for each in references],
        }
        names = {"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress"}
        self._memory.write({**names, "metadata": metadata, "spec": spec})
        ready = condition("Ready", "False" if self._fault == "not-ready" else "True")
        status: JSON = {"addressRef": {"name": name}, "conditions": with_condition(claim, ready)}
        self._memory.write({**claim, "status": status})

    def _pool(self, pool: JSON) -> None:
        metadata = pool["metadata"]
        used = [
            each
            for each in self._memory.all("IPAddress")
            if each["spec"]["poolRef"]["name"] == metadata["name"]
        ]
        if "deletionTimestamp" in metadata:
            if not used or self._fault == "deletes-used":
                metadata["finalizers"] = []
                self._memory.write(pool)
            return
        metadata["finalizers"] = [_FINALIZER]
        status = {"conditions": with_condition(pool, condition("Ready", "True"))}
        self._memory.write({**pool, "status": status})


def open_session(fault: str = "", size: int = 4, spec: JSON | None = None) -> IpamSession:
    """Return a started session with a provider that has the fault, and a pool of some size.

    ``spec`` has further fields of the pool.
    """
    memory = Memory()
    provider = AddressProvider(memory, fault)
    memory.controllers.append(provider.reconcile)
    core = CoreObjects("v1beta2", NAMESPACE, "v1.36.0")
    pools = IpamObjects(({**POOL, "spec": {**POOL["spec"], "size": size, **(spec or {})}},))
    manager = MemoryManager(provider.restart)
    client = MemoryClient(memory)
    session = IpamSession(client, core, "v1beta2", AT_ONCE, pools, manager=manager)
    begin(session, memory)
    return session
