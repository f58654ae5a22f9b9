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
from capsmith.clusters.lab.simulated.loop import note
from capsmith.clusters.lab.simulated.machines import CLUSTER_NAME, Machines
from capsmith.clusters.lab.state import write_text
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.process import free_port
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.tools import Toolbox

_GROUP = "cluster.x-k8s.io"
_TYPE = "Opaque"  # control plane providers leave a kubeconfig of this type alone


@dataclass
class RunningEtcd:
    """The address of the lab's etcd."""

    url: str


@dataclass
class _Workload:
    """An API server and its cluster; a spare API server has no cluster yet."""

    number: int
    server: ApiServer
    uid: str = ""
    machines: Machines | None = None
    kubelet: KubeadmKubelet | None = None


class SimulatedClusters:
    """Gives each Cluster of a lab an API server and Nodes.

    One API server is started in advance: if no API server responds when the cluster's
    infrastructure is ready, core retries only after half a minute.
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
        """Restart the API servers of known clusters, and start a spare API server."""
        known = self._read()
        self._next = known.get("next", 1)
        for uid, (number, port) in known.get("clusters", {}).items():
            self._workloads[uid] = self._started(number, port, uid)
        self._spare = self._new()
        self._write()

    def stop(self) -> None:
        """Stop the API servers of all clusters, and the spare API server."""
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
        if self._spare is None:
            # Its start takes seconds, in which the machines of the others go on.
            self._spare = self._new(is_awaited=False)
            self._write()

    def _guarded(self, cluster: JSON, step: Callable[[], None]) -> None:
        """Call ``step`` for a cluster and log failures; the next tick retries."""
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
            publish_kubeconfig(self._client, cluster, workload.server.kubeconfig_text)
            machines = Machines(self._client, core, namespace, name)
            server = workload.server
            workload.kubelet = KubeadmKubelet(server.client, machines, server.name, self._log, name)
            workload.machines = machines
        workload.machines.refresh()
        workload.kubelet.tick()

    def _assign(self, uid: str) -> _Workload:
        workload = self._spare or self._new()
        if workload.server.process.running:
            workload.server.wait_ready()
        self._spare = None
        workload.uid = uid
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
        )
        try:
            server.process.start()
            if is_awaited:
                server.wait_ready()
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


def publish_kubeconfig(client: KubeClient, cluster: JSON, kubeconfig: str) -> None:
    """Write the kubeconfig Secret, replacing a Secret from a control plane provider.

    Raises ApiError if a provider changes the Secret at the same time; the next tick retries.
    """
    wanted = build_kubeconfig_secret(cluster, kubeconfig)
    metadata = wanted["metadata"]
    found = client.find("v1", "Secret", metadata["name"], metadata["namespace"])
    if found is not None and found.get("type") == _TYPE:
        client.patch(wanted, {"data": wanted["data"]})
        return
    if found is not None:
        # Its type cannot be changed, and the provider would write its own address again.
        client.delete(found)
    client.create(wanted)


def build_kubeconfig_secret(cluster: JSON, kubeconfig: str) -> JSON:
    """Return the kubeconfig Secret that core uses, owned by the Cluster."""
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
