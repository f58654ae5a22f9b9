"""Steps with one MachinePool of a workload cluster, and the waits for their effects."""

from __future__ import annotations

import fcntl
import json
from dataclasses import dataclass

from capsmith.clusters.lab.simulated.kubelet import CLOUD, Server
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually, settled
from tests.e2e.scenario import Scenario, build_health_check, condition

SCALE_SECONDS = 300.0
ELSEWHERE = "cluster.x-k8s.io/replicas-managed-by"
_CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
_POOL_NAME = "cluster.x-k8s.io/pool-name"
_TOPOLOGY_POOL = "topology.cluster.x-k8s.io/pool-name"


@dataclass(frozen=True)
class Sort:
    """One of the two types of pools: the flavor of the cluster template that has it."""

    word: str
    kind: str
    flavor: str
    machines: bool


WHOLE = Sort("whole", "TidalMachinePool", "machinepool", machines=False)
MACHINES = Sort("machines", "TidalNodePool", "machinepool-tidalnodepool", machines=True)


class Pool:
    """The only MachinePool of a cluster, or the one with the given name."""

    def __init__(self, scenario: Scenario, name: str = "") -> None:
        self.scenario = scenario
        self.name = name or f"{scenario.name}-mp-0"

    @classmethod
    def of_class(cls, scenario: Scenario, name: str) -> Pool:
        """Return the pool with this name in the topology, once it exists."""
        labels = {_CLUSTER_NAME: scenario.name, _TOPOLOGY_POOL: name}

        def found() -> list[JSON]:
            return scenario.client.list(scenario.core, "MachinePool", scenario.namespace, labels)

        (pool,) = eventually(found, what=f"the pool {name}")
        return cls(scenario, pool["metadata"]["name"])

    def machine_pool(self) -> JSON:
        scenario = self.scenario
        return scenario.client.get(scenario.core, "MachinePool", self.name, scenario.namespace)

    def infrastructure(self) -> JSON:
        """Return the provider's object for the MachinePool."""
        scenario = self.scenario
        reference = self.machine_pool()["spec"]["template"]["spec"]["infrastructureRef"]
        version, kind, name = scenario.stack.dialect.resolve(scenario.client, reference)
        return scenario.client.get(version, kind, name, scenario.namespace)

    def has_image(self, image: str) -> bool:
        return bool(self.infrastructure()["spec"]["image"] == image)

    def machines(self) -> list[JSON]:
        """Return the pool's Machines; none for a pool without Machines."""
        labels = {_CLUSTER_NAME: self.scenario.name}
        found = self.scenario.client.list(
            self.scenario.core, "Machine", self.scenario.namespace, labels
        )
        return [machine for machine in found if _owner(machine) == self.name]

    def servers(self) -> list[Server]:
        name = self.infrastructure()["metadata"]["name"]
        return [each for each in self.scenario.servers() if each.name.startswith(f"{name}-")]

    def change(self, spec: JSON) -> None:
        """Change the spec of the MachinePool."""
        self.scenario.client.patch(self.machine_pool(), {"spec": spec})

    def scale(self, replicas: int) -> None:
        self.change({"replicas": replicas})

    def note(self, annotations: JSON) -> None:
        self.scenario.client.patch(self.machine_pool(), {"metadata": {"annotations": annotations}})

    def change_infrastructure(self, spec: JSON) -> None:
        """Change the spec of the provider's object."""
        self.scenario.client.patch(self.infrastructure(), {"spec": spec})

    def wait(self, replicas: int, timeout: float = SCALE_SECONDS) -> JSON:
        """Wait until core, the Nodes and the cloud agree on the number; return the MachinePool."""

        def agreed() -> JSON:
            pool = self.machine_pool()
            self._check_core(pool, replicas)
            ids = set(pool["spec"].get("providerIDList", []))
            servers = {server.provider_id for server in self.servers()}
            if ids != servers:
                raise NotYet(f"{len(ids)} ids, {len(servers)} servers, {len(ids & servers)} both")
            nodes = {node["spec"]["providerID"] for node in self.nodes()}
            if nodes != ids:
                raise NotYet(f"{len(nodes)} Nodes, {len(nodes & ids)} of them of the pool")
            return pool

        return eventually(agreed, timeout=timeout, what=f"{self.name} has {replicas} machines")

    def wait_machines(self, replicas: int, timeout: float = SCALE_SECONDS) -> list[JSON]:
        """Wait until this many Machines are Running, each with the Node of its server."""

        def running() -> list[JSON]:
            found = self.machines()
            phases = [machine.get("status", {}).get("phase") for machine in found]
            if len(found) != replicas or any(phase != "Running" for phase in phases):
                counted = {phase: phases.count(phase) for phase in phases}
                raise NotYet(f"wanted {replicas} running Machines, found {counted}")
            return found or [{}]

        found = eventually(running, timeout=timeout, what=f"{self.name}: {replicas} Machines")
        return [machine for machine in found if machine]

    def nodes(self) -> list[JSON]:
        """Return the Nodes of the pool's servers, by the names that these have or had."""
        name = self.infrastructure()["metadata"]["name"]
        labels = {CLOUD: self.scenario.stack.name}
        found = self.scenario.workload.client.list("v1", "Node", labels=labels)
        return [node for node in found if node["metadata"]["name"].startswith(f"{name}-")]

    def created(self) -> list[str]:
        """Return every server that was ever created for the pool, once for each creation."""
        name = self.infrastructure()["metadata"]["name"]
        return [
            event.id
            for event in self.scenario.journal()
            if event.action == "create" and event.what == "server" and _of(event.id, name)
        ]

    def scale_elsewhere(self, autoscaler: str) -> None:
        """Leave the number of machines to an autoscaler, and wait until the provider knows.

        Another number in the same write is one that the provider must not scale to.  It replaces it
        by the number of machines that exist, and no event but this write makes it do so.
        """
        created, machine_pool = self.created(), self.machine_pool()
        replicas = machine_pool["spec"]["replicas"]
        annotations = {"annotations": {ELSEWHERE: autoscaler}}
        change = {"metadata": annotations, "spec": {"replicas": replicas + 1}}
        self.scenario.client.patch(machine_pool, change)
        eventually(
            lambda: self.machine_pool()["spec"]["replicas"] == replicas,
            what=f"{self.name} has its {replicas} replicas again",
        )
        assert self.created() == created, "the provider scaled the pool itself"

    def resize_group(self, size: int) -> None:
        """Resize the group of a pool without Machines, as the cloud's own autoscaler would."""
        folder = self.scenario.stack.cloud.folder / "groups"
        name = self.infrastructure()["metadata"]["name"]
        (path,) = folder.glob(f"{name}.*.json")
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            draft = folder / ".resized"
            draft.write_text(json.dumps({**json.loads(path.read_text()), "size": size}))
            draft.replace(path)  # the provider reads without the lock

    def delete(self, timeout: float = SCALE_SECONDS) -> None:
        """Delete the MachinePool, and wait until it is gone."""
        scenario = self.scenario
        scenario.client.delete(self.machine_pool())
        eventually(
            lambda: scenario.client.find(
                scenario.core, "MachinePool", self.name, scenario.namespace
            )
            is None,
            timeout=timeout,
            what=f"{self.name} gone",
        )

    def scale_and_wait(self, sort: Sort, replicas: int) -> None:
        self.scale(replicas)
        self.wait_all(sort, replicas)

    def wait_all(self, sort: Sort, replicas: int) -> None:
        """Wait for this many machines, and for as many Machines if the pool has Machines."""
        self.wait(replicas)
        self.wait_machines(replicas if sort.machines else 0)

    def wait_replaced(self, before: set[str], replicas: int) -> None:
        """Wait until all Machines are new; check that at most one was missing at any time."""

        def others() -> bool:
            found = self.machines()
            ready = [machine for machine in found if machine.get("status", {}).get("nodeRef")]
            staying = [each for each in ready if "deletionTimestamp" not in each["metadata"]]
            if len(staying) < replicas - 1:
                raise RuntimeError(f"{len(staying)} of {replicas} machines have Nodes")
            if left := self.names() & before:
                raise NotYet(f"still there: {left}")
            return True

        eventually(others, timeout=SCALE_SECONDS, what="all machines replaced", interval=0.02)
        self.wait_all(MACHINES, replicas)

    def wait_quiet(self, seconds: float = 3.0) -> None:
        """Wait until the provider's objects of the pool are no longer written."""

        def versions() -> dict[str, str]:
            objects = [self.infrastructure()]
            objects += [self.scenario.infrastructure_of(machine) for machine in self.machines()]
            return {
                each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in objects
            }

        settled(versions, seconds=seconds, what="the pool's objects")

    def is_paused(self) -> bool:
        """Return whether the provider's object reports the pause."""
        found = condition(self.infrastructure(), "Paused")
        return found is not None and found["status"] == "True"

    def ids(self) -> list[str]:
        return list(self.machine_pool()["spec"].get("providerIDList", []))

    def names(self) -> set[str]:
        return {machine["metadata"]["name"] for machine in self.machines()}

    def _check_core(self, pool: JSON, replicas: int) -> None:
        status = pool.get("status", {})
        provisioned = status.get("initialization", status)
        key = "infrastructureProvisioned" if "initialization" in status else "infrastructureReady"
        seen = {
            "spec.replicas": pool["spec"].get("replicas"),
            "replicas": status.get("replicas", 0),
            "ids": len(pool["spec"].get("providerIDList", [])),
            "nodeRefs": len(status.get("nodeRefs", [])),
            "provisioned": provisioned.get(key),
        }
        wanted = {**dict.fromkeys(seen, replicas), "provisioned": True}
        if seen != wanted:
            raise NotYet(f"wanted {wanted}, found {seen}; phase {status.get('phase')}")
        ids = pool["spec"].get("providerIDList", [])
        assert ids == sorted(set(ids)), "ids in no order, or twice"


def _of(server: str, name: str) -> bool:
    """Whether a server's mark is that of a pool's: `name.uid-number`, or `name-number.uid`."""
    return server.startswith((f"{name}.", f"{name}-"))


def _owner(machine: JSON) -> str:
    """The MachinePool that owns a Machine; its label may be a hash."""
    owners = machine["metadata"].get("ownerReferences", [])
    names = [str(owner["name"]) for owner in owners if owner["kind"] == "MachinePool"]
    assert not names or _POOL_NAME in machine["metadata"]["labels"]
    return next(iter(names), "")


def health_check(scenario: Scenario) -> JSON:
    """Return a health check for the cluster's Machines whose condition never occurs."""
    labels = {"cluster.x-k8s.io/cluster-name": scenario.name}
    unhealthy = {"type": "Rescued", "status": "True"}
    new: JSON = {"checks": {"unhealthyNodeConditions": [{**unhealthy, "timeoutSeconds": 3600}]}}
    old: JSON = {"unhealthyConditions": [{**unhealthy, "timeout": "1h"}]}
    is_new = scenario.core.endswith("v1beta2")
    return build_health_check(scenario, labels, new if is_new else old)


def add_pools(documents: list[JSON], replicas: dict[str, int]) -> None:
    """Give a rendered Cluster pools of these classes."""
    (cluster,) = (each for each in documents if each["kind"] == "Cluster")
    workers = cluster["spec"]["topology"]["workers"]
    workers["machinePools"] = [
        {"class": name, "name": name, "replicas": count} for name, count in replicas.items()
    ]


def set_variable(scenario: Scenario, name: str, value: str) -> None:
    """Change a variable of the topology."""
    cluster = scenario.cluster()
    variables = cluster["spec"]["topology"]["variables"]
    changed = [{**each, "value": value} if each["name"] == name else each for each in variables]
    scenario.client.patch(cluster, {"spec": {"topology": {"variables": changed}}})


def create_pool(scenario: Scenario, sort: Sort, name: str = "") -> Pool:
    """Create a cluster with one control plane machine, and return its empty pool."""
    documents = scenario.render(control_planes=1, workers=0, flavor=sort.flavor)
    for document in documents:
        if name and document["kind"] == "MachinePool":
            document["metadata"]["name"] = name
    scenario.create(documents)
    scenario.wait_running(1)
    pool = Pool(scenario, name)
    pool.wait(0)
    return pool
