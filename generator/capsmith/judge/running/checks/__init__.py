"""The checks of each role, in the order in which they run."""

from capsmith.judge.running.checks.bootstrap import BOOTSTRAP
from capsmith.judge.running.checks.control_plane import CONTROL_PLANE, DELETION
from capsmith.judge.running.checks.deleting import DELETING
from capsmith.judge.running.checks.infra_cluster import INFRA_CLUSTER
from capsmith.judge.running.checks.infra_machine import INFRA_MACHINE
from capsmith.judge.running.checks.ipam import CLAIMS
from capsmith.judge.running.checks.ipam_life import ADDRESS_LIFE
from capsmith.judge.running.checks.lifetime import LIFETIME
from capsmith.judge.running.checks.moving import MOVING
from capsmith.judge.running.checks.pausing import PAUSING
from capsmith.judge.running.checks.pool_life import POOL_LIFE
from capsmith.judge.running.checks.pools import MACHINE_POOLS
from capsmith.judge.running.checks.restarting import RESTARTING
from capsmith.judge.running.checks.templates import TEMPLATES
from capsmith.judge.running.cluster_session import ClusterSession
from capsmith.judge.running.ipam_session import IpamSession
from capsmith.judge.running.model import Check
from capsmith.judge.running.session import Session

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
