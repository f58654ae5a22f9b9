"""The checks of each role, in the order in which they run."""

from capsmith.behaviour.checks.bootstrap import BOOTSTRAP
from capsmith.behaviour.checks.control_plane import CONTROL_PLANE, DELETION
from capsmith.behaviour.checks.deleting import DELETING
from capsmith.behaviour.checks.infra_cluster import INFRA_CLUSTER
from capsmith.behaviour.checks.infra_machine import INFRA_MACHINE
from capsmith.behaviour.checks.ipam import CLAIMS
from capsmith.behaviour.checks.ipam_life import ADDRESS_LIFE
from capsmith.behaviour.checks.lifetime import LIFETIME
from capsmith.behaviour.checks.moving import MOVING
from capsmith.behaviour.checks.pausing import PAUSING
from capsmith.behaviour.checks.pool_life import POOL_LIFE
from capsmith.behaviour.checks.pools import MACHINE_POOLS
from capsmith.behaviour.checks.restarting import RESTARTING
from capsmith.behaviour.checks.templates import TEMPLATES
from capsmith.behaviour.cluster_session import ClusterSession
from capsmith.behaviour.ipam_session import IpamSession
from capsmith.behaviour.model import Check
from capsmith.behaviour.session import Session

INFRASTRUCTURE: tuple[Check[Session], ...] = (
    *INFRA_CLUSTER,
    *INFRA_MACHINE,
    *TEMPLATES,
    *PAUSING,
    *RESTARTING,
    *DELETING,
    *MACHINE_POOLS,
    *POOL_LIFE,
    *LIFETIME,
    *MOVING,
)
"""Those of InfraClusters, InfraMachines and InfraMachinePools.

The invariants judge what the earlier ones did; the move leaves nothing to check.
"""

WHOLE_CLUSTER: tuple[Check[ClusterSession], ...] = (*BOOTSTRAP, *CONTROL_PLANE, *DELETION)
"""Those of bootstrap and control plane providers, with a whole cluster."""

ADDRESSES: tuple[Check[IpamSession], ...] = (*CLAIMS, *ADDRESS_LIFE)
"""Those of IPAM providers, with pools and claims."""
