"""Plays core for one MachinePool: each machine of the pool gets a Machine."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.cluster import NAMESPACE, Cluster
from capsmith.clusters.processes.kube import StaleError

_CORE = "cluster.x-k8s.io/v1beta2"
_CLUSTER_LABEL = "cluster.x-k8s.io/cluster-name"
_POOL_LABEL = "cluster.x-k8s.io/pool-name"
_THREADS = 8
_POLL_SECONDS = 0.5
_Object = dict[str, Any]


class Pool:
    """A pool with Machines, and core's work for it in a thread."""

    def __init__(self, cluster: Cluster, owner: _Object, name: str = "pool") -> None:
        self.name = name
        self._cluster = cluster
        self._owner = owner
        self._api = f"{cluster.group}/{cluster.version}"
        self._stopped = threading.Event()
        self._has_work = threading.Event()
        self._thread = threading.Thread(target=self._play, daemon=True)

    def start(self, replicas: int) -> None:
        """Create the pool and begin to play core."""
        pool = self._cluster.client.create(self._machine_pool(replicas))
        infra = self._metadata(self._owner)
        infra["ownerReferences"] = [_reference(pool, controller=True)]
        spec = {"size": "small", "image": "image"}
        self._cluster.client.create(
            {"apiVersion": self._api, "kind": "AcmePool", "metadata": infra, "spec": spec}
        )
        self._has_work.set()
        self._thread.start()

    def rest(self) -> None:
        """Send no requests from when nothing is left to do until the pool is scaled or deleted.

        Core watches, and causes no load while nothing changes; this class lists all the time.
        """
        self._has_work.clear()

    def stop(self) -> None:
        self._stopped.set()
        self._has_work.set()
        self._thread.join(timeout=60)

    def is_settled(self, count: int) -> bool:
        """Whether the pool reports that many machines, all of them with servers."""
        found = self._cluster.client.find(self._api, "AcmePool", self.name, NAMESPACE)
        status = (found or {}).get("status", {})
        ids = (found or {}).get("spec", {}).get("providerIDList") or []
        return (status.get("replicas"), len(ids)) == (count, count)

    def scale(self, replicas: int) -> None:
        self._cluster.client.patch(
            self._named(_CORE, "MachinePool"), {"spec": {"replicas": replicas}}
        )
        self._has_work.set()

    def delete(self) -> None:
        """Delete the pool; its machines follow."""
        self._cluster.client.delete(self._named(self._api, "AcmePool"))
        self._has_work.set()

    def is_gone(self) -> bool:
        client = self._cluster.client
        return (
            client.find(self._api, "AcmePool", self.name, NAMESPACE) is None and not self._infra()
        )

    def forget(self) -> None:
        """Delete the MachinePool."""
        self._cluster.client.delete(self._named(_CORE, "MachinePool"))

    def _infra(self) -> list[_Object]:
        labels = {_POOL_LABEL: self.name}
        return self._cluster.client.list(self._api, "AcmeMachine", NAMESPACE, labels)

    def _play(self) -> None:
        owned: set[str] = set()
        while not self._stopped.is_set():
            began = time.monotonic()
            client = self._cluster.client
            labels = {_POOL_LABEL: self.name}
            existing = client.list(_CORE, "Machine", NAMESPACE, labels)
            names = {each["metadata"]["name"] for each in existing}
            infra = self._infra()
            with ThreadPoolExecutor(_THREADS) as pool:
                new = [each for each in infra if each["metadata"]["name"] not in owned | names]
                owned |= {each["metadata"]["name"] for each in pool.map(self._adopt, new)}
                lost = [each for each in infra if each["metadata"]["name"] in owned - names]
                list(pool.map(self._end, [each for each in lost if each not in new]))
            self._stopped.wait(max(_POLL_SECONDS, time.monotonic() - began))
            if not new and not lost:
                self._has_work.wait()

    def _adopt(self, infra: _Object) -> _Object:
        """Create the Machine of a machine of the pool, and make it an owner."""
        metadata = self._metadata(self._owner)
        metadata["name"] = infra["metadata"]["name"]
        metadata["labels"][_POOL_LABEL] = self.name
        reference = {"apiGroup": self._cluster.group, "kind": "AcmeMachine"}
        spec = {
            "clusterName": self._owner["metadata"]["name"],
            "bootstrap": {"dataSecretName": "bootstrap"},
            "infrastructureRef": {**reference, "name": metadata["name"]},
        }
        machine = self._cluster.client.create(
            {"apiVersion": _CORE, "kind": "Machine", "metadata": metadata, "spec": spec}
        )
        owners = [*infra["metadata"]["ownerReferences"], _reference(machine, controller=True)]
        self._cluster.client.patch(infra, {"metadata": {"ownerReferences": owners}})
        return infra

    def _end(self, infra: _Object) -> None:
        """Delete a machine whose Machine was deleted."""
        try:
            self._cluster.client.delete(infra)
        except StaleError:
            return

    def _machine_pool(self, replicas: int) -> _Object:
        reference = {"apiGroup": self._cluster.group, "kind": "AcmePool", "name": self.name}
        cluster = self._owner["metadata"]["name"]
        template = {
            "clusterName": cluster,
            "bootstrap": {"dataSecretName": "bootstrap"},
            "infrastructureRef": reference,
        }
        spec = {"clusterName": cluster, "replicas": replicas, "template": {"spec": template}}
        metadata = self._metadata(self._owner)
        return {"apiVersion": _CORE, "kind": "MachinePool", "metadata": metadata, "spec": spec}

    def _metadata(self, owner: _Object) -> _Object:
        labels = {_CLUSTER_LABEL: owner["metadata"]["name"]}
        return {"name": self.name, "namespace": NAMESPACE, "labels": labels}

    def _named(self, api: str, kind: str) -> _Object:
        metadata = {"name": self.name, "namespace": NAMESPACE}
        return {"apiVersion": api, "kind": kind, "metadata": metadata}


def _reference(owner: _Object, *, controller: bool) -> _Object:
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    return {**reference, "controller": controller}
