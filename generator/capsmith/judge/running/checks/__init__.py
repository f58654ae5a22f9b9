"""The checks for each role, in the order in which they run."""

from collections.abc import Set

from capsmith.judge.running.checks.bootstrap import BOOTSTRAP
from capsmith.judge.running.checks.control_plane import CONTROL_PLANE, DELETION
from capsmith.judge.running.checks.deleting import DELETING
from capsmith.judge.running.checks.infra_cluster import INFRA_CLUSTER
from capsmith.judge.running.checks.infra_machine import INFRA_MACHINE, TEMPLATES
from capsmith.judge.running.checks.ipam import ADDRESSES_OVER_TIME, CLAIMS
from capsmith.judge.running.checks.lifetime import LIFETIME
from capsmith.judge.running.checks.lost_owners import LOST_OWNERS
from capsmith.judge.running.checks.pausing import PAUSING
from capsmith.judge.running.checks.pool_changes import POOL_CHANGES
from capsmith.judge.running.checks.pools import MACHINE_POOLS
from capsmith.judge.running.checks.restart_and_move import MOVING, RESTARTING
from capsmith.judge.running.cluster_session import ClusterSession
from capsmith.judge.running.ipam_session import IpamSession
from capsmith.judge.running.model import ConformanceCheck
from capsmith.judge.running.session import Session

_POOLS: tuple[ConformanceCheck[Session], ...] = (*MACHINE_POOLS, *POOL_CHANGES)

INFRASTRUCTURE: tuple[ConformanceCheck[Session], ...] = (
    *INFRA_CLUSTER,
    *INFRA_MACHINE,
    *TEMPLATES,
    *PAUSING,
    *RESTARTING,
    *DELETING,
    *_POOLS,
    *LIFETIME,
    *MOVING,
)
"""Checks for InfraClusters, InfraMachines and InfraMachinePools.

The invariants judge the results of earlier checks.  The move comes last because it leaves no
objects to check.
"""

WITHOUT_MACHINE_POOLS: tuple[ConformanceCheck[Session], ...] = tuple(
    check for check in INFRASTRUCTURE if check not in _POOLS
)
"""Checks for InfraClusters and InfraMachines of a provider without InfraMachinePools."""

WHOLE_CLUSTER: tuple[ConformanceCheck[ClusterSession], ...] = (
    *BOOTSTRAP,
    *CONTROL_PLANE,
    *LOST_OWNERS,
    *DELETION,
)
"""Checks for bootstrap and control plane providers, which need a whole cluster."""

_OTHERS = {
    "bootstrap-": ("BootstrapConfig", "BootstrapConfigTemplate"),
    "control-plane-": ("ControlPlane", "ControlPlaneTemplate"),
}
"""Beginnings of the names of checks in a whole cluster, and the roles that they are about."""


def list_whole_cluster(roles: Set[str]) -> tuple[ConformanceCheck[ClusterSession], ...]:
    """Return the checks in a whole cluster that are about one of the given roles, in order."""
    foreign = tuple(start for start, concerned in _OTHERS.items() if roles.isdisjoint(concerned))
    return tuple(check for check in WHOLE_CLUSTER if not check.name.startswith(foreign))


ADDRESSES: tuple[ConformanceCheck[IpamSession], ...] = (*CLAIMS, *ADDRESSES_OVER_TIME)
"""Checks for IPAM providers, which need pools and claims."""
