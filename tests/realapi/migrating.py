"""A provider's releases on an API server: one with an old API version, and the next one."""

from __future__ import annotations

import base64
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import trustme
import yaml

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.process import free_port
from capsmith.clusters.processes.servers import ApiServer, Etcd
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.realapi.managers import Installation, Manager
from tests.runtime.webhook.hook_serving import write_certificate

GROUP = "infrastructure.cluster.x-k8s.io"
OLD, NEW = "v1alpha1", "v1beta1"
NAMESPACE = "default"
_CRD = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
_MACHINE: JSON = {"size": "s", "image": "i"}


def named(kind: str, name: str, version: str) -> JSON:
    """Return apiVersion, kind and metadata of an object."""
    place = {} if kind == "HarbourIdentity" else {"namespace": NAMESPACE}
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": {"name": name, **place},
    }


class Releases:
    """The infrastructure provider of examples/two-contracts; its manager serves the webhook."""

    def __init__(self, server: ApiServer, etcd: Etcd, pki: Pki, repository: Path) -> None:
        self.client: KubeClient = server.client
        self._server, self._etcd, self._pki = server, etcd, pki
        self._repository = repository
        self._certificates, authority = repository.parent / "certificates", trustme.CA()
        write_certificate(self._certificates, authority)
        self._authority = authority.cert_pem.bytes()
        self._port = free_port()
        self._installation: Installation | None = None
        self.crds = [
            crd
            for path in sorted((repository / "config/crd/bases").glob("*.yaml"))
            for crd in yaml.safe_load_all(path.read_text())
        ]

    def install_old(self) -> None:
        """Install the CRDs with the old version only."""
        for crd in self.crds:
            versions = [each for each in crd["spec"]["versions"] if each["name"] == OLD]
            (only,) = ({**each, "storage": True} for each in versions)
            spec = {**crd["spec"], "versions": [only], "conversion": {"strategy": "None"}}
            self.client.apply({**crd, "spec": spec})
        for crd in self.crds:
            self.objects(crd["spec"]["names"]["kind"], OLD)

    def install_new(self) -> None:
        """Install everything of the next release except the manager."""
        self._installation = Installation(
            self._server, self._pki, self._repository, "config", revise=self._revise, policies=True
        )

    def manager(self, number: int, *arguments: str) -> Manager:
        """Return a manager that reconciles nothing; number 0 serves conversions."""
        assert self._installation is not None
        port = self._port if number == 0 else free_port()
        return self._installation.manager(
            number,
            "--component=infrastructure",
            "--watch-filter=nothing",
            "--webhook-host=127.0.0.1",
            f"--webhook-port={port}",
            f"--webhook-cert-dir={self._certificates}",
            *arguments,
        )

    def expire_lease(self) -> None:
        """Let another manager take over from a killed leader."""
        assert self._installation is not None
        self._installation.expire_lease()

    def stored_versions(self) -> set[str]:
        """Return the stored versions that all CRDs together report."""
        return {version for crd in self._now() for version in crd["status"]["storedVersions"]}

    def versions_in_etcd(self) -> Counter[str]:
        """Return the number of the provider's objects stored in each version."""
        values = self._etcd.read(f"/{self._server.name}/{GROUP}/")
        return Counter(json.loads(value)["apiVersion"].rpartition("/")[2] for value in values)

    def serve_no_more(self, *but: str) -> None:
        """Stop serving the old version, except for some kinds."""
        for crd in self._now():
            versions = [{**each, "served": each["name"] == NEW} for each in crd["spec"]["versions"]]
            if crd["spec"]["names"]["kind"] not in but:
                self.client.patch(crd, {"spec": {"versions": versions}})

    def drop(self) -> None:
        """Remove the old version from all CRDs, if the API server permits it."""
        for crd in self._now():
            versions = [each for each in crd["spec"]["versions"] if each["name"] == NEW]
            self.client.patch(crd, {"spec": {"versions": versions}})

    def create(self, kind: str, names: list[str], spec: JSON) -> None:
        """Create objects of one kind, several at a time."""
        made = [named(kind, name, OLD) | {"spec": spec} for name in names]
        for obj in made:
            obj["metadata"]["annotations"] = {"of": obj["metadata"]["name"]}
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(self.client.create, made))

    def create_all_kinds(self, machines: int) -> None:
        """Create objects of every kind that a cluster has, most of them machines."""
        template = {"template": {"spec": _MACHINE}}
        self.create("HarbourMachine", [f"m{number}" for number in range(machines)], _MACHINE)
        self.create("HarbourMachineTemplate", ["t0", "t1", "t2"], template)
        self.create("HarbourCluster", ["c0", "c1"], {"region": "north"})
        cluster_template = {"template": {"spec": {"region": "north"}}}
        self.create("HarbourClusterTemplate", ["ct0"], cluster_template)
        self.create("HarbourIdentity", ["i0"], {"secretRef": {"name": "s"}})
        status: JSON = {
            "ready": True,
            "failureDomains": {"a": {"controlPlane": True, "attributes": {"rack": "1"}}},
            "failureReason": "Slow",
        }
        cluster = self.client.get(f"{GROUP}/{OLD}", "HarbourCluster", "c0", NAMESPACE)
        self.client.patch(cluster, {"status": status}, subresource="status")

    def objects(self, kind: str, version: str) -> list[JSON]:
        """Return all objects of a kind, once the API server is ready to serve its CRD."""
        return eventually(lambda: self._found(kind, version), timeout=120)[0]

    def contents(self, version: str) -> dict[str, Any]:
        """Return all objects without the parts that every write changes."""
        found = {}
        for crd in self.crds:
            for obj in self.objects(crd["spec"]["names"]["kind"], version):
                for key in ("resourceVersion", "managedFields"):
                    del obj["metadata"][key]
                found[obj["metadata"]["uid"]] = obj
        return found

    def owned_versions(self, kind: str) -> set[str]:
        """Return the versions in which fields of objects are owned."""
        return {
            entry["apiVersion"].rpartition("/")[2]
            for obj in self.objects(kind, NEW)
            for entry in obj["metadata"]["managedFields"]
        }

    def _now(self) -> list[JSON]:
        return [self.client.get(*_CRD, crd["metadata"]["name"]) for crd in self.crds]

    def _found(self, kind: str, version: str) -> tuple[list[JSON]]:
        try:
            return (self.client.list(f"{GROUP}/{version}", kind),)
        except LookupError as error:
            raise NotYet(str(error)) from error
        except ApiError as error:
            if error.status not in (404, 429):
                raise
            raise NotYet(str(error)) from error

    def _revise(self, document: JSON) -> None:
        if document["kind"] != "CustomResourceDefinition":
            return
        client = document["spec"]["conversion"]["webhook"]["clientConfig"]
        path = client.pop("service")["path"]
        client["url"] = f"https://127.0.0.1:{self._port}{path}"
        client["caBundle"] = base64.b64encode(self._authority).decode()
