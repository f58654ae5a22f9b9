"""The helper control plane provider: Machines for each FakeControlPlane."""

from __future__ import annotations

import base64
from pathlib import Path

from capsmith.clusters.lab.simulated.loop import reconcile_each
from capsmith.clusters.processes.kube import JSON, KubeClient

from .control_plane_machines import (
    HELPER_CONFIG,
    ConfigKind,
    MachineFactory,
    is_outdated,
    name_of_new,
    spread,
)
from .control_plane_status import status_of, up_to_date_condition
from .dialect import CLUSTER_NAME, Dialect, is_paused, key, owner, owner_reference
from .manifests import CONTROL_PLANE_API, CONTROL_PLANE_GROUP

_FINALIZER = f"fakecontrolplane.{CONTROL_PLANE_GROUP}"
_MANAGER = "fake-control-plane"


def kubeconfig_secret(cluster: str, namespace: str, kubeconfig: str) -> JSON:
    """Return the Secret through which core reaches the workload cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "cluster.x-k8s.io/secret",
        "metadata": {
            "name": f"{cluster}-kubeconfig",
            "namespace": namespace,
            "labels": {CLUSTER_NAME: cluster},
        },
        "data": {"value": base64.b64encode(kubeconfig.encode()).decode()},
    }


def ca_key(cluster: str) -> str:
    """Return the private key of a cluster's CA: a text that tests look for."""
    return f"private key of {cluster}"


def ca_secret(cluster: str, namespace: str) -> JSON:
    """Return the Secret in which bootstrap providers look for a cluster's CA."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "cluster.x-k8s.io/secret",
        "metadata": {
            "name": f"{cluster}-ca",
            "namespace": namespace,
            "labels": {CLUSTER_NAME: cluster},
        },
        "stringData": {"tls.crt": f"certificate of {cluster}", "tls.key": ca_key(cluster)},
    }


class ControlPlaneProvider:
    """Level-triggered over all FakeControlPlanes of a management cluster."""

    def __init__(
        self,
        client: KubeClient,
        dialect: Dialect,
        kubeconfig: str,
        log: Path,
        config: ConfigKind = HELPER_CONFIG,
    ) -> None:
        self._client = client
        self._dialect = dialect
        self._kubeconfig = kubeconfig
        self._log = log
        self._factory = MachineFactory(client, dialect, config)

    def tick(self) -> None:
        control_planes = self._client.list(CONTROL_PLANE_API, "FakeControlPlane")
        if not control_planes:
            return
        clusters = {key(each): each for each in self._client.list(self._dialect.core, "Cluster")}
        machines = self._client.list(self._dialect.core, "Machine")

        def reconcile(control_plane: JSON) -> None:
            reference = owner(control_plane, "Cluster")
            if reference is None:
                return
            cluster = clusters.get((control_plane["metadata"]["namespace"], reference["name"]))
            if cluster is not None and not is_paused(cluster, control_plane):
                self._reconcile(control_plane, cluster, _owned(machines, control_plane))

        reconcile_each(self._log, control_planes, reconcile)

    def _reconcile(self, control_plane: JSON, cluster: JSON, machines: list[JSON]) -> None:
        if "deletionTimestamp" in control_plane["metadata"]:
            self._delete(control_plane, machines)
            return
        self._prepare(control_plane, cluster)
        if self._dialect.infrastructure_provisioned(cluster):
            self._scale(control_plane, cluster, machines)
        self._report(control_plane, machines)

    def _delete(self, control_plane: JSON, machines: list[JSON]) -> None:
        for machine in machines:
            if "deletionTimestamp" not in machine["metadata"]:
                self._client.delete(machine)
        if not machines:
            self._set_finalizers(control_plane, _finalizers(control_plane) - {_FINALIZER})

    def _prepare(self, control_plane: JSON, cluster: JSON) -> None:
        finalizers = _finalizers(control_plane)
        if _FINALIZER not in finalizers:
            self._set_finalizers(control_plane, finalizers | {_FINALIZER})
        self._adopt_template(control_plane, cluster)
        name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
        self._own(control_plane, kubeconfig_secret(name, namespace, self._kubeconfig))
        self._own(control_plane, ca_secret(name, namespace))

    def _own(self, control_plane: JSON, wanted: JSON) -> None:
        name, namespace = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
        secret = self._client.find("v1", "Secret", name, namespace)
        if secret is None or not secret["metadata"].get("ownerReferences"):
            reference = owner_reference(control_plane, controller=True)
            wanted["metadata"]["ownerReferences"] = [reference]
            self._client.apply(wanted, _MANAGER)

    def _set_finalizers(self, control_plane: JSON, finalizers: set[str]) -> None:
        self._client.patch(control_plane, {"metadata": {"finalizers": sorted(finalizers)}})

    def _adopt_template(self, control_plane: JSON, cluster: JSON) -> None:
        """Without this the template is neither moved nor collected: core owns only others'."""
        reference = self._dialect.machine_infrastructure(control_plane)
        version, kind, name = self._dialect.resolve(self._client, reference)
        namespace = cluster["metadata"]["namespace"]
        template = self._client.get(version, kind, name, namespace)
        if owner(template, "Cluster") is None:
            body = {
                "apiVersion": version,
                "kind": kind,
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "ownerReferences": [owner_reference(cluster)],
                },
            }
            self._client.apply(body, _MANAGER)

    def _scale(self, control_plane: JSON, cluster: JSON, machines: list[JSON]) -> None:
        """Surge by one while Machines are outdated, and remove those one after another."""
        live = [each for each in machines if "deletionTimestamp" not in each["metadata"]]
        wanted = int(control_plane["spec"].get("replicas", 1))
        reference = self._dialect.machine_infrastructure(control_plane)
        outdated = [each for each in live if is_outdated(each, control_plane, reference)]
        surge = 1 if outdated else 0
        taken = {each["metadata"]["name"] for each in machines}
        zones = self._dialect.control_plane_zones(cluster)
        for zone in spread(zones, live, wanted + surge - len(live)):
            name = name_of_new(control_plane, reference, taken)
            taken.add(name)
            self._factory.create(name, control_plane, cluster, reference, zone)
        if outdated:
            current = [each for each in live if each not in outdated]
            settled = len(current) >= 1 and all(_has_node(each) for each in current)
            if settled and len(live) > wanted:
                self._client.delete(outdated[0])
        else:
            for machine in live[wanted:]:
                self._client.delete(machine)

    def _report(self, control_plane: JSON, machines: list[JSON]) -> None:
        reference = self._dialect.machine_infrastructure(control_plane)
        status = status_of(self._dialect, control_plane, reference, machines)
        if status != control_plane.get("status"):
            self._client.patch(control_plane, {"status": status}, "status")
        if self._dialect.contract != "v1beta2":
            return
        for machine in machines:
            condition = up_to_date_condition(machine, control_plane, reference)
            if condition is not None:
                body = {
                    "apiVersion": machine["apiVersion"],
                    "kind": machine["kind"],
                    "metadata": {name: machine["metadata"][name] for name in ("name", "namespace")},
                    "status": {"conditions": [condition]},
                }
                self._client.apply(body, _MANAGER, "status")


def _owned(machines: list[JSON], control_plane: JSON) -> list[JSON]:
    uid = control_plane["metadata"]["uid"]
    return [
        machine
        for machine in machines
        if any(each["uid"] == uid for each in machine["metadata"].get("ownerReferences", []))
    ]


def _finalizers(control_plane: JSON) -> set[str]:
    return set(control_plane["metadata"].get("finalizers", []))


def _has_node(machine: JSON) -> bool:
    return "nodeRef" in machine.get("status", {})
