"""Runtime extensions: hooks that Cluster API calls.

The names below are all that the author of an extension needs, in addition to the generated base
class ``RuntimeExtension``, which has one method for each hook of the provider.
"""

from capsmith_runtime.extension.in_place import (
    CanUpdateMachineRequest,
    CanUpdateMachineSetRequest,
    MachineObjects,
    UpdateMachineRequest,
)
from capsmith_runtime.extension.lifecycle import (
    AfterUpgradeRequest,
    BeforeUpgradeRequest,
    ClusterRequest,
    UpgradePlanRequest,
)
from capsmith_runtime.extension.responses import (
    HookError,
    InPlace,
    Proceed,
    RetryAfter,
    UpgradePlan,
    VariableDefinition,
)
from capsmith_runtime.extension.topology import (
    DiscoverVariablesRequest,
    GeneratePatchesRequest,
    Holder,
    Patches,
    Template,
    ValidateTopologyRequest,
)
from capsmith_runtime.extension.variables import TopologyCluster, Variables

__all__ = [
    "AfterUpgradeRequest",
    "BeforeUpgradeRequest",
    "CanUpdateMachineRequest",
    "CanUpdateMachineSetRequest",
    "ClusterRequest",
    "DiscoverVariablesRequest",
    "GeneratePatchesRequest",
    "Holder",
    "HookError",
    "InPlace",
    "MachineObjects",
    "Patches",
    "Proceed",
    "RetryAfter",
    "Template",
    "TopologyCluster",
    "UpdateMachineRequest",
    "UpgradePlan",
    "UpgradePlanRequest",
    "ValidateTopologyRequest",
    "VariableDefinition",
    "Variables",
]
