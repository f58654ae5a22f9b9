"""Hooks that Cluster API calls before and during changes of clusters with a topology."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.extension import (
    AfterUpgradeRequest,
    BeforeUpgradeRequest,
    CanUpdateMachineRequest,
    CanUpdateMachineSetRequest,
    ClusterRequest,
    DiscoverVariablesRequest,
    GeneratePatchesRequest,
    HookError,
    InPlace,
    Patches,
    Proceed,
    RetryAfter,
    UpdateMachineRequest,
    UpgradePlan,
    UpgradePlanRequest,
    ValidateTopologyRequest,
    VariableDefinition,
)

from ._generated.extension_api import RuntimeExtension

WORKER_MACHINE = "workerMachine"
"""Variable of ClusterClasses: fields of the infrastructure machines of workers."""
HOLD = "hold.beacon"
"""Prefix of annotations: a Cluster with HOLD/<hook name> is held at that hook."""
WAIT_SECONDS = 5
MAX_MINOR_VERSIONS = 100
"""Maximum number of minor versions in an upgrade, because users may request v1.999999999.0."""


class Extension(RuntimeExtension):
    """One method for each hook in provider.yaml.  Replace the example code."""

    def generate_patches(self, request: GeneratePatchesRequest) -> Patches:
        """Copy the fields of the variable into the infrastructure templates of workers."""
        patches = Patches()
        for template in request.of(holder="MachineDeployment"):
            values = template.variables.mapping(WORKER_MACHINE)
            if template.is_infrastructure and values:
                patches.edit(template).update(values)
        return patches

    def validate_topology(self, request: ValidateTopologyRequest) -> Sequence[str]:
        """Reject values that only the infrastructure provider may set."""
        if "providerID" in request.variables.mapping(WORKER_MACHINE):
            return [f"{WORKER_MACHINE}.providerID comes from the infrastructure: leave it out"]
        return []

    def discover_variables(self, request: DiscoverVariablesRequest) -> Sequence[VariableDefinition]:
        """Define one variable, an object with arbitrary fields."""
        schema = {
            "type": "object",
            "description": "Fields of the infrastructure machines of workers.",
            "x-kubernetes-preserve-unknown-fields": True,
        }
        return [VariableDefinition(name=WORKER_MACHINE, schema=schema)]

    def before_cluster_create(self, request: ClusterRequest) -> Proceed | RetryAfter:
        """Hold the Cluster while it has the annotation."""
        return self._hold(request, "before-cluster-create")

    def after_control_plane_initialized(self, request: ClusterRequest) -> Proceed:
        """Do nothing: Cluster API does not wait for this hook."""
        return Proceed()

    def before_cluster_upgrade(self, request: BeforeUpgradeRequest) -> Proceed | RetryAfter:
        """Hold the Cluster while it has the annotation."""
        return self._hold(request, "before-cluster-upgrade")

    def after_cluster_upgrade(self, request: AfterUpgradeRequest) -> Proceed | RetryAfter:
        """Hold the Cluster while it has the annotation."""
        return self._hold(request, "after-cluster-upgrade")

    def before_cluster_delete(self, request: ClusterRequest) -> Proceed | RetryAfter:
        """Hold the Cluster while it has the annotation."""
        return self._hold(request, "last-words")

    def generate_upgrade_plan(self, request: UpgradePlanRequest) -> UpgradePlan:
        """Upgrade one minor version at a time."""
        begin, end = (
            int(version.split(".")[1])
            for version in (request.from_control_plane_version, request.to_version)
        )
        if end - begin > MAX_MINOR_VERSIONS:
            raise HookError(f"upgrades over more than {MAX_MINOR_VERSIONS} minor versions")
        between = [f"v1.{minor}.0" for minor in range(begin + 1, end)]
        return UpgradePlan(control_plane=[*between, request.to_version])

    def can_update_machine(self, request: CanUpdateMachineRequest) -> InPlace:
        """Update nothing in place: Cluster API replaces the machines."""
        return InPlace()

    def can_update_machine_set(self, request: CanUpdateMachineSetRequest) -> InPlace:
        """Update nothing in place: Cluster API replaces the machines."""
        return InPlace()

    def update_machine(self, request: UpdateMachineRequest) -> Proceed | RetryAfter:
        """Do nothing: the other hooks report no change that is possible in place."""
        return Proceed()

    def _hold(self, request: ClusterRequest, hook: str) -> Proceed | RetryAfter:
        annotation = f"{HOLD}/{hook}"
        if annotation in request.cluster.annotations:
            return RetryAfter(WAIT_SECONDS, f"the Cluster has the annotation {annotation}")
        return Proceed()
