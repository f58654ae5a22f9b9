"""The differences between the two contract versions, in one place."""

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
        """Return the API version of Cluster, Machine and core's other kinds."""
        return f"{CORE_GROUP}/{self.contract}"

    @property
    def kinds_of_bootstrap(self) -> set[tuple[str, str]]:
        """Return API versions and kinds that the helper bootstrap provider depends on."""
        return {(BOOTSTRAP_API, "FakeConfig"), (self.core, "Cluster"), (self.core, "MachinePool")}

    @property
    def kinds_of_control_plane(self) -> set[tuple[str, str]]:
        """Return API versions and kinds that the helper control plane provider depends on."""
        own = (CONTROL_PLANE_API, "FakeControlPlane")
        return {own, (self.core, "Cluster"), (self.core, "Machine")}

    def reference(self, obj: JSON) -> JSON:
        """Return a reference to an object in the format of core's specs."""
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
        """Return the API version, kind and name to which a reference points."""
        version = reference.get("apiVersion") or client.preferred_version(reference["apiGroup"])
        return version, reference["kind"], reference["name"]

    def machine_infrastructure(self, control_plane: JSON) -> JSON:
        """Return a control plane's reference to its machine template."""
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
        """Return the names of the failure domains for control plane machines."""
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
    """Return whether every provider must leave the object alone."""
    annotations = obj["metadata"].get("annotations", {})
    return bool(cluster["spec"].get("paused")) or PAUSED in annotations


def owner(obj: JSON, kind: str) -> JSON | None:
    """Return the owner reference to a core kind; None if there is none."""
    references = obj["metadata"].get("ownerReferences", [])
    for reference in references:
        group = reference["apiVersion"].partition("/")[0]
        if group == CORE_GROUP and reference["kind"] == kind:
            found: JSON = reference
            return found
    return None


def owner_reference(obj: JSON, *, controller: bool = False) -> JSON:
    """Return an entry for the `metadata.ownerReferences` of an object that `obj` owns."""
    reference = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
    }
    return {**reference, "controller": True} if controller else reference


def key(obj: JSON) -> tuple[str, str]:
    """Return namespace and name of an object."""
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
