"""Read and write contract fields of objects in either contract version. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.objects import CLUSTER_NAME, CONTROL_PLANE, CORE_GROUP

PAUSED = f"{CORE_GROUP}/paused"
MANAGED_BY = f"{CORE_GROUP}/managed-by"
V1BETA1 = "v1beta1"


@dataclass(frozen=True)
class CoreObjects:
    """Factory for core's objects, in the API version that core serves."""

    version: str
    """API version for objects of core's kinds, such as `v1beta2`."""
    namespace: str
    kubernetes: str
    """Kubernetes version for Machines, such as ``v1.36.4``."""

    @property
    def api_version(self) -> str:
        """Return the ``apiVersion`` of Cluster and Machine, including the group."""
        return f"{CORE_GROUP}/{self.version}"

    def cluster(self, name: str, infrastructure: JSON) -> JSON:
        """Return a Cluster without a reference to a control plane provider."""
        return {
            "apiVersion": self.api_version,
            "kind": "Cluster",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
                "infrastructureRef": self.reference(infrastructure),
            },
        }

    def machine(
        self, cluster: str, infrastructure: JSON, bootstrap: JSON, *, control_plane: bool
    ) -> JSON:
        """Return a Machine for an infrastructure machine of the same name."""
        labels = {CLUSTER_NAME: cluster, **({CONTROL_PLANE: ""} if control_plane else {})}
        return {
            "apiVersion": self.api_version,
            "kind": "Machine",
            "metadata": {
                "name": infrastructure["metadata"]["name"],
                "namespace": self.namespace,
                "labels": labels,
            },
            "spec": {
                "clusterName": cluster,
                "version": self.kubernetes,
                "bootstrap": bootstrap,
                "infrastructureRef": self.reference(infrastructure),
            },
        }

    def deployment(self, cluster: str, name: str, template: JSON, secret: str) -> JSON:
        """Return a MachineDeployment with one replica.

        ``template`` is the machine template; ``secret`` names the Secret with bootstrap data.
        """
        labels = {CLUSTER_NAME: cluster, f"{CORE_GROUP}/deployment-name": name}
        return {
            "apiVersion": self.api_version,
            "kind": "MachineDeployment",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
            "spec": {
                "clusterName": cluster,
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "clusterName": cluster,
                        "version": self.kubernetes,
                        "bootstrap": {"dataSecretName": secret},
                        "infrastructureRef": self.reference(template),
                    },
                },
            },
        }

    def machine_pool(
        self, cluster: str, infrastructure: JSON, bootstrap: JSON, replicas: int
    ) -> JSON:
        """Return a MachinePool for an infrastructure machine pool of the same name."""
        return {
            "apiVersion": self.api_version,
            "kind": "MachinePool",
            "metadata": {
                "name": infrastructure["metadata"]["name"],
                "namespace": self.namespace,
                "labels": {CLUSTER_NAME: cluster},
            },
            "spec": {
                "clusterName": cluster,
                "replicas": replicas,
                "template": {
                    "spec": {
                        "clusterName": cluster,
                        "version": self.kubernetes,
                        "bootstrap": bootstrap,
                        "infrastructureRef": self.reference(infrastructure),
                    }
                },
            },
        }

    def health_check(self, cluster: str, name: str) -> JSON:
        """Return a MachineHealthCheck for the Machines of the MachineDeployment called ``name``."""
        conditions = [{"type": "Ready", "status": "Unknown"}]
        if self.version == V1BETA1:
            checks: JSON = {"unhealthyConditions": [{**conditions[0], "timeout": "300s"}]}
        else:
            nodes = [{**conditions[0], "timeoutSeconds": 300}]
            checks = {"checks": {"unhealthyNodeConditions": nodes}}
        return {
            "apiVersion": self.api_version,
            "kind": "MachineHealthCheck",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "clusterName": cluster,
                "selector": {"matchLabels": {f"{CORE_GROUP}/deployment-name": name}},
                **checks,
            },
        }

    def reference(self, obj: JSON) -> JSON:
        """Return a reference to a provider's object."""
        name = obj["metadata"]["name"]
        if self.version == V1BETA1:
            return {
                "apiVersion": obj["apiVersion"],
                "kind": obj["kind"],
                "name": name,
                "namespace": self.namespace,
            }
        group = obj["apiVersion"].partition("/")[0]
        return {"apiGroup": group, "kind": obj["kind"], "name": name}


def is_provisioned(obj: JSON, contract: str) -> bool:
    """Return whether an infrastructure object reports that it is provisioned."""
    status = obj.get("status") or {}
    if contract == V1BETA1:
        return bool(status.get("ready"))
    return bool((status.get("initialization") or {}).get("provisioned"))


def provisioned_path(contract: str) -> str:
    """Return the path to the field that :func:`is_provisioned` reads."""
    return "status.ready" if contract == V1BETA1 else "status.initialization.provisioned"


def is_pool_provisioned(obj: JSON) -> bool:
    """Return whether a machine pool reports that it is provisioned.

    The field is the same in both contract versions.
    """
    return bool((obj.get("status") or {}).get("ready"))


def provider_id(obj: JSON) -> str:
    """Return the provider ID of an infrastructure machine, or an empty string if it is not set."""
    return str((obj.get("spec") or {}).get("providerID") or "")


def provider_ids(obj: JSON) -> list[str]:
    """Return a pool's provider IDs in the order in which the pool lists them."""
    return [str(each) for each in (obj.get("spec") or {}).get("providerIDList") or []]


def endpoint(obj: JSON) -> JSON:
    """Return an infrastructure cluster's endpoint; empty unless both host and port are set."""
    found: JSON = (obj.get("spec") or {}).get("controlPlaneEndpoint") or {}
    return found if found.get("host") and found.get("port") else {}


def find_condition(obj: JSON, kind: str) -> JSON | None:
    """Return the condition of type ``kind``, or None if there is none.

    Both contract versions' condition fields are read, the newer one first.
    """
    status = obj.get("status") or {}
    # A provider that moves from v1beta1 to v1beta2 has its new conditions here until the old ones
    # are dropped.
    later = (status.get("v1beta2") or {}).get("conditions") or []
    for each in (*later, *(status.get("conditions") or [])):
        if each.get("type") == kind:
            return dict(each)
    return None


def find_effects(obj: JSON, contract: str, before: JSON) -> list[str]:
    """Return the field paths of external effects that ``obj`` shows and ``before`` does not."""
    found = []
    if is_provisioned(obj, contract):
        found.append(provisioned_path(contract))
    # Compared with the first state, because a template or a test may set these fields from the
    # start.
    if provider_id(obj) and not provider_id(before):
        found.append("spec.providerID")
    if endpoint(obj) and endpoint(obj) != endpoint(before):
        found.append("spec.controlPlaneEndpoint")
    if provider_ids(obj) and not provider_ids(before):
        found.append("spec.providerIDList")
    status = obj.get("status") or {}
    found += [f"status.{name}" for name in ("addresses", "failureDomains") if status.get(name)]
    return found


def subject(obj: JSON) -> str:
    """Return an object's name for reports, such as ``Cluster conformance-1/main``."""
    metadata = obj["metadata"]
    return f"{obj['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def failure_domains(obj: JSON) -> list[str]:
    """Return the names of the failure domains in an object's status."""
    domains: Any = (obj.get("status") or {}).get("failureDomains") or []
    return sorted(domains) if isinstance(domains, dict) else sorted(d["name"] for d in domains)
