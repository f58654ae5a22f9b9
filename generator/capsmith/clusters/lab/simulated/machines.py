"""The machines of a cluster, read from the management cluster.

A machine boots once its infrastructure has given it a provider id, whichever provider that is, and
is gone with its Machine.
"""

from __future__ import annotations

import base64

from capsmith.clusters.lab.simulated.server import Server
from capsmith.clusters.processes.kube import JSON, KubeClient

CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"


class Machines:
    """The servers of one cluster; see :meth:`refresh`."""

    def __init__(self, client: KubeClient, core: str, namespace: str, cluster: str) -> None:
        self._client = client
        self._core = core
        self._namespace = namespace
        self._cluster = cluster
        self._servers: dict[str, Server] = {}

    def servers(self, cluster: str | None = None) -> list[Server]:
        """Return the machines at the time of the last refresh."""
        return list(self._servers.values())

    def refresh(self) -> None:
        """Read the Machines, and the bootstrap data of new ones."""
        labels = {CLUSTER_NAME: self._cluster}
        found = self._client.list(self._core, "Machine", self._namespace, labels)
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
