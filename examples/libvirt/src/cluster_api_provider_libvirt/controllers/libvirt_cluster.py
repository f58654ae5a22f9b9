"""What all machines of a cluster share: a network, and a storage pool on each host."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network

from capsmith_runtime.infrastructure import (
    Deleted,
    Endpoint,
    FailureDomain,
    InfraClusterDeleteScope,
    InfraClusterReconciler,
    InfraClusterScope,
    InfraClusterState,
    TerminalError,
    Waiting,
)

from .._generated.api.libvirt_cluster import LibvirtClusterSpec, LibvirtClusterStatus
from ..connections import HostSessions, reported_errors
from ..network import AddressPlan, delete_network, ensure_network, find_network
from ..storage import delete_pool, ensure_pool, name_briefly

API_PORT = 6443
MAX_PREFIX = 28
POLL_SECONDS = 10.0

Scope = InfraClusterScope[LibvirtClusterSpec]


class LibvirtClusterReconciler(InfraClusterReconciler[LibvirtClusterSpec]):
    """Reconcile the network and the storage pools of a cluster."""

    session_factory = HostSessions

    def reconcile_normal(self, cluster: Scope) -> InfraClusterState | Waiting:
        """Create what is missing, and return its state."""
        spec, hosts = cluster.spec, cluster.session(HostSessions)
        name, endpoint = cluster.short_id, cluster.control_plane_endpoint
        network = spec.network or name
        with reported_errors():
            for each in spec.hosts:
                host = hosts.connect(each.uri)
                ensure_pool(host, name, f"{spec.folder}/{name_briefly(name)}")
                if spec.network is None:
                    plan = AddressPlan(_network(spec.network_cidr))
                    ensure_network(host, name, plan)
                    port = cluster.cluster.api_server_port or API_PORT
                    endpoint = endpoint or Endpoint(str(plan.endpoint), port)
                elif find_network(host, spec.network) is None:
                    message = f"{each.name} has no network {spec.network}"
                    return Waiting("NetworkNotFound", message, requeue_after=POLL_SECONDS)
        return InfraClusterState(
            control_plane_endpoint=endpoint,
            failure_domains=[FailureDomain(each.name) for each in spec.hosts],
            status=LibvirtClusterStatus(network=network, pool=name),
        )

    def reconcile_delete(
        self, cluster: InfraClusterDeleteScope[LibvirtClusterSpec]
    ) -> Deleted | Waiting:
        """Delete everything; no machine is left."""
        hosts = cluster.session(HostSessions)
        with reported_errors():
            for each in cluster.spec.hosts:
                host = hosts.connect(each.uri)
                delete_network(host, cluster.short_id)
                delete_pool(host, cluster.short_id)
        return Deleted()


def _network(cidr: str) -> IPv4Network:
    network = ip_network(cidr, strict=False)
    if not isinstance(network, IPv4Network) or network.prefixlen > MAX_PREFIX:
        message = f"{cidr} is no IPv4 network with a prefix of at most {MAX_PREFIX}"
        raise TerminalError("InvalidNetworkCIDR", message)
    return network
