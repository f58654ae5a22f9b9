"""Read the objects of a cluster from the management cluster."""

from __future__ import annotations

from contextlib import suppress

from capsmith.clusters.lab.objects import CLUSTER_NAME, Cluster, MachineObjects
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient

_GROUP = "cluster.x-k8s.io"
_KUBEADM = "KubeadmConfig"


def observe(client: KubeClient, namespace: str, name: str) -> Cluster:
    """Return a Cluster with what belongs to it; objects that do not exist yet are left out."""
    core = client.preferred_version(_GROUP)
    cluster = client.find(core, "Cluster", name, namespace)
    if cluster is None:
        return Cluster(None)
    spec, labels = cluster["spec"], {CLUSTER_NAME: name}
    machines = client.list(core, "Machine", namespace, labels)
    machines.sort(key=lambda each: str(each["metadata"]["name"]))
    return Cluster(
        cluster=cluster,
        infrastructure=_referenced(client, spec.get("infrastructureRef"), namespace),
        control_plane=_referenced(client, spec.get("controlPlaneRef"), namespace),
        deployments=tuple(client.list(core, "MachineDeployment", namespace, labels)),
        machines=tuple(_machine(client, each, namespace) for each in machines),
    )


def _machine(client: KubeClient, machine: JSON, namespace: str) -> MachineObjects:
    spec = machine["spec"]
    configuration = (spec.get("bootstrap") or {}).get("configRef") or {}
    if configuration.get("kind") == _KUBEADM:
        configuration = {}
    return MachineObjects(
        machine=machine,
        infrastructure=_referenced(client, spec.get("infrastructureRef"), namespace),
        bootstrap=_referenced(client, configuration, namespace),
    )


def _referenced(client: KubeClient, reference: JSON | None, namespace: str) -> JSON | None:
    if not reference or not reference.get("name"):
        return None
    try:
        version = reference.get("apiVersion") or _version(client, reference)
        return client.find(version, reference["kind"], reference["name"], namespace)
    except (ApiError, LookupError):
        return None


def _version(client: KubeClient, reference: JSON) -> str:
    """Return a version of the group that has the kind: providers may share a group."""
    group = client.request("GET", f"/apis/{reference['apiGroup']}")
    for each in group["versions"]:
        with suppress(LookupError):
            return client.resolve(each["groupVersion"], reference["kind"]).api_version
    raise LookupError(f"no version of {reference['apiGroup']} has the kind {reference['kind']}")
