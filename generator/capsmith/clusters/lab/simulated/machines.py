"""The servers of a workload cluster, derived from core's Machines and MachinePools.

A server boots once the infrastructure provider, whichever it is, has set a provider ID.  The server
is deleted together with its Machine, or when its provider ID is removed from its pool.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capsmith.clusters.lab.simulated.kubelet import Server
from capsmith.clusters.processes.kube import JSON, KubeClient

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
    """The servers of one cluster, updated by :meth:`refresh`."""

    def __init__(self, client: KubeClient, core: str, namespace: str, cluster: str) -> None:
        self._client = client
        self._core = core
        self._namespace = namespace
        self._cluster = cluster
        self._servers: dict[str, Server] = {}

    def servers(self, cluster: str | None = None) -> list[Server]:
        """Return the servers as of the last refresh."""
        return list(self._servers.values())

    def refresh(self) -> None:
        """Update the servers from Machines and MachinePools, reading new bootstrap data."""
        machines, pools = self._list("Machine"), self._list(_POOL)
        by_name = {each["metadata"]["name"]: each for each in pools}
        # By uid: a Machine that follows another one of the same name is a new machine.
        found = {each["metadata"]["uid"]: each for each in machines}
        instances = {
            f"{pool['metadata']['uid']}/{boot.provider_id}": boot
            for pool in pools
            for boot in self._find_instances(pool)
        }
        for id in self._servers.keys() - found.keys() - instances.keys():
            del self._servers[id]
        for uid, machine in found.items():
            # One that is being deleted does not boot: core may have removed its Node.
            if uid not in self._servers and "deletionTimestamp" not in machine["metadata"]:
                self._boot(uid, _read_machine(machine, by_name))
        for id, boot in instances.items():
            if id not in self._servers:
                self._boot(id, boot)

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
        found = self._client.find("v1", "Secret", boot.secret, self._namespace)
        if found is None:
            return
        if boot.config is not None:
            self._report_expiry(boot.config)
        data = base64.b64decode((found.get("data") or {}).get("value", ""))
        self._servers[id] = Server(
            id=id,
            name=boot.name,
            provider_id=boot.provider_id,
            cluster=self._cluster,
            user_data=data.decode(errors="replace"),
            version=boot.version,
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
    # A Machine of a pool names no data: those of the pool are for all its machines.
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
