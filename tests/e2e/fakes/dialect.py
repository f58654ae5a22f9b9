"""What the two contract versions spell differently, in one place."""

from __future__ import annotations

from dataclasses import dataclass

from capsmith.clusters.processes.kube import JSON, KubeClient
from tests.e2e.harness.contract import ContractVersion

from .manifests import BOOTSTRAP_API, CONTROL_PLANE_API

CORE_GROUP = "cluster.x-k8s.io"
CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
PAUSED = "cluster.x-k8s.io/paused"


@dataclass(frozen=True)
class Dialect:
    """Reads and writes core's objects in the API version that matches a contract."""

    contract: ContractVersion

    @property
    def core(self) -> str:
        """API version of Cluster, Machine and their kin."""
        return f"{CORE_GROUP}/{self.contract}"

    @property
    def kinds_of_bootstrap(self) -> set[tuple[str, str]]:
        """API version and kind of what the helper bootstrap provider depends on."""
        return {(BOOTSTRAP_API, "FakeConfig"), (self.core, "Cluster"), (self.core, "MachinePool")}

    @property
    def kinds_of_control_plane(self) -> set[tuple[str, str]]:
        """API version and kind of what the helper control plane provider depends on."""
        own = (CONTROL_PLANE_API, "FakeControlPlane")
        return {own, (self.core, "Cluster"), (self.core, "Machine")}

    def reference(self, obj: JSON) -> JSON:
        """A reference as core's specs have it."""
        name = obj["metadata"]["name"]
        if self.contract == "v1beta2":
            group = obj["apiVersion"].partition("/")[0]
            return {"apiGroup": group, "kind": obj["kind"], "name": name}
        return {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": name,
            "namespace": obj["metadata"]["namespace"],
        }

    def resolve(self, client: KubeClient, reference: JSON) -> tuple[str, str, str]:
        """API version, kind and name that a reference means."""
        version = reference.get("apiVersion") or client.preferred_version(reference["apiGroup"])
        return version, reference["kind"], reference["name"]

    def machine_infrastructure(self, control_plane: JSON) -> JSON:
        """The reference to the machine template inside a control plane object."""
        template: JSON = control_plane["spec"]["machineTemplate"]
        # Templates of an older contract keep their shape whatever the core.
        holder: JSON = template.get("spec", template)
        reference: JSON = holder["infrastructureRef"]
        return reference

    def infrastructure_provisioned(self, cluster: JSON) -> bool:
        status = cluster.get("status", {})
        if self.contract == "v1beta2":
            return bool(status.get("initialization", {}).get("infrastructureProvisioned"))
        return bool(status.get("infrastructureReady"))

    def control_plane_zones(self, cluster: JSON) -> list[str]:
        """Names of the failure domains in which control plane machines may be."""
        found = cluster.get("status", {}).get("failureDomains") or []
        if self.contract == "v1beta1":
            found = [{"name": name, **domain} for name, domain in dict(found).items()]
        return sorted(str(each["name"]) for each in found if each.get("controlPlane"))

    def control_plane_initialized(self, cluster: JSON) -> bool:
        status = cluster.get("status", {})
        if self.contract == "v1beta2":
            return bool(status.get("initialization", {}).get("controlPlaneInitialized"))
        conditions = status.get("conditions", [])
        wanted = ("ControlPlaneInitialized", "True")
        return any((each["type"], each["status"]) == wanted for each in conditions)


def is_paused(cluster: JSON, obj: JSON) -> bool:
    """Pausing as every provider has to understand it."""
    annotations = obj["metadata"].get("annotations", {})
    return bool(cluster["spec"].get("paused")) or PAUSED in annotations


def owner(obj: JSON, kind: str) -> JSON | None:
    """The owner reference of that core kind, if any."""
    references = obj["metadata"].get("ownerReferences", [])
    for reference in references:
        group = reference["apiVersion"].partition("/")[0]
        if group == CORE_GROUP and reference["kind"] == kind:
            found: JSON = reference
            return found
    return None


def owner_reference(obj: JSON, *, controller: bool = False) -> JSON:
    """A reference to put into `metadata.ownerReferences` of something that `obj` owns."""
    reference = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
    }
    return {**reference, "controller": True} if controller else reference


def key(obj: JSON) -> tuple[str, str]:
    """Namespace and name."""
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
