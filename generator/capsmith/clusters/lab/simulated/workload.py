"""Simulate workload clusters: a real API server for each Cluster, with simulated servers and Nodes.

Core and the control plane provider find the API server through the kubeconfig Secret, which the
simulation creates as a user could.  The API server listens on this computer, whatever endpoint the
infrastructure reports.  Servers are derived from core's Machines and MachinePools: a server boots
once any infrastructure provider has set a provider ID.  It is deleted together with its Machine, or
when its provider ID is removed from its pool.

While a Cluster is paused, no provider deletes a server: if the Cluster disappears, it was moved or
its finalizers were removed, and its servers keep running.  A new Cluster with the same name gets
them back.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path

from capsmith.clusters.lab.simulated.external_etcd import publish_etcd_secrets
from capsmith.clusters.lab.simulated.kubelet import KubeadmKubelet, Server
from capsmith.clusters.lab.simulated.loop import note
from capsmith.clusters.lab.simulated.pods import CONTROLLERS, SimulatedPods
from capsmith.clusters.lab.state import write_text
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.pki import EtcdTLS, Pki
from capsmith.clusters.processes.process import describe_exit, free_port
from capsmith.clusters.processes.servers import LOCAL, ApiServer, ControllerManager
from capsmith.clusters.processes.tools import Toolbox

CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
_CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
_CERTIFICATES_EXPIRY = "machine.cluster.x-k8s.io/certificates-expiry"
_POOL = "MachinePool"
_YEAR_SECONDS = 365 * 24 * 3600
_LONGEST_STEM = 50
"""Maximum length of a name's stem; simulated Nodes have names of at most 63 characters."""


@dataclass(frozen=True)
class _Boot:
    """The data with which a server boots."""

    name: str
    provider_id: str
    secret: str
    """Name of the Secret with bootstrap data."""
    version: str
    """Version of the server's kubelet; empty if it is not specified."""
    config: JSON | None = None
    """Reference to the kubeadm configuration of a control plane Machine; None for other servers."""


class Machines:
    """One workload cluster's simulated servers, as of the last :meth:`refresh`."""

    def __init__(self, client: KubeClient, core: str, namespace: str, cluster: str) -> None:
        self._client = client
        self._core = core
        self._namespace = namespace
        self._cluster = cluster
        self._servers: dict[str, Server] = {}
        self._orphans: dict[str, Server] = {}
        """Servers without a Machine, by provider ID."""
        self._was_paused = False
        self._has_moved = False
        """Whether new servers are those of a cluster that was moved or restored."""

    def servers(self, cluster: str | None = None) -> list[Server]:
        """Return the servers found by the last refresh. ``cluster`` is ignored."""
        return [*self._servers.values(), *self._orphans.values()]

    def orphan(self) -> None:
        """Keep each server after its Machine is gone, until a Machine has its provider ID."""
        self._orphans |= {each.provider_id: each for each in self._servers.values()}
        self._servers = {}

    def refresh(self, *, is_paused: bool = False) -> None:
        """Update the servers from Machines and MachinePools, and read new bootstrap data.

        No server is deleted while the cluster is paused.  A Machine that appears meanwhile was
        moved or restored, and its server is already running.
        """
        # The last objects of a move may arrive between two calls: the next one still counts.
        self._has_moved = is_paused or self._was_paused
        machines, pools = self._list("Machine"), self._list(_POOL)
        by_name = {each["metadata"]["name"]: each for each in pools}
        # By uid: a Machine that replaces another one of the same name is a new machine.
        found = {each["metadata"]["uid"]: each for each in machines}
        instances = {
            f"{pool['metadata']['uid']}/{boot.provider_id}": boot
            for pool in pools
            for boot in self._find_instances(pool)
        }
        for id in () if is_paused else self._servers.keys() - found.keys() - instances.keys():
            del self._servers[id]
        for uid, machine in found.items():
            # A Machine that is being deleted does not boot, because core may have removed its Node.
            if uid not in self._servers and "deletionTimestamp" not in machine["metadata"]:
                self._boot(uid, _read_machine(machine, by_name))
        for id, boot in instances.items():
            if id not in self._servers:
                self._boot(id, boot)
        self._was_paused = is_paused

    def _list(self, kind: str) -> list[JSON]:
        return self._client.list(self._core, kind, self._namespace, {CLUSTER_NAME: self._cluster})

    def _find_instances(self, pool: JSON) -> Iterator[_Boot]:
        """Yield the servers of a pool whose infrastructure creates no Machines for them."""
        ids = pool["spec"].get("providerIDList") or []
        if not ids or "deletionTimestamp" in pool["metadata"] or self._has_machines(pool):
            return
        template = pool["spec"]["template"]["spec"]
        for id in ids:
            digest = hashlib.sha256(id.encode()).hexdigest()[:8]
            name = f"{pool['metadata']['name'][:_LONGEST_STEM]}-{digest}"
            yield _Boot(name, id, _secret_name(template), template.get("version") or "")

    def _has_machines(self, pool: JSON) -> bool:
        reference = pool["spec"]["template"]["spec"]["infrastructureRef"]
        version = self._version_of(reference)
        found = self._client.find(version, reference["kind"], reference["name"], self._namespace)
        return bool(((found or {}).get("status") or {}).get("infrastructureMachineKind"))

    def _version_of(self, reference: JSON) -> str:
        """Return an object's API version; references in core's v1beta2 contain only the group."""
        found = reference.get("apiVersion")
        return found or self._client.preferred_version(reference["apiGroup"])

    def _boot(self, id: str, boot: _Boot) -> None:
        """Add a server, unless it lacks a provider ID or bootstrap data."""
        if not boot.provider_id or not boot.secret:
            return
        if boot.provider_id in self._orphans:
            # It has booted for another Machine, and only its owner changes.
            self._servers[id] = self._orphans.pop(boot.provider_id)
            return
        found = self._client.find("v1", "Secret", boot.secret, self._namespace)
        if found is None:
            return
        data = base64.b64decode((found.get("data") or {}).get("value", "")).decode(errors="replace")
        if boot.config is not None:
            self._report_expiry(boot.config)
        self._servers[id] = Server(
            id=id,
            name=boot.name,
            provider_id=boot.provider_id,
            cluster=self._cluster,
            user_data=data,
            version=boot.version,
            has_joined=self._has_moved,
        )

    def _report_expiry(self, reference: JSON) -> None:
        """Report when a control plane's certificates expire, as kubeadm would.

        The provider would inspect the API server on the machine, which the simulation lacks.
        """
        version = self._version_of(reference)
        expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + _YEAR_SECONDS))
        metadata = {"name": reference["name"], "namespace": self._namespace}
        config = {"apiVersion": version, "kind": reference["kind"], "metadata": metadata}
        annotations = {_CERTIFICATES_EXPIRY: expiry}
        self._client.patch(config, {"metadata": {"annotations": annotations}})


def _read_machine(machine: JSON, pools: Mapping[str, JSON]) -> _Boot:
    spec, metadata = machine["spec"], machine["metadata"]
    pool = next((pools[name] for name in _owning_pools(machine) if name in pools), None)
    # A pool's Machines have no bootstrap data of their own; the pool's data apply to all of them.
    template = pool["spec"]["template"]["spec"] if pool is not None else {}
    config = (spec.get("bootstrap") or {}).get("configRef") or {}
    labels = metadata.get("labels") or {}
    is_kubeadm = config.get("kind") == "KubeadmConfig" and _CONTROL_PLANE in labels
    return _Boot(
        name=metadata["name"],
        provider_id=spec.get("providerID") or "",
        secret=_secret_name(spec) or _secret_name(template),
        version=spec.get("version") or template.get("version") or "",
        config=config if is_kubeadm else None,
    )


def _owning_pools(machine: JSON) -> Iterator[str]:
    for owner in machine["metadata"].get("ownerReferences") or []:
        if owner["kind"] == _POOL:
            yield owner["name"]


def _secret_name(spec: JSON) -> str:
    return (spec.get("bootstrap") or {}).get("dataSecretName") or ""


_GROUP = "cluster.x-k8s.io"
_TYPE = "Opaque"  # control plane providers leave a kubeconfig of this type alone


@dataclass
class RunningEtcd:
    """The address of the lab's etcd, and the certificates for its clients."""

    url: str
    tls: EtcdTLS


@dataclass
class _Workload:
    """An API server and its cluster; a spare API server has no cluster yet."""

    number: int
    server: ApiServer
    pods: SimulatedPods
    uid: str = ""
    machines: Machines | None = None
    kubelet: KubeadmKubelet | None = None
    cluster: tuple[str, str] = ("", "")
    """Namespace and name of the cluster."""
    is_paused: bool = False
    is_published: bool = False
    """Whether the cluster has its kubeconfig Secret."""
    has_etcd_secrets: bool = False

    def update_pause(self, *, is_paused: bool) -> None:
        """Record whether the cluster is paused. After a pause, its kubeconfig is published again.

        A move or a restore writes the Secret with the address of the former API server, and then
        ends the pause.
        """
        if self.is_paused and not is_paused:
            self.is_published = False
        self.is_paused = is_paused

    def stop(self) -> None:
        """Stop the API server and its clients."""
        self.pods.stop()
        self.server.stop()


class SimulatedClusters:
    """Controller that provides an API server and Nodes for each Cluster in a lab.

    One API server is started in advance: if no API server responds when the cluster's
    infrastructure is ready, core retries only after half a minute.
    """

    def __init__(
        self,
        tools: Toolbox,
        pki: Pki,
        etcd: RunningEtcd,
        client: KubeClient,
        folder: Path,
        address: str = LOCAL,
    ) -> None:
        """Define the simulation, without starting a server.

        ``folder`` is the lab's folder.  API servers listen at ``address``.
        """
        self._tools = tools
        self._pki = pki
        self._etcd = etcd
        self._client = client
        self._folder = folder
        self._address = address
        self._log = folder / "machines.log"
        self._assigned = folder / "workload.json"
        self._workloads: dict[str, _Workload] = {}
        self._orphans: dict[tuple[str, str], _Workload] = {}
        """Clusters that were paused when their objects disappeared."""
        self._spare: _Workload | None = None
        self._next = 1

    def start(self) -> None:
        """Restart known clusters' API servers, and start a spare one for the next cluster."""
        known = self._read()
        self._next = known.get("next", 1)
        for uid, (number, port) in known.get("clusters", {}).items():
            self._workloads[uid] = self._started(number, port, uid)
        self._spare = self._new()
        self._write()

    def stop(self) -> None:
        """Stop all clusters' API servers, and the spare one."""
        spare = [self._spare] if self._spare else []
        for workload in [*self._workloads.values(), *self._orphans.values(), *spare]:
            workload.stop()

    def tick(self) -> None:
        """Advance each Cluster by one step.

        Raises ProcessError if an API server cannot be started.
        """
        core = self._client.preferred_version(_GROUP)
        clusters = {each["metadata"]["uid"]: each for each in self._client.list(core, "Cluster")}
        for uid in self._workloads.keys() - clusters.keys():
            self._lose(self._workloads.pop(uid))
        for uid, cluster in clusters.items():
            self._guarded(cluster, partial(self._serve, core, uid, cluster))
        if self._spare is None:
            # Starting it takes seconds, during which other clusters must make progress.
            self._spare = self._new(is_awaited=False)
            self._write()

    def _guarded(self, cluster: JSON, step: Callable[[], None]) -> None:
        """Call ``step`` for a cluster and log failures; the next tick retries."""
        try:
            step()
        except (ApiError, OSError, HTTPException, LookupError) as error:
            note(self._log, f"cluster {cluster['metadata']['name']}: {error}")

    def _serve(self, core: str, uid: str, cluster: JSON) -> None:
        name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
        workload = self._workloads.get(uid)
        if workload is None:
            workload = self._assign(uid, (namespace, name))
            note(self._log, f"cluster {name}: {workload.server.url}")
        if not workload.server.process.running:
            code = workload.server.process.exit_code
            how = "is not running" if code is None else describe_exit(code)
            note(self._log, f"{workload.server.name} {how}, and restarts")
            workload.server.start()
        workload.update_pause(is_paused=bool(cluster["spec"].get("paused")))
        # A move creates them at its target, before it ends the pause.
        if not workload.is_paused and not workload.has_etcd_secrets:
            workload.has_etcd_secrets = publish_etcd_secrets(self._client, self._pki, cluster)
        if has_control_plane(cluster):
            self._publish(workload, cluster)
        if workload.machines is None or workload.kubelet is None:
            machines = Machines(self._client, core, namespace, name)
            server = workload.server
            workload.kubelet = KubeadmKubelet(server.client, machines, server.name, self._log, name)
            workload.machines = machines
        workload.machines.refresh(is_paused=workload.is_paused)
        workload.kubelet.tick()
        if workload.kubelet.has_nodes:
            self._publish(workload, cluster)
        workload.pods.tick()

    def _publish(self, workload: _Workload, cluster: JSON) -> None:
        if not workload.is_published:
            publish_kubeconfig(self._client, cluster, workload.server.kubeconfig_text)
            workload.is_published = True

    def _assign(self, uid: str, cluster: tuple[str, str]) -> _Workload:
        workload = self._orphans.pop(cluster, None)
        if workload is None:
            workload = self._spare or self._new()
            self._spare = None
        if workload.server.process.running:
            workload.server.wait_ready()
        workload.uid, workload.cluster = uid, cluster
        self._workloads[uid] = workload
        self._write()
        return workload

    def _new(self, *, is_awaited: bool = True) -> _Workload:
        number = self._next
        self._next += 1
        return self._started(number, free_port(), is_awaited=is_awaited)

    def _started(
        self, number: int, port: int, uid: str = "", *, is_awaited: bool = True
    ) -> _Workload:
        name = f"workload-{number}"
        server = ApiServer(
            *(self._tools, self._pki, self._etcd, self._folder / name, name, port),
            audited=False,
            has_node_taints=False,
            address=self._address,
        )
        try:
            server.process.start()
            if is_awaited:
                server.wait_ready()
        # Needed on Ctrl-C too: nothing else would ever stop a server that no workload refers to.
        except BaseException:
            server.stop()
            raise
        return _Workload(number, server, self._simulate_pods(server), uid)

    def _simulate_pods(self, server: ApiServer) -> SimulatedPods:
        flags = [f"--controllers={','.join(CONTROLLERS)}"]
        folder = self._folder / server.name
        controllers = partial(ControllerManager, self._tools, self._pki, server, folder, flags)
        return SimulatedPods(server.client, lambda: controllers().process, self._log)

    def _lose(self, workload: _Workload) -> None:
        """Keep a paused cluster without its objects; end any other cluster."""
        if not workload.is_paused or workload.machines is None:
            self._remove(workload)
            return
        workload.machines.orphan()
        workload.is_published = False
        self._orphans[workload.cluster] = workload

    def _remove(self, workload: _Workload) -> None:
        workload.stop()
        shutil.rmtree(workload.server.kubeconfig.parent, ignore_errors=True)
        self._write()

    def _read(self) -> JSON:
        try:
            found = json.loads(self._assigned.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return dict(found)

    def _write(self) -> None:
        clusters = {
            # The port is recorded too: it is in kubeconfig Secrets, which must stay valid after a
            # restart.
            uid: (each.number, int(each.server.url.rpartition(":")[2]))
            for uid, each in self._workloads.items()
        }
        write_text(self._assigned, json.dumps({"next": self._next, "clusters": clusters}))


def has_control_plane(cluster: JSON) -> bool:
    """Return whether a Cluster has, or will have, a control plane object.

    If it has none, core finds the first Node only if core connects after that Node exists, which is
    the case if the API server runs on the first machine.
    """
    spec = cluster["spec"]
    return bool(spec.get("controlPlaneRef") or spec.get("topology"))


def publish_kubeconfig(client: KubeClient, cluster: JSON, kubeconfig: str) -> None:
    """Write the kubeconfig Secret, replacing one written by a control plane provider.

    Raises ApiError if a provider changes the Secret at the same time; the next tick retries.
    """
    desired = build_kubeconfig_secret(cluster, kubeconfig)
    metadata = desired["metadata"]
    found = client.find("v1", "Secret", metadata["name"], metadata["namespace"])
    if found is not None and found.get("type") == _TYPE:
        client.patch(desired, {"data": desired["data"]})
        return
    if found is not None:
        # The type of a Secret cannot be changed, and the provider would overwrite the address.
        client.delete(found)
    client.create(desired)


def build_kubeconfig_secret(cluster: JSON, kubeconfig: str) -> JSON:
    """Return the kubeconfig Secret that core reads, with the Cluster as its owner."""
    metadata = cluster["metadata"]
    owner = {
        "apiVersion": cluster["apiVersion"],
        "kind": "Cluster",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": _TYPE,
        "metadata": {
            "name": f"{metadata['name']}-kubeconfig",
            "namespace": metadata["namespace"],
            "labels": {CLUSTER_NAME: metadata["name"]},
            "ownerReferences": [owner],
        },
        "data": {"value": base64.b64encode(kubeconfig.encode()).decode()},
    }
