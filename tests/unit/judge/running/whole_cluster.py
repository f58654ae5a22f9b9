"""A whole cluster in memory, with control plane and bootstrap data: complete, but for one fault."""

from __future__ import annotations

import base64
from collections.abc import Callable

import yaml

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.cluster_session import OWNERLESS_CONFIG, WHOLE, ClusterSession
from capsmith.judge.running.contract import CoreObjects
from capsmith.judge.running.objects import select_provider_objects
from tests.unit.judge.running.infrastructure import ROLES, documents
from tests.unit.judge.running.memory import (
    AT_ONCE,
    NAMESPACE,
    Memory,
    MemoryClient,
    begin,
    condition,
    is_paused,
    owned,
    with_condition,
)

CORE = "cluster.x-k8s.io/v1beta2"
_BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta1"
_CONTROL_PLANE = "controlplane.cluster.x-k8s.io/v1beta1"
_SECRET = "cluster.x-k8s.io/secret"
_MEMBER, _WORKER = "control-0", "worker-0"
_LABELS = {"cluster.x-k8s.io/cluster-name": WHOLE}

Edit = Callable[[JSON], object]


def templates() -> list[JSON]:
    """Return the documents of the cluster template."""
    metadata: JSON = {"name": "workers"}
    config = {"apiVersion": _BOOTSTRAP, "kind": "BoxConfigTemplate", "metadata": metadata}
    deployment = {"apiVersion": CORE, "kind": "MachineDeployment", "metadata": metadata}
    control_plane = {"apiVersion": _CONTROL_PLANE, "kind": "BoxControlPlane"}
    return [
        {**config, "spec": {"template": {"spec": {}}}},
        {**deployment, "spec": {"replicas": 1}},
        {**control_plane, "metadata": {"name": "control"}, "spec": {"replicas": 1}},
    ]


class Site:
    """The objects of a cluster that is complete."""

    def __init__(self, edits: dict[str, Edit]) -> None:
        """Store them; ``edits`` change an object, by kind and name, before it is stored."""
        self.memory = Memory()
        self._edits = edits
        self._owners: dict[tuple[str, str], tuple[str, str]] = {}
        """Kind and name of the owner of Machines and Secrets, by kind and name of these."""
        cluster = self._add(CORE, "Cluster", WHOLE, {})
        self._add_control_plane(cluster)
        for name in (_MEMBER, _WORKER):
            self._add_machine(name)

    def follow_pauses(self) -> None:
        """Report pauses, as a controller; let a Cluster that is deleted end with all it has."""
        for kind in ("BoxControlPlane", "BoxConfig"):
            for obj in self.memory.all(kind):
                if obj["metadata"]["name"] != OWNERLESS_CONFIG:
                    paused = condition("Paused", str(is_paused(self.memory, obj, None)))
                    status = {**obj["status"], "conditions": with_condition(obj, paused)}
                    self.memory.write({**obj, "status": status})

    def restore_owners(self) -> None:
        """Restore the owner references of Machines and Secrets, unless their owner is paused."""
        for kind in ("Machine", "Secret"):
            for obj in self.memory.all(kind):
                owner = self._owners.get((kind, obj["metadata"]["name"]))
                found = self.memory.find(*owner) if owner is not None else None
                if found is None or obj["metadata"].get("ownerReferences"):
                    continue
                if not is_paused(self.memory, found, None):
                    references = [owned(found, controller=True)]
                    metadata = {**obj["metadata"], "ownerReferences": references}
                    self.memory.write({**obj, "metadata": metadata})

    def end_with_cluster(self) -> None:
        """Delete what belongs to the Cluster after the Cluster is gone."""
        if self.memory.find("Cluster", WHOLE) is None:
            for kind in ("Machine", "BoxConfig", "BoxControlPlane"):
                for obj in self.memory.all(kind):
                    if obj["metadata"]["name"] != OWNERLESS_CONFIG:
                        self.memory.delete((kind, NAMESPACE, obj["metadata"]["name"]))

    def _add(self, version: str, kind: str, name: str, spec: JSON, **more: JSON | str) -> JSON:
        metadata: JSON = {"name": name, "namespace": NAMESPACE, "labels": dict(_LABELS)}
        obj: JSON = {
            "apiVersion": version,
            "kind": kind,
            "metadata": metadata,
            "spec": spec,
            **more,
        }
        edit = self._edits.get(kind) or self._edits.get(f"{kind}/{name}")
        if edit is not None:
            edit(obj)
        return self.memory.write(obj)

    def _add_control_plane(self, cluster: JSON) -> None:
        names = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
        status: JSON = {
            **dict.fromkeys(names, 1),
            "version": "v1.36.0",
            "selector": "a=b",
            "initialization": {"controlPlaneInitialized": True},
            "conditions": [condition("Available", "True")],
        }
        spec = {"replicas": 1, "version": "v1.36.0"}
        kind = "BoxControlPlane"
        made = self._add(_CONTROL_PLANE, kind, "control", spec, status=status)
        users = [{"name": "admin", "user": {"token": "secret"}}]
        text = yaml.safe_dump({"users": users})
        self._add_secret(f"{WHOLE}-kubeconfig", made, {"value": text})

    def _add_secret(self, name: str, owner: JSON, data: dict[str, str]) -> None:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        metadata: JSON = {
            "name": name,
            "namespace": NAMESPACE,
            "labels": dict(_LABELS),
            "ownerReferences": [owned(owner, controller=True)],
        }
        secret = {"apiVersion": "v1", "kind": "Secret", "type": _SECRET, "metadata": metadata}
        obj: JSON = {**secret, "data": encoded}
        edit = self._edits.get(f"Secret/{name}")
        if edit is not None:
            edit(obj)
        self.memory.write(obj)
        self._owners["Secret", name] = owner["kind"], owner["metadata"]["name"]

    def _add_machine(self, name: str) -> None:
        data = f"{name}-data"
        status: JSON = {
            "dataSecretName": data,
            "initialization": {"dataSecretCreated": True},
            "conditions": [condition("Ready", "True")],
        }
        config = self._add(_BOOTSTRAP, "BoxConfig", name, {}, status=status)
        text = "#cloud-config\nruncmd: [touch /run/cluster-api/bootstrap-success.complete]\n"
        self._add_secret(data, config, {"value": text, "format": "cloud-config"})
        spec: JSON = {
            "clusterName": WHOLE,
            "version": "v1.36.0",
            "bootstrap": {"configRef": {"kind": "BoxConfig", "name": name}, "dataSecretName": data},
            "infrastructureRef": {"kind": "BoxMachine", "name": name},
        }
        metadata: JSON = {"name": name, "namespace": NAMESPACE, "labels": dict(_LABELS)}
        if name == _MEMBER:
            labels = {"control-plane": "", "control-plane-name": "control"}
            metadata["labels"] |= {f"cluster.x-k8s.io/{key}": each for key, each in labels.items()}
            control_plane = self.memory.find("BoxControlPlane", "control")
            assert control_plane is not None
            metadata["ownerReferences"] = [owned(control_plane, controller=True)]
            self._owners["Machine", name] = "BoxControlPlane", "control"
        machine: JSON = {"apiVersion": CORE, "kind": "Machine", "metadata": metadata, "spec": spec}
        edit = self._edits.get(f"Machine/{name}")
        if edit is not None:
            edit(machine)
        self.memory.write(machine)


def open_session(
    edits: dict[str, Edit] | None = None, *, reacts: bool = True, restores: bool = True
) -> tuple[ClusterSession, Memory]:
    """Return a session that has taken over the cluster.

    Without ``reacts`` no controller runs, without ``restores`` none that restores owners.
    """
    site = Site(edits or {})
    if reacts:
        site.memory.controllers += [site.follow_pauses, site.end_with_cluster]
        if restores:
            site.memory.controllers.append(site.restore_owners)
    session = ClusterSession(
        MemoryClient(site.memory),
        CoreObjects("v1beta2", NAMESPACE, "v1.36.0"),
        "v1beta2",
        AT_ONCE,
        select_provider_objects(documents(), ROLES),
        documents=tuple(templates()),
        roles={"BoxConfigTemplate": "BootstrapConfigTemplate", "BoxControlPlane": "ControlPlane"},
    )
    begin(session, site.memory)
    session.take_over()
    return session, site.memory
