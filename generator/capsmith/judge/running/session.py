"""Run checks against an infrastructure provider, creating the provider's and core's objects."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient, StaleError
from capsmith.clusters.processes.nodes import build_healthy_conditions
from capsmith.clusters.processes.wait import NotYet, eventually
from capsmith.judge.running.base_session import BaseSession
from capsmith.judge.running.contract import PAUSED, is_provisioned, provisioned_path
from capsmith.judge.running.history import WatchedKind
from capsmith.judge.running.objects import CLUSTER_NAME, ProviderObjects

SECRET = "conformance-data"
"""Name of the bootstrap data Secret that all Machines use."""
_CONFLICT = 409
_ENDPOINT = {"host": "127.0.0.1", "port": 6443}
_DATA = "#cloud-config\n{}\n"


class Mover(Protocol):
    """Provides a second management cluster to which a check can move clusters."""

    def start_target(self) -> KubeClient:
        """Start the cluster unless it is running, and return a client for it.

        Raises CapsmithError if it cannot start.
        """

    def move(self, namespace: str) -> None:
        """Move the clusters in a namespace to this management cluster with clusterctl.

        Call :meth:`start_target` first.  Raises ClusterctlError if clusterctl fails.
        """


@dataclass
class Session(BaseSession):
    """The state shared by all checks on an infrastructure provider."""

    objects: ProviderObjects
    mover: Mover | None = field(default=None, kw_only=True)
    kubeconfig: str = field(default="", kw_only=True)
    """Kubeconfig of a workload cluster in which Nodes may be created; empty if there is none."""
    moved_to: KubeClient | None = field(default=None, kw_only=True)
    """Client for the management cluster to which the objects were moved; None before a move."""

    def provider_kinds(self) -> list[WatchedKind]:
        """Return the provider's kinds whose objects the run creates, machines first."""
        return [
            WatchedKind(self.objects.machine_version, self.objects.machine_kind),
            *(
                WatchedKind(each["apiVersion"], each["kind"])
                for each in self.objects.pool_documents
            ),
            WatchedKind(self.objects.cluster_version, self.objects.cluster_kind),
        ]

    def kinds(self) -> list[WatchedKind]:
        """Return the kinds whose objects the run records in its history."""
        kinds = ["Machine", *(["MachinePool"] if self.objects.pool_documents else []), "Cluster"]
        core = [WatchedKind(self.core.api_version, kind) for kind in kinds]
        return [*self.provider_kinds(), *core]

    @cached_property
    def provides_endpoint(self) -> bool:
        """Return whether infrastructure clusters have an endpoint field; True if unknown."""
        version, kind = self.objects.cluster_version, self.objects.cluster_kind
        name = f"{self.client.resolve(version, kind).plural}.{version.partition('/')[0]}"
        try:
            crd = self.client.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
        except ApiError:
            return True  # this user may not read it
        schemas = {each["name"]: each["schema"] for each in crd["spec"]["versions"]}
        found: JSON = schemas[version.rpartition("/")[2]]["openAPIV3Schema"]
        for step in ("spec", "controlPlaneEndpoint"):
            found = (found.get("properties") or {}).get(step) or {}
        return bool(found)

    def clean_up(self) -> None:
        """Delete the run's objects and namespace, in the second management cluster as well."""
        clean_up(self)

    def prepare(self) -> None:
        """Create the bootstrap data Secret that all Machines use."""
        self.client.apply(self._secret(SECRET, {"value": _DATA, "format": "cloud-config"}))

    def create_cluster(self, name: str, annotations: Mapping[str, str] | None = None) -> None:
        """Create an infrastructure cluster with ``annotations``, and a Cluster that refers to it.

        Both are called ``name``.
        """
        self._prepare(name)
        infrastructure = self.objects.cluster(name, self.namespace)
        _annotate(infrastructure, annotations)
        self.client.create(infrastructure)
        self.client.create(self._cluster(name, infrastructure))

    def create_paused_cluster(self, name: str) -> None:
        """Create a paused Cluster, then its infrastructure cluster with an owner reference."""
        self._prepare(name)
        infrastructure = self.objects.cluster(name, self.namespace)
        cluster = self._cluster(name, infrastructure)
        cluster["spec"]["paused"] = True
        # Has its owner from the start: without one, it would be left alone for a reason other than
        # the pause.
        self.client.create(_owned(infrastructure, self.client.create(cluster), controller=False))

    def create_machine(
        self,
        cluster: str,
        name: str,
        *,
        bootstrap: JSON | None = None,
        control_plane: bool = False,
        failure_domain: str = "",
    ) -> None:
        """Create an infrastructure machine and the Machine that owns it.

        ``bootstrap`` defaults to the shared bootstrap data Secret.
        """
        infrastructure = self.objects.machine(cluster, self.namespace, name)
        machine = self._machine(cluster, infrastructure, bootstrap, control_plane)
        if failure_domain:
            machine["spec"]["failureDomain"] = failure_domain
        self.client.create(infrastructure)
        self.client.create(machine)

    def create_paused_machine(self, cluster: str, name: str, annotation: str) -> None:
        """Create a Machine, then its paused infrastructure machine with an owner reference to it.

        ``annotation`` is the pause annotation.  This sets the owner itself: core sets none on
        paused objects, and a manager would ignore an unowned object whether or not it is paused.
        """
        infrastructure = self.objects.machine(cluster, self.namespace, name)
        machine = self.client.create(self._machine(cluster, infrastructure, None, False))
        _annotate(infrastructure, {annotation: "true"})
        self.client.create(_owned(infrastructure, machine, controller=True))

    def create_pool(
        self, kind: str, cluster: str, name: str, replicas: int, *, bootstrap: JSON | None = None
    ) -> None:
        """Create an infrastructure machine pool and the MachinePool that owns it.

        ``bootstrap`` defaults to the shared bootstrap data Secret.
        """
        infrastructure = self.objects.pool(kind, cluster, self.namespace, name)
        data = bootstrap if bootstrap is not None else {"dataSecretName": SECRET}
        self.client.create(infrastructure)
        self.client.create(self.core.machine_pool(cluster, infrastructure, data, replicas))

    def create_paused_pool(self, kind: str, cluster: str, name: str, annotation: str) -> None:
        """Create a MachinePool, then its paused infrastructure pool with an owner reference to it.

        ``annotation`` is the pause annotation.
        """
        infrastructure = self.objects.pool(kind, cluster, self.namespace, name)
        data = {"dataSecretName": SECRET}
        pool = self.client.create(self.core.machine_pool(cluster, infrastructure, data, 1))
        _annotate(infrastructure, {annotation: "true"})
        self.client.create(_owned(infrastructure, pool, controller=True))

    def provide_data(self, machine: JSON, client: KubeClient | None = None) -> None:
        """Set bootstrap data on a Machine or MachinePool that has no bootstrap configuration."""
        # In a merge patch, null removes the reference, which core would prefer to the Secret.
        spec: JSON = {"bootstrap": {"configRef": None, "dataSecretName": SECRET}}
        if machine["kind"] == "MachinePool":
            spec = {"template": {"spec": spec}}
        (client or self.client).patch(machine, {"spec": spec})

    def wait_provisioned(self, kind: str, name: str) -> JSON:
        """Wait until an infrastructure object is provisioned, and return it.

        Raises Violated on a timeout.
        """
        return self.wait(
            kind,
            name,
            lambda obj: is_provisioned(obj, self.contract),
            "it never became provisioned",
            provisioned_path(self.contract),
        )

    def _cluster(self, name: str, infrastructure: JSON) -> JSON:
        """Return a Cluster, with an endpoint if its infrastructure does not provide one."""
        cluster = self.core.cluster(name, infrastructure)
        # Core reports a Cluster as provisioned only if it has an endpoint, from any source.
        if not self.provides_endpoint:
            cluster["spec"]["controlPlaneEndpoint"] = _ENDPOINT
        return cluster

    def _machine(
        self, cluster: str, infrastructure: JSON, bootstrap: JSON | None, control_plane: bool
    ) -> JSON:
        data = bootstrap if bootstrap is not None else {"dataSecretName": SECRET}
        return self.core.machine(cluster, infrastructure, data, control_plane=control_plane)

    def _prepare(self, cluster: str) -> None:
        """Create the Secrets of a cluster early: core retries a failed connection after 30 s."""
        if self.kubeconfig:
            data = {"value": self.kubeconfig}
            secret = self._secret(f"{cluster}-kubeconfig", data)
            secret["metadata"]["labels"] = {CLUSTER_NAME: cluster}
            self.client.apply(secret)
        for each in self.objects.others(cluster, self.namespace):
            self.apply(each)

    def _secret(self, name: str, data: Mapping[str, str]) -> JSON:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": f"{CLUSTER_NAME.partition('/')[0]}/secret",
            "metadata": {"name": name, "namespace": self.namespace},
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
        }


def _annotate(obj: JSON, annotations: Mapping[str, str] | None) -> None:
    known = obj["metadata"].get("annotations") or {}
    if annotations:
        obj["metadata"]["annotations"] = {**known, **annotations}


def _owned(obj: JSON, owner: JSON, *, controller: bool) -> JSON:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **({"controller": True} if controller else {}),
    }
    # Core sets label and owner together, and managers find an object's cluster by its label.
    labels = obj["metadata"].get("labels") or {}
    cluster = owner["spec"].get("clusterName") or owner["metadata"]["name"]
    metadata = {
        **obj["metadata"],
        "labels": {**labels, CLUSTER_NAME: cluster},
        "ownerReferences": [reference],
    }
    return {**obj, "metadata": metadata}


MISSING_CONFIG = "conformance-missing"
"""Name of a bootstrap configuration that does not exist."""
_CORE_KINDS = (
    "MachineHealthCheck",
    "MachineDeployment",
    "MachineSet",
    "MachinePool",
    "Machine",
    "Cluster",
)


def clean_up(session: Session) -> None:
    """Delete the objects that the run created and its namespace, in every cluster used.

    If a manager does not release an object in time, the object's finalizers are removed.
    """
    clients = [each for each in (session.client, session.moved_to) if each is not None]
    for client in clients:
        _request(session, client)
    # A manager that does not release its objects has already failed a check; cleaning up continues.
    with suppress(TimeoutError):
        eventually(lambda: _all_deleted(session, clients), timeout=session.timing.cleanup)
    for client in clients:
        # Remaining finalizers would keep the namespace, and with it the name for the next run.
        for each in _objects(session, client):
            client.delete(each)
            _change(client, each, {"metadata": {"finalizers": None}})
        delete_namespace(client, session.namespace)


def delete_namespace(client: KubeClient, name: str) -> None:
    """Request the deletion of a namespace. It is not an error if the namespace is missing."""
    client.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def resume_all(session: Session, client: KubeClient) -> None:
    """Unpause all objects, and set bootstrap data where the bootstrap configuration is missing.

    Core may not know the kind of a missing configuration; it would then never delete the Machine or
    MachinePool that refers to it.
    """
    version, namespace = session.core.api_version, session.namespace
    for each in _provider_objects(session, client):
        if PAUSED in (each["metadata"].get("annotations") or {}):
            _change(client, each, {"metadata": {"annotations": {PAUSED: None}}})
    for each in client.list(version, "Cluster", namespace):
        if each["spec"].get("paused"):
            _change(client, each, {"spec": {"paused": False}})
    kinds = ("MachinePool", "Machine")
    for each in (obj for kind in kinds for obj in client.list(version, kind, namespace)):
        spec = each["spec"].get("template", each)["spec"]
        reference = spec["bootstrap"].get("configRef") or {}
        if reference.get("name") == MISSING_CONFIG:
            with suppress(StaleError):
                session.provide_data(each, client)


def _request(session: Session, client: KubeClient) -> None:
    """Request the deletion of all Clusters and of all objects without an owner."""
    resume_all(session, client)
    for each in client.list(session.core.api_version, "Cluster", session.namespace):
        client.delete(each)
    for each in _provider_objects(session, client):
        if not each["metadata"].get("ownerReferences"):
            client.delete(each)


def _all_deleted(session: Session, clients: Iterable[KubeClient]) -> bool:
    found = [each for client in clients for each in _objects(session, client)]
    if found:
        raise NotYet(f"still present: {[each['metadata']['name'] for each in found]}")
    return True


def _objects(session: Session, client: KubeClient) -> list[JSON]:
    version, namespace = session.core.api_version, session.namespace
    core = [each for kind in _CORE_KINDS for each in client.list(version, kind, namespace)]
    return [*_provider_objects(session, client), *core]


def _provider_objects(session: Session, client: KubeClient) -> list[JSON]:
    kinds = session.provider_kinds()
    return [each for kind in kinds for each in client.list(*kind, session.namespace)]


def _change(client: KubeClient, obj: JSON, body: JSON) -> None:
    with suppress(StaleError):
        client.patch(obj, body)


def make_node(name: str, id: str) -> JSON:
    """Return a Node called ``name`` with the provider ID ``id``."""
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"providerID": id}}


def register_node(client: KubeClient, obj: JSON) -> None:
    """Create a Node unless it already exists.

    Raises ApiError if the request fails for another reason.
    """
    try:
        client.create(obj)
    except ApiError as error:
        if error.status != _CONFLICT:
            raise


def report_node_ready(client: KubeClient, obj: JSON) -> None:
    """Report a Node as healthy, as a kubelet does every few seconds."""
    client.patch(obj, {"status": {"conditions": build_healthy_conditions()}}, "status")
