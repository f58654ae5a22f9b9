"""One run against one provider: a namespace, the history of its objects, and what creates them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from capsmith.behaviour.contract import CoreObjects, is_provisioned, provisioned_path
from capsmith.behaviour.history import History, WatchedKind
from capsmith.behaviour.model import Skipped, Timing, Violated
from capsmith.behaviour.objects import CLUSTER_NAME, ProviderObjects
from capsmith.errors import Refused
from capsmith.management.kube import JSON, KubeClient, StaleError

SECRET = "conformance-data"
"""The Secret with bootstrap data, which all Machines share."""
MISSING_CONFIG = "conformance-missing"
"""The name of a bootstrap configuration that does not exist."""
_DATA = "#cloud-config\n{}\n"


class Manager(Protocol):
    """The provider's manager, if this run started it."""

    def kill(self) -> None:
        """End the process as a crash would."""

    def start(self) -> None:
        """Start the process again and wait until it is ready."""


class Mover(Protocol):
    """A second management cluster with its own manager."""

    def move(self, namespace: str) -> KubeClient:
        """Move the clusters of a namespace there, and return its client."""


@dataclass
class Session:
    """What the checks of a run share."""

    client: KubeClient
    core: CoreObjects
    objects: ProviderObjects
    contract: str
    timing: Timing
    manager: Manager | None = None
    mover: Mover | None = None
    kubeconfig: str = ""
    """Of a workload cluster on which Nodes may be created; empty without one."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why a shared object could not be created, by its step."""
    _done: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        kinds = [
            WatchedKind(self.objects.cluster_version, self.objects.cluster_kind),
            WatchedKind(self.objects.machine_version, self.objects.machine_kind),
            WatchedKind(self.core.api_version, "Machine"),
            WatchedKind(self.core.api_version, "Cluster"),
        ]
        self.history = History(self.client, self.namespace, kinds)

    @property
    def namespace(self) -> str:
        """The namespace of all objects of the run."""
        return self.core.namespace

    def create_namespace(self) -> None:
        """Create the namespace; raises Refused if it exists, because the run deletes it."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        try:
            self.client.create(namespace)
        except StaleError as error:
            raise Refused(
                "conformance-namespace",
                f"namespace {self.namespace} exists already",
                hint="Wait for the end of the other run, or delete what it left.",
            ) from error

    def start(self) -> None:
        """Create the bootstrap data, and start to record."""
        self.client.apply(self._secret(SECRET, {"value": _DATA, "format": "cloud-config"}))
        self.history.start()

    def once(self, step: str, create: Callable[[], None]) -> None:
        """Run a step that several checks need once; raises Skipped if it failed before."""
        if step in self.failures:
            raise Skipped(f"{step} failed before: {self.failures[step]}")
        if step in self._done:
            return
        try:
            create()
        except Violated as error:
            self.failures[step] = str(error)
            raise
        self._done.add(step)

    def create_cluster(self, name: str, annotations: Mapping[str, str] | None = None) -> None:
        """Create an infrastructure cluster and its Cluster."""
        self._prepare(name)
        infrastructure = self.objects.cluster(name, self.namespace)
        _annotate(infrastructure, annotations)
        self.client.create(infrastructure)
        self.client.create(self.core.cluster(name, infrastructure))

    def create_paused_cluster(self, name: str) -> None:
        """Create a paused Cluster, then its infrastructure cluster with the owner reference."""
        self._prepare(name)
        infrastructure = self.objects.cluster(name, self.namespace)
        cluster = self.core.cluster(name, infrastructure)
        cluster["spec"]["paused"] = True
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
        """Create an infrastructure machine and its Machine, with bootstrap data by default."""
        infrastructure = self.objects.machine(cluster, self.namespace, name)
        machine = self._machine(cluster, infrastructure, bootstrap, control_plane)
        if failure_domain:
            machine["spec"]["failureDomain"] = failure_domain
        self.client.create(infrastructure)
        self.client.create(machine)

    def create_paused_machine(self, cluster: str, name: str, annotation: str) -> None:
        """Create a Machine, then its paused infrastructure machine with the owner reference.

        Core sets no owner of a paused object, and without an owner it is left alone anyway.
        """
        infrastructure = self.objects.machine(cluster, self.namespace, name)
        machine = self.client.create(self._machine(cluster, infrastructure, None, False))
        _annotate(infrastructure, {annotation: "true"})
        self.client.create(_owned(infrastructure, machine, controller=True))

    def provide_data(self, machine: JSON) -> None:
        """Replace a Machine's reference to a bootstrap configuration by bootstrap data."""
        data = {"configRef": None, "dataSecretName": SECRET}
        self.client.patch(machine, {"spec": {"bootstrap": data}})

    def wait(
        self, kind: str, name: str, probe: Callable[[JSON], bool], what: str, path: str = ""
    ) -> JSON:
        """Wait until a probe of an object's latest state is true, and return that state.

        Raises Violated with the object's conditions on a timeout.
        """

        def found() -> JSON | None:
            obj = self.history.latest(kind, name)
            return obj if obj is not None and probe(obj) else None

        seconds = self.patience(name, what)
        obj = self.history.wait(found, seconds)
        if obj is None:
            raise Violated(
                f"{what}: not within {seconds:g} s{self._state(kind, name)}",
                self.subject(kind, name),
                path,
            )
        return obj

    def wait_provisioned(self, kind: str, name: str) -> JSON:
        """Wait until an infrastructure object is complete."""
        return self.wait(
            kind,
            name,
            lambda obj: is_provisioned(obj, self.contract),
            "it never became provisioned",
            provisioned_path(self.contract),
        )

    def wait_deleted(self, kind: str, name: str, what: str) -> None:
        """Wait until an object does not exist; raises Violated on a timeout."""
        seconds = self.patience(name, what)
        if not self.history.wait(lambda: self.history.latest(kind, name) is None, seconds):
            raise Violated(
                f"{what}: not within {seconds:g} s{self._state(kind, name)}",
                self.subject(kind, name),
                "metadata.finalizers",
            )

    def patience(self, name: str, what: str) -> float:
        """Return the seconds to wait for a state of an object; ``what`` reports its absence."""
        return self.timing.patience

    def stays(self, probe: Callable[[], bool]) -> bool:
        """Return whether a probe of the history stays true for the quiet time."""
        return not self.history.wait(lambda: not probe(), self.timing.quiet)

    def settle(self) -> None:
        """Give the manager the quiet time for what it must not do."""
        self.stays(lambda: True)

    def latest(self, kind: str, name: str) -> JSON:
        """Return the latest state of an object; raises Violated if it does not exist."""
        obj = self.history.latest(kind, name)
        if obj is None:
            raise Violated("it was deleted", self.subject(kind, name))
        return obj

    def subject(self, kind: str, name: str) -> str:
        """Return kind, namespace and name for a report."""
        return f"{kind} {self.namespace}/{name}"

    def _machine(
        self, cluster: str, infrastructure: JSON, bootstrap: JSON | None, control_plane: bool
    ) -> JSON:
        data = bootstrap if bootstrap is not None else {"dataSecretName": SECRET}
        return self.core.machine(cluster, infrastructure, data, control_plane=control_plane)

    def _prepare(self, cluster: str) -> None:
        """Create the Secrets of a cluster; core repeats a failed connection only after 30 s."""
        if self.kubeconfig:
            data = {"value": self.kubeconfig}
            secret = self._secret(f"{cluster}-kubeconfig", data)
            secret["metadata"]["labels"] = {CLUSTER_NAME: cluster}
            self.client.apply(secret)
        for each in self.objects.others(cluster, self.namespace):
            self.client.apply(each)

    def _secret(self, name: str, data: Mapping[str, str]) -> JSON:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": f"{CLUSTER_NAME.partition('/')[0]}/secret",
            "metadata": {"name": name, "namespace": self.namespace},
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
        }

    def _state(self, kind: str, name: str) -> str:
        """Return the conditions and finalizers of an object, for the report of a timeout."""
        obj = self.history.latest(kind, name)
        if obj is None:
            return "; it does not exist"
        conditions = (obj.get("status") or {}).get("conditions") or []
        shown = [
            f"{each.get('type')}={each.get('status')} {each.get('reason', '')}:"
            f" {each.get('message', '')}".rstrip(": ")
            for each in conditions
        ]
        finalizers = obj["metadata"].get("finalizers") or []
        return "".join(f"\n{line}" for line in [*shown, f"finalizers: {finalizers}"])


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
    labels = obj["metadata"].get("labels") or {}
    cluster = owner["spec"].get("clusterName") or owner["metadata"]["name"]
    metadata = {
        **obj["metadata"],
        "labels": {**labels, CLUSTER_NAME: cluster},
        "ownerReferences": [reference],
    }
    return {**obj, "metadata": metadata}
