"""Core and an infrastructure provider in memory: as they should be, but for one fault."""

from __future__ import annotations

from collections.abc import Callable

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.contract import CoreObjects, provider_id
from capsmith.judge.running.objects import select_provider_objects
from capsmith.judge.running.session import Session
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
    owners,
    with_condition,
)

GROUP = "infrastructure.cluster.x-k8s.io/v1beta1"
ROLES = {
    "BoxCluster": "InfraCluster",
    "BoxMachineTemplate": "InfraMachineTemplate",
    "BoxMachinePool": "InfraMachinePool",
}
_FINALIZER = "box.example.com/finalizer"
_LABEL = "cluster.x-k8s.io/cluster-name"
_POOL_LABEL = "cluster.x-k8s.io/pool-name"


def documents(*, pools: bool = False) -> list[JSON]:
    """Return the objects of a cluster template."""
    template = {"spec": {"sizeGiB": 8}}
    found: list[JSON] = [
        {"apiVersion": GROUP, "kind": "BoxCluster", "metadata": {"name": "c"}, "spec": {}},
        {
            "apiVersion": GROUP,
            "kind": "BoxMachineTemplate",
            "metadata": {"name": "t"},
            "spec": {"template": template},
        },
    ]
    if pools:
        pool = {"apiVersion": GROUP, "kind": "BoxMachinePool", "metadata": {"name": "p"}}
        found.append({**pool, "spec": {"sizeGiB": 8}})
    return found


_DOMAINS = {
    "wrong-failure-domain": "elsewhere",
    "first-failure-domain": "one",
    "last-failure-domain": "two",
    "no-failure-domain": "",
}
"""What machines report by fault, whatever their Machines require."""


class Core:
    """What core does with owners, references and deletions."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def reconcile(self) -> None:
        """Act on all objects once."""
        memory = self._memory
        for cluster in memory.all("Cluster"):
            self._cluster(cluster)
        for machine in memory.all("Machine"):
            self._machine(machine)
        for pool in memory.all("MachinePool"):
            self._pool(pool)
        pools = {pool["metadata"]["uid"] for pool in memory.all("BoxMachinePool")}
        for machine in memory.all("BoxMachine"):
            if any(each["uid"] not in pools for each in owners(machine, "BoxMachinePool")):
                self._delete(machine)

    def _cluster(self, cluster: JSON) -> None:
        name = cluster["metadata"]["name"]
        infrastructure = self._infrastructure(cluster, cluster["spec"]["infrastructureRef"])
        if "deletionTimestamp" in cluster["metadata"]:
            kinds = ("MachinePool", "Machine")
            dependents = [obj for kind in kinds for obj in self._memory.all(kind)]
            dependents = [each for each in dependents if each["spec"]["clusterName"] == name]
            for each in dependents:
                self._delete(each)
            if dependents:
                return
            if infrastructure is not None:
                self._delete(infrastructure)
                return
            self._release(cluster)
            return
        self._own(cluster, infrastructure, cluster, controller=False)
        if infrastructure is not None and _is_provisioned(infrastructure):
            spec = {"controlPlaneEndpoint": infrastructure["spec"].get("controlPlaneEndpoint")}
            domains = (infrastructure.get("status") or {}).get("failureDomains")
            status = {**(cluster.get("status") or {}), "failureDomains": domains}
            self._memory.write({**cluster, "spec": {**cluster["spec"], **spec}, "status": status})

    def _machine(self, machine: JSON) -> None:
        infrastructure = self._infrastructure(machine, machine["spec"]["infrastructureRef"])
        if "deletionTimestamp" in machine["metadata"]:
            if infrastructure is None:
                self._release(machine)
            else:
                self._delete(infrastructure)
            return
        cluster = self._memory.find("Cluster", machine["spec"]["clusterName"])
        self._own(machine, infrastructure, cluster, controller=True)
        if infrastructure is not None and _is_provisioned(infrastructure):
            spec = {**machine["spec"], "providerID": provider_id(infrastructure)}
            self._memory.write({**machine, "spec": spec})

    def _pool(self, pool: JSON) -> None:
        reference = pool["spec"]["template"]["spec"]["infrastructureRef"]
        infrastructure = self._infrastructure(pool, reference)
        if "deletionTimestamp" in pool["metadata"]:
            if infrastructure is None:
                self._release(pool)
            else:
                self._delete(infrastructure)
            return
        cluster = self._memory.find("Cluster", pool["spec"]["clusterName"])
        self._own(pool, infrastructure, cluster, controller=True)
        if infrastructure is not None and _is_provisioned(infrastructure):
            ids = infrastructure["spec"].get("providerIDList") or []
            status = {"replicas": len(ids), "initialization": {"infrastructureProvisioned": True}}
            spec = {**pool["spec"], "providerIDList": ids}
            self._memory.write({**pool, "spec": spec, "status": status})
            self._make_machines(pool, infrastructure)

    def _make_machines(self, pool: JSON, infrastructure: JSON) -> None:
        """Create a Machine for each machine object of a pool."""
        uid = infrastructure["metadata"]["uid"]
        cluster = self._memory.find("Cluster", pool["spec"]["clusterName"])
        if cluster is None or "deletionTimestamp" in cluster["metadata"]:
            return
        for obj in self._memory.all("BoxMachine"):
            metadata = obj["metadata"]
            is_known = self._memory.find("Machine", metadata["name"]) is not None
            is_own = uid in [each["uid"] for each in metadata.get("ownerReferences") or []]
            if is_known or not is_own or "deletionTimestamp" in metadata:
                continue
            reference = {"apiGroup": GROUP.partition("/")[0], "kind": "BoxMachine"}
            spec = {
                "clusterName": pool["spec"]["clusterName"],
                "bootstrap": {},
                "infrastructureRef": {**reference, "name": metadata["name"]},
            }
            names = {"apiVersion": pool["apiVersion"], "kind": "Machine"}
            place = {"name": metadata["name"], "namespace": NAMESPACE, "labels": metadata["labels"]}
            self._memory.write({**names, "metadata": place, "spec": spec})

    def _infrastructure(self, obj: JSON, reference: JSON) -> JSON | None:
        self._guard(obj)
        return self._memory.find(reference["kind"], reference["name"])

    def _guard(self, obj: JSON) -> None:
        """Add the finalizer of core."""
        metadata = obj["metadata"]
        if "deletionTimestamp" not in metadata and not metadata.get("finalizers"):
            metadata["finalizers"] = ["cluster.x-k8s.io/core"]
            self._memory.write(obj)

    def _own(
        self, owner: JSON, obj: JSON | None, cluster: JSON | None, *, controller: bool
    ) -> None:
        if obj is None or is_paused(self._memory, obj, cluster) or any(owners(obj, owner["kind"])):
            return
        metadata = obj["metadata"]
        known = metadata.get("ownerReferences") or []
        metadata["ownerReferences"] = [*known, owned(owner, controller=controller)]
        name = owner["spec"].get("clusterName") or owner["metadata"]["name"]
        metadata["labels"] = {**(metadata.get("labels") or {}), _LABEL: name}
        self._memory.write(obj)

    def _delete(self, obj: JSON) -> None:
        if "deletionTimestamp" not in obj["metadata"]:
            self._memory.delete((obj["kind"], NAMESPACE, obj["metadata"]["name"]))

    def _release(self, obj: JSON) -> None:
        obj["metadata"]["finalizers"] = []
        self._memory.write(obj)


class Provider:
    """An infrastructure provider that keeps the contract v1beta2, but for its fault."""

    def __init__(self, memory: Memory, fault: str = "") -> None:
        self._memory = memory
        self._fault = fault
        self._made = 0
        self._ready = 0
        self._did: set[str] = set()

    def reconcile(self) -> None:
        """Act on all objects once."""
        for kind, act in (
            ("BoxCluster", self._cluster),
            ("BoxMachine", self._machine),
            ("BoxMachinePool", self._pool),
        ):
            for obj in self._memory.all(kind):
                act(obj)

    def restart(self) -> None:
        """Forget which machines were made, as a provider that keeps them in memory."""
        if self._fault == "forgets":
            for obj in self._memory.all("BoxMachine"):
                self._write(obj, {**obj["spec"], "providerID": self._new_id()})
            for obj in self._memory.all("BoxMachinePool"):
                ids = [self._new_id() for _ in obj["spec"].get("providerIDList") or []]
                self._write(obj, {**obj["spec"], "providerIDList": ids})

    def _cluster(self, obj: JSON) -> None:
        cluster = self._owner(obj, "Cluster")
        if self._is_done(obj, cluster):
            return
        if cluster is None and self._fault != "ignores-owners":
            return
        annotations = obj["metadata"].get("annotations") or {}
        if "cluster.x-k8s.io/managed-by" in annotations and self._fault != "takes-external":
            return
        self._guard(obj)
        spec = {**obj["spec"], "controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}}
        if self._fault == "no-endpoint":
            spec.pop("controlPlaneEndpoint")
        if self._fault == "never-provisions-clusters":
            return
        if self._fault == "lacks-credentials":
            ready = {**condition("Ready", "False"), "reason": "SecretNotFound"}
            status = {**(obj.get("status") or {}), "conditions": with_condition(obj, ready)}
            self._memory.write({**obj, "status": status})
            return
        domains = [{"name": "one"}, {"name": "two"}]
        self._write(obj, spec, {"failureDomains": domains})

    def _machine(self, obj: JSON) -> None:
        machine = self._owner(obj, "Machine")
        name = (obj["metadata"].get("labels") or {}).get(_LABEL, "")
        cluster = self._memory.find("Cluster", name)
        if any(owners(obj, "BoxMachinePool")):
            if "deletionTimestamp" in obj["metadata"]:
                self._release(obj)
            return
        if self._is_done(obj, cluster):
            return
        if machine is None and self._fault != "ignores-owners":
            return
        if self._fault == "never-deletes":
            self._guard(obj)
        place = self._memory.find("BoxCluster", name)
        is_waiting = machine is not None and not (place and _is_provisioned(place))
        if is_waiting and self._fault != "ignores-clusters":
            return
        data = ((machine or {}).get("spec") or {}).get("bootstrap", {}).get("dataSecretName")
        if machine is not None and not data and self._fault != "ignores-data":
            return
        if self._fault == "never-provisions-machines":
            return
        self._guard(obj)
        own = provider_id(obj) or self._new_id()
        spec = {**obj["spec"], "providerID": "" if self._fault == "no-provider-id" else own}
        if self._fault == "changes-spec":
            spec["sizeGiB"] = 16
        domain = ((machine or {}).get("spec") or {}).get("failureDomain")
        actual = _DOMAINS.get(self._fault, domain) if domain else None
        kind = "Internal" if self._fault == "wrong-address" else "InternalIP"
        status: JSON = {"addresses": [{"type": kind, "address": "192.0.2.1"}]}
        if actual:
            status["failureDomain"] = actual
        if self._is_first("drops-owners", obj):
            self._memory.write({**obj, "metadata": {**obj["metadata"], "ownerReferences": []}})
        if self._is_first("loses-provisioned", obj):
            self._write(obj, spec, status)
            self._memory.write({**obj, "spec": spec, "status": {}})
        if self._is_first("changes-provider-id", obj):
            self._write(obj, {**spec, "providerID": self._new_id()}, status)
        self._write(obj, spec, status)

    def _is_first(self, fault: str, obj: JSON) -> bool:
        """Return whether this is the one time when an object meets the fault."""
        name = str(obj["metadata"]["name"])
        is_first = fault == self._fault and name not in self._did
        self._did |= {name} if is_first else set()
        return is_first

    def _pool(self, obj: JSON) -> None:
        pool = self._owner(obj, "MachinePool")
        name = (obj["metadata"].get("labels") or {}).get(_LABEL, "")
        if self._is_done(obj, self._memory.find("Cluster", name)):
            return
        if pool is None:
            if self._fault != "ignores-owners":
                return
            data = {"bootstrap": {"dataSecretName": "data"}}
            pool = {"spec": {"replicas": 1, "template": {"spec": data}}}
        data = pool["spec"]["template"]["spec"]["bootstrap"].get("dataSecretName")
        if not data and self._fault != "ignores-data":
            return
        self._guard(obj)
        if self._fault == "never-provisions-pools":
            return
        annotations = (pool.get("metadata") or {}).get("annotations") or {}
        ids = list(obj["spec"].get("providerIDList") or [])
        is_elsewhere = "cluster.x-k8s.io/replicas-managed-by" in annotations
        keeps = is_elsewhere and self._fault != "scales-anyway"
        size = len(ids) if keeps else int(pool["spec"]["replicas"])
        if self._fault == "replaces-machines" and len(ids) != size:
            ids = []
        ids = [each for each in ids if each not in self._let_go(obj, ids, size)]
        ids = [*ids, *(self._new_id() for _ in range(size - len(ids)))]
        if len(ids) > 1 and self._is_first("reorders", obj):
            self._write(obj, {**obj["spec"], "providerIDList": ids[::-1]}, {"ready": True})
        if self._fault == "duplicates":
            ids = [ids[0]] * len(ids)
        status: JSON = {"ready": True, "replicas": size}
        if self._fault != "no-machine-objects":
            status["infrastructureMachineKind"] = "BoxMachine"
        if self._fault == "other-machine-kind":
            status["infrastructureMachineKind"] = "OtherMachine"
        if self._fault == "no-replicas":
            status.pop("replicas")
        if self._fault == "old-failures":
            status["failureReason"] = "Broken"
        if self._fault != "no-machine-objects":
            self._make_machines(obj, name, ids)
        self._write(obj, {**obj["spec"], "providerIDList": ids}, status)

    def _make_machines(self, pool: JSON, cluster: str, ids: list[str]) -> None:
        for own in ids:
            name = f"{pool['metadata']['name']}-{own.removeprefix('box://')}"
            if self._memory.find("BoxMachine", name) is None:
                labels = {_LABEL: cluster, _POOL_LABEL: pool["metadata"]["name"]}
                metadata = {
                    "name": name,
                    "namespace": NAMESPACE,
                    "labels": labels,
                    "ownerReferences": [owned(pool)],
                    "finalizers": [_FINALIZER],
                }
                names = {"apiVersion": GROUP, "kind": "BoxMachine", "metadata": metadata}
                self._memory.write({**names, "spec": {"providerID": own}})

    def _let_go(self, pool: JSON, ids: list[str], size: int) -> set[str]:
        """Delete the Machines of those that are too many, marked ones first."""
        gone = set()
        for own in ids:
            name = f"{pool['metadata']['name']}-{own.removeprefix('box://')}"
            machine = self._memory.find("Machine", name)
            if machine and "deletionTimestamp" in machine["metadata"]:
                gone.add(own)
        names = {f"{pool['metadata']['name']}-{own.removeprefix('box://')}": own for own in ids}
        left = [name for name, own in names.items() if own not in gone]
        if self._fault != "ignores-marks":
            left.sort(key=lambda name: not self._is_marked(name))
        for name in left[: max(len(left) - size, 0)]:
            if self._memory.find("Machine", name) is not None:
                self._memory.delete(("Machine", NAMESPACE, name))
            gone.add(names[name])
        return gone

    def _is_marked(self, name: str) -> bool:
        machine = self._memory.find("Machine", name) or {"metadata": {}}
        annotations = machine["metadata"].get("annotations") or {}
        return "cluster.x-k8s.io/delete-machine" in annotations

    def _is_done(self, obj: JSON, cluster: JSON | None) -> bool:
        """Handle pause and deletion; return whether nothing else is to do."""
        paused = is_paused(self._memory, obj, cluster) and self._fault != "ignores-pause"
        if self._fault != "no-paused-condition" and obj["metadata"].get("ownerReferences"):
            conditions = with_condition(obj, condition("Paused", str(paused)))
            status = {**(obj.get("status") or {}), "conditions": conditions}
            obj["status"] = self._memory.write({**obj, "status": status})["status"]
        if paused:
            if "deletionTimestamp" in obj["metadata"] and self._fault == "deletes-paused":
                self._release(obj)
            return True
        if "deletionTimestamp" in obj["metadata"]:
            if self._fault != "never-deletes":
                self._release(obj)
            return True
        return False

    def _owner(self, obj: JSON, kind: str) -> JSON | None:
        for each in owners(obj, kind):
            return self._memory.find(kind, each["name"])
        return None

    def _guard(self, obj: JSON) -> None:
        if self._fault != "no-finalizer" and not obj["metadata"].get("finalizers"):
            obj["metadata"]["finalizers"] = [_FINALIZER]
            self._memory.write(obj)

    def _write(self, obj: JSON, spec: JSON, more: JSON | None = None) -> None:
        ready = condition("Ready", "False" if self._fault == "not-ready" else "True")
        if self._fault == "no-reason":
            ready.pop("reason")
        if self._fault == "unsteady" and self._ready < 3:
            self._ready += 1
            ready["message"] = f"round {self._ready}"
        elif self._fault == "unsteady":
            ready["message"] = "round 3"
        status = {
            **(obj.get("status") or {}),
            **(more or {}),
            "initialization": {"provisioned": True},
            "conditions": with_condition(obj, ready),
        }
        if self._fault == "old-contract" and obj["kind"] == "BoxMachinePool":
            status.pop("initialization")
        self._memory.write({**obj, "spec": spec, "status": status})

    def _release(self, obj: JSON) -> None:
        obj["metadata"]["finalizers"] = []
        self._memory.write(obj)

    def _new_id(self) -> str:
        self._made += 1
        return f"box://{self._made}"


def open_session(fault: str = "", *, pools: bool = False) -> Session:
    """Return a started session with core and a provider that has the fault."""
    memory = Memory()
    provider = Provider(memory, fault)
    memory.controllers += [Core(memory).reconcile, provider.reconcile]
    memory.admit = _admission(fault)
    objects = select_provider_objects(documents(pools=pools), ROLES)
    core = CoreObjects("v1beta2", NAMESPACE, "v1.36.0")
    manager = MemoryManager(provider.restart)
    session = Session(MemoryClient(memory), core, "v1beta2", AT_ONCE, objects, manager=manager)
    begin(session, memory)
    return session


def _admission(fault: str) -> Callable[[JSON | None, JSON, bool], str]:
    def admit(old: JSON | None, new: JSON, dry_run: bool) -> str:
        if old is None or new["kind"] != "BoxMachineTemplate" or old["spec"] == new["spec"]:
            return ""
        annotations = new["metadata"].get("annotations") or {}
        is_topology = "topology.cluster.x-k8s.io/dry-run" in annotations
        if fault == "mutable-template" or (is_topology and fault != "refuses-dry-runs"):
            return ""
        return "spec.template.spec is immutable"

    return admit


def _is_provisioned(obj: JSON) -> bool:
    initialization = (obj.get("status") or {}).get("initialization") or {}
    return bool(initialization.get("provisioned"))
