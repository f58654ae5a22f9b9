"""Plays core: makes pairs of Machine and infrastructure machine, and watches them converge."""

from __future__ import annotations

import itertools
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from benchmarks.cluster import NAMESPACE, Cluster
from capsmith.clusters.processes.tls import create_api_server_context

_CORE = "cluster.x-k8s.io/v1beta2"
_CLUSTER_LABEL = "cluster.x-k8s.io/cluster-name"
_THREADS = 8
_Object = dict[str, Any]


class Load:
    """The objects of Clusters in one namespace."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str = NAMESPACE,
        identity: _Object | None = None,
        clusters: int = 1,
    ) -> None:
        """``identity`` is the reference of the infrastructure clusters, if they need one.

        Pairs belong to the ``clusters`` Clusters in turn.
        """
        others = (f"benchmark-{number}" for number in range(1, clusters))
        self._clusters = ["benchmark", *others]
        self._turns = itertools.cycle(self._clusters)
        self._cluster = cluster
        self._namespace = namespace
        self._identity = {"identityRef": identity} if identity else {}
        self._infrastructure = cluster.infrastructure
        self._api = f"{cluster.group}/{cluster.version}"
        self.sent = 0
        """Writes of our own, which the API server counts too."""
        self.released: dict[str, float] = {}
        """When an object got its owner, from where on the controller can work on it."""
        self._pairs: dict[str, tuple[_Object, _Object]] = {}
        self._watch = _Watch(cluster, namespace)

    def start(self) -> None:
        """Make the clusters and begin to watch."""
        with ThreadPoolExecutor(_THREADS) as pool:
            owners = list(pool.map(self._make_cluster, self._clusters))
        self._owner = owners[0]
        self.sent += 4 * len(owners)
        self._watch.start()

    def _make_cluster(self, name: str) -> _Object:
        kinds, client = self._infrastructure, self._cluster.client
        spec = kinds.cluster_spec | self._identity
        infra = self._create(self._infra(kinds.cluster_kind, name, name, spec))
        reference = {"apiGroup": kinds.group, "kind": kinds.cluster_kind, "name": name}
        owner = self._create(
            {
                "apiVersion": _CORE,
                "kind": "Cluster",
                "metadata": {"name": name, "namespace": self._namespace},
                "spec": {"infrastructureRef": reference},
            }
        )
        provisioned = {"status": {"initialization": {"infrastructureProvisioned": True}}}
        owner = client.patch(owner, provisioned, "status")
        client.patch(infra, _owned_by(owner))
        return owner

    def stop(self) -> None:
        self._watch.stop()

    def make(self, names: list[str]) -> None:
        """Create pairs; the controller has to wait for the owner references."""
        with ThreadPoolExecutor(_THREADS) as pool:
            pairs = pool.map(self._pair, names, list(itertools.islice(self._turns, len(names))))
            self._pairs.update(zip(names, pairs, strict=True))
        self.sent += 2 * len(names)

    def release(self, names: list[str]) -> None:
        """Set the owner references, from where on there is something to do."""
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(self._release, names))
        self.sent += len(names)

    def delete(self, names: list[str]) -> None:
        """Delete the infrastructure machines; `forget` deletes their Machines afterwards."""
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(lambda name: self._cluster.client.delete(self._pairs[name][0]), names))
        self.sent += len(names)

    def forget(self, names: list[str]) -> None:
        """Delete the Machines."""
        with ThreadPoolExecutor(_THREADS) as pool:
            pairs = [self._pairs.pop(name) for name in names]
            list(pool.map(lambda pair: self._cluster.client.delete(pair[1]), pairs))
        self.sent += len(names)

    @property
    def owner(self) -> _Object:
        """The first Cluster."""
        return self._owner

    @property
    def gone(self) -> set[str]:
        """The infrastructure machines that no longer exist, by name."""
        return self._watch.gone

    def wait(self, names: list[str], timeout: float) -> float:
        """Until all have converged; seconds since the call.  Raises TimeoutError."""
        began = time.monotonic()
        while missing := [name for name in names if name not in self._watch.done]:
            if time.monotonic() - began > timeout:
                raise TimeoutError(f"{len(missing)} of {len(names)} have not converged")
            time.sleep(0.05)
        return time.monotonic() - began

    def wait_gone(self, names: list[str], timeout: float) -> None:
        """Until the infrastructure machines no longer exist.  Raises TimeoutError."""
        end = time.monotonic() + timeout
        while not self._watch.gone.issuperset(names):
            if time.monotonic() > end:
                raise TimeoutError(f"{len(set(names) - self._watch.gone)} still exist")
            time.sleep(0.05)

    def converged(self, names: list[str]) -> int:
        return sum(1 for name in names if name in self._watch.done)

    def latencies(self, names: list[str]) -> list[float]:
        return sorted(self._watch.done[name] - self.released[name] for name in names)

    def _pair(self, name: str, owner: str) -> tuple[_Object, _Object]:
        kinds = self._infrastructure
        infra = self._infra(kinds.machine_kind, name, owner, kinds.machine_spec)
        return self._create(infra), self._create(self._machine(name, owner))

    def _release(self, name: str) -> None:
        infra, machine = self._pairs[name]
        self.released[name] = time.monotonic()
        self._cluster.client.patch(infra, _owned_by(machine))

    def _create(self, document: _Object) -> _Object:
        return self._cluster.client.create(document)

    def _infra(self, kind: str, name: str, owner: str, spec: _Object) -> _Object:
        metadata = {
            "name": name,
            "namespace": self._namespace,
            "labels": {_CLUSTER_LABEL: owner},
            # As core does; the provider in Go fails for a cluster without any annotation.
            "annotations": {"cluster.x-k8s.io/cloned-from-name": "benchmark"},
        }
        return {"apiVersion": self._api, "kind": kind, "metadata": metadata, "spec": spec}

    def _machine(self, name: str, owner: str) -> _Object:
        kind = self._infrastructure.machine_kind
        metadata = {
            "name": name,
            "namespace": self._namespace,
            "labels": {_CLUSTER_LABEL: owner},
        }
        spec = {
            "clusterName": owner,
            "bootstrap": {"dataSecretName": "bootstrap"},
            "infrastructureRef": {"apiGroup": self._cluster.group, "kind": kind, "name": name},
        }
        return {"apiVersion": _CORE, "kind": "Machine", "metadata": metadata, "spec": spec}


def _owned_by(owner: _Object) -> _Object:
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    return {"metadata": {"ownerReferences": [reference]}}


class _Watch:
    """When each object had its provider id and was provisioned, by name."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.done: dict[str, float] = {}
        self.gone: set[str] = set()
        self._cluster = cluster
        self._namespace = namespace
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._version = "0"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(timeout=15)

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                self._stream()
            except (OSError, HTTPException, ValueError):
                self._stopped.wait(0.1)  # the watch goes on where it was

    def _stream(self) -> None:
        credentials = self._cluster.client.credentials
        context = create_api_server_context(credentials.ca)
        assert credentials.cert is not None
        context.load_cert_chain(credentials.cert, credentials.key)
        address = urlsplit(self._cluster.server.url)
        connection = HTTPSConnection(
            address.hostname or "", address.port, timeout=5, context=context
        )
        c = self._cluster
        kind = f"{c.group}/{c.version}/namespaces/{self._namespace}/{c.infrastructure.machines}"
        with closing(connection):
            connection.request("GET", f"/apis/{kind}?watch=1&resourceVersion={self._version}")
            self._read(connection.getresponse())

    def _read(self, answer: HTTPResponse) -> None:
        with answer as response:
            if response.status != 200:  # its own cache may not be there yet
                time.sleep(0.2)
                return
            for line in response:
                event = json.loads(line)
                if event["type"] == "ERROR":  # what we have seen is too old to go on from
                    self._version = "0"
                    return
                self._take(event["type"], event["object"])
                if self._stopped.is_set():
                    return

    def _take(self, event: str, obj: _Object) -> None:
        if event == "DELETED":
            self.gone.add(obj["metadata"]["name"])
        # The events with which a watch from version 0 begins are in no order: from an earlier one
        # of them, the next watch would fail, and begin with all objects again, all the time.
        self._version = max(self._version, obj["metadata"]["resourceVersion"], key=int)
        status = obj.get("status", {})
        provisioned = status.get("initialization", {}).get("provisioned")
        if obj.get("spec", {}).get("providerID") and provisioned:
            self.done.setdefault(obj["metadata"]["name"], time.monotonic())
