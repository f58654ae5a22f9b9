"""Simulate workload clusters: a real API server for each Cluster, with simulated Nodes.

Core and the control plane provider find the API server through the kubeconfig Secret, which the
simulation creates as a user could.  The server listens on this computer, whatever endpoint the
infrastructure reports.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path

from capsmith.clusters.lab.simulated.kubeadm import KubeadmKubelet
from capsmith.clusters.lab.simulated.kubelet import Server
from capsmith.clusters.lab.simulated.loop import note
from capsmith.clusters.lab.state import write_text
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.process import free_port
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.tools import Toolbox

CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"


# A machine boots once its infrastructure has given it a provider id, whichever provider that is,
# and is gone with its Machine.
class Machines:
    """The servers of one cluster, as of the last :meth:`refresh`."""

    def __init__(self, client: KubeClient, core: str, namespace: str, cluster: str) -> None:
        self._client = client
        self._core = core
        self._namespace = namespace
        self._cluster = cluster
        self._servers: dict[str, Server] = {}

    def servers(self, cluster: str | None = None) -> list[Server]:
        """Return the machines as of the last refresh."""
        return list(self._servers.values())

    def refresh(self) -> None:
        """Read all Machines, and the bootstrap data of new ones."""
        labels = {CLUSTER_NAME: self._cluster}
        found = self._client.list(self._core, "Machine", self._namespace, labels)
        # By uid: a Machine that follows another one of the same name is a new machine.
        machines = {each["metadata"]["uid"]: each for each in found}
        for uid in self._servers.keys() - machines.keys():
            del self._servers[uid]
        for uid, machine in machines.items():
            # One that is being deleted does not boot: core may have removed its Node.
            if uid not in self._servers and "deletionTimestamp" not in machine["metadata"]:
                server = self._booted(uid, machine)
                if server is not None:
                    self._servers[uid] = server

    def _booted(self, uid: str, machine: JSON) -> Server | None:
        spec = machine["spec"]
        provider_id = spec.get("providerID")
        secret = (spec.get("bootstrap") or {}).get("dataSecretName")
        if not provider_id or not secret:
            return None
        found = self._client.find("v1", "Secret", secret, self._namespace)
        if found is None:
            return None
        data = base64.b64decode((found.get("data") or {}).get("value", ""))
        return Server(
            id=uid,
            name=machine["metadata"]["name"],
            provider_id=provider_id,
            cluster=self._cluster,
            user_data=data.decode(errors="replace"),
        )


_GROUP = "cluster.x-k8s.io"
_TYPE = "Opaque"  # control plane providers leave a kubeconfig of this type alone


@dataclass
class RunningEtcd:
    """The address of the lab's etcd."""

    url: str


@dataclass
class _Workload:
    """An API server, and the cluster that it belongs to; a spare one has none yet."""

    number: int
    server: ApiServer
    uid: str = ""
    machines: Machines | None = None
    kubelet: KubeadmKubelet | None = None


class SimulatedClusters:
    """Gives each Cluster of a lab an API server and Nodes.

    One API server is started in advance: if it does not respond when the cluster's infrastructure
    is ready, core retries only after half a minute.
    """

    def __init__(
        self, tools: Toolbox, pki: Pki, etcd: RunningEtcd, client: KubeClient, folder: Path
    ) -> None:
        self._tools = tools
        self._pki = pki
        self._etcd = etcd
        self._client = client
        self._folder = folder
        self._log = folder / "machines.log"
        self._assigned = folder / "workload.json"
        self._workloads: dict[str, _Workload] = {}
        self._spare: _Workload | None = None
        self._next = 1

    def start(self) -> None:
        """Restart the API servers of known clusters, and start another in advance."""
        known = self._read()
        self._next = known.get("next", 1)
        for uid, (number, port) in known.get("clusters", {}).items():
            self._workloads[uid] = self._started(number, port, uid)
        self._spare = self._new()
        self._write()

    def stop(self) -> None:
        """Stop all API servers."""
        for workload in [*self._workloads.values(), *([self._spare] if self._spare else [])]:
            workload.server.stop()

    def tick(self) -> None:
        """Take the next step for each Cluster.

        Raises ProcessError if an API server cannot be started.
        """
        core = self._client.preferred_version(_GROUP)
        clusters = {each["metadata"]["uid"]: each for each in self._client.list(core, "Cluster")}
        for uid in self._workloads.keys() - clusters.keys():
            self._remove(self._workloads.pop(uid))
        for uid, cluster in clusters.items():
            self._guarded(cluster, partial(self._serve, core, uid, cluster))

    def _guarded(self, cluster: JSON, step: Callable[[], None]) -> None:
        """Log what goes wrong with one cluster; the next tick looks again."""
        try:
            step()
        except (ApiError, OSError, HTTPException, LookupError) as error:
            note(self._log, f"cluster {cluster['metadata']['name']}: {error}")

    def _serve(self, core: str, uid: str, cluster: JSON) -> None:
        workload = self._workloads.get(uid)
        if workload is None:
            workload = self._assign(uid)
            note(self._log, f"cluster {cluster['metadata']['name']}: {workload.server.url}")
        if not workload.server.process.running:
            note(self._log, f"{workload.server.name} has ended and restarts")
            workload.server.start()
        if workload.machines is None or workload.kubelet is None:
            name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
            self._publish(cluster, workload.server.kubeconfig_text)
            machines = Machines(self._client, core, namespace, name)
            server = workload.server
            workload.kubelet = KubeadmKubelet(server.client, machines, server.name, self._log, name)
            workload.machines = machines
        workload.machines.refresh()
        workload.kubelet.tick()

    def _assign(self, uid: str) -> _Workload:
        workload = self._spare or self._new()
        self._spare = None
        workload.uid = uid
        self._workloads[uid] = workload
        self._write()
        return workload

    def _publish(self, cluster: JSON, kubeconfig: str) -> None:
        """Write the Secret with the kubeconfig; a control plane provider may have been first."""
        wanted = build_kubeconfig_secret(cluster, kubeconfig)
        try:
            self._client.create(wanted)
        except ApiError as error:
            if error.status != 409:
                raise
            # A control plane provider writes the endpoint of the infrastructure, where nothing
            # listens.
            self._client.patch(wanted, {"data": wanted["data"]})

    def _new(self) -> _Workload:
        number = self._next
        self._next += 1
        return self._started(number, free_port())

    def _started(self, number: int, port: int, uid: str = "") -> _Workload:
        name = f"workload-{number}"
        server = ApiServer(
            self._tools, self._pki, self._etcd, self._folder / name, name, port, audited=False
        )
        try:
            server.start()
        # Also after Ctrl-C: nothing else would ever stop a server that no workload refers to.
        except BaseException:
            server.stop()
            raise
        return _Workload(number, server, uid)

    def _remove(self, workload: _Workload) -> None:
        workload.server.stop()
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
            # The port too: Secrets with kubeconfigs name it, and must stay valid after a restart.
            uid: (each.number, int(each.server.url.rpartition(":")[2]))
            for uid, each in self._workloads.items()
        }
        write_text(self._assigned, json.dumps({"next": self._next, "clusters": clusters}))


def build_kubeconfig_secret(cluster: JSON, kubeconfig: str) -> JSON:
    """Return the Secret, owned by the Cluster, with which core reaches a workload cluster."""
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
