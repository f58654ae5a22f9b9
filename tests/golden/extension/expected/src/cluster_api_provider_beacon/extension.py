"""What Cluster API asks before and while it changes clusters with a topology."""

from __future__ import annotations

from collections.abc import Sequence

from . import (
    AfterUpgradeRequest,
    BeforeUpgradeRequest,
    CanUpdateMachineRequest,
    CanUpdateMachineSetRequest,
    ClusterRequest,
    DiscoverVariablesRequest,
    GeneratePatchesRequest,
    InPlace,
    Patches,
    Proceed,
    RetryAfter,
    RuntimeExtension,
    UpdateMachineRequest,
    UpgradePlan,
    UpgradePlanRequest,
    ValidateTopologyRequest,
    VariableDefinition,
)

WORKER_MACHINE = "workerMachine"
"""Variable of ClusterClasses: fields of the machines that workers get."""
HOLD = "hold.beacon"
"""A Cluster with the annotation HOLD/<name of a hook> waits at that hook."""
WAIT_SECONDS = 5


class Extension(RuntimeExtension):
    """Replace what the hooks do by what you need; their names stand in provider.yaml."""

    def generate_patches(self, request: GeneratePatchesRequest) -> Patches:
        """Give the machines of workers what the variable says."""
        patches = Patches()
        for template in request.of(holder="MachineDeployment"):
            values = template.variables.mapping(WORKER_MACHINE)
            if template.is_infrastructure and values:
                patches.edit(template).update(values)
        return patches

    def validate_topology(self, request: ValidateTopologyRequest) -> Sequence[str]:
        """Refuse values that only the infrastructure can know."""
        if "providerID" in request.variables.mapping(WORKER_MACHINE):
            return [f"{WORKER_MACHINE}.providerID comes from the infrastructure: leave it out"]
        return []

    def discover_variables(self, request: DiscoverVariablesRequest) -> Sequence[VariableDefinition]:
        """One variable, an object of free form: each infrastructure has fields of its own."""
        schema = {
            "type": "object",
            "description": "Fields of the machines that workers get.",
            "x-kubernetes-preserve-unknown-fields": True,
        }
        return [VariableDefinition(name=WORKER_MACHINE, schema=schema)]

    def before_cluster_create(self, request: ClusterRequest) -> Proceed | RetryAfter:
        """Hold the Cluster up as long as somebody wants that."""
        return self._hold(request, "before-cluster-create")

    def after_control_plane_initialized(self, request: ClusterRequest) -> Proceed:
        """Core does not wait for this one."""
        return Proceed()

    def before_cluster_upgrade(self, request: BeforeUpgradeRequest) -> Proceed | RetryAfter:
        """Hold the Cluster up as long as somebody wants that."""
        return self._hold(request, "before-cluster-upgrade")

    def after_cluster_upgrade(self, request: AfterUpgradeRequest) -> Proceed | RetryAfter:
        """Hold the Cluster up as long as somebody wants that."""
        return self._hold(request, "after-cluster-upgrade")

    def before_cluster_delete(self, request: ClusterRequest) -> Proceed | RetryAfter:
        """Hold the Cluster up as long as somebody wants that."""
        return self._hold(request, "last-words")

    def generate_upgrade_plan(self, request: UpgradePlanRequest) -> UpgradePlan:
        """Minor version by minor version."""
        begin, end = (
            int(version.split(".")[1])
            for version in (request.from_control_plane_version, request.to_version)
        )
        between = [f"v1.{minor}.0" for minor in range(begin + 1, end)]
        return UpgradePlan(control_plane=[*between, request.to_version])

    def can_update_machine(self, request: CanUpdateMachineRequest) -> InPlace:
        """Nothing yet: machines are replaced, as without this extension."""
        return InPlace()

    def can_update_machine_set(self, request: CanUpdateMachineSetRequest) -> InPlace:
        """Nothing yet: machines are replaced, as without this extension."""
        return InPlace()

    def update_machine(self, request: UpdateMachineRequest) -> Proceed | RetryAfter:
        """Nothing was said to be possible in place, so there is nothing to do."""
        return Proceed()

    def _hold(self, request: ClusterRequest, hook: str) -> Proceed | RetryAfter:
        annotation = f"{HOLD}/{hook}"
        if annotation in request.cluster.annotations:
            return RetryAfter(WAIT_SECONDS, f"the Cluster has the annotation {annotation}")
        return Proceed()
