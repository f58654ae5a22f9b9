"""Resources that all machines of a cluster share: its network and its load balancer."""

from __future__ import annotations

from botocore.exceptions import ClientError
from capsmith_runtime.infrastructure import (
    Deleted,
    Endpoint,
    FailureDomain,
    InfraClusterDeleteScope,
    InfraClusterReconciler,
    InfraClusterScope,
    InfraClusterState,
    Waiting,
)

from .._generated.api.ec2_cluster import (
    Ec2ClusterSpec,
    Ec2ClusterStatus,
    Ec2ClusterStatusSubnets,
)
from ..cloud import AwsSessions, Cloud, error_code, reported_errors
from ..load_balancer import LoadBalancer, delete_load_balancer, ensure_load_balancer
from ..network import Network, delete_network, ensure_network
from ..owner import Owner

API_PORT = 6443
POLL_SECONDS = 5.0

Scope = InfraClusterScope[Ec2ClusterSpec]


class Ec2ClusterReconciler(InfraClusterReconciler[Ec2ClusterSpec]):
    """Reconcile a VPC with its subnets, and a network load balancer for the API server."""

    session_factory = AwsSessions

    def reconcile_normal(self, cluster: Scope) -> InfraClusterState | Waiting:
        """Create what is missing, and return its state."""
        spec, port = cluster.spec, _port(cluster)
        cloud = cluster.session(AwsSessions).region(spec.region)
        owner = Owner(cluster.short_id, cluster.name, cluster.cluster.name, spec.additional_tags)
        with reported_errors():
            network = ensure_network(cloud.ec2, owner, spec.vpc_cidr, spec.availability_zones, port)
            balancer = _load_balancer(cloud, owner, spec, network, port)
        status = _status(network, balancer)
        if balancer is not None and not balancer.is_active:
            return Waiting("LoadBalancerProvisioning", requeue_after=POLL_SECONDS, status=status)
        return InfraClusterState(
            control_plane_endpoint=cluster.control_plane_endpoint
            or (Endpoint(balancer.host, port) if balancer else None),
            failure_domains=[FailureDomain(zone) for zone in network.subnets],
            status=status,
        )

    def reconcile_delete(
        self, cluster: InfraClusterDeleteScope[Ec2ClusterSpec]
    ) -> Deleted | Waiting:
        """Delete everything; the network last, because the load balancer has addresses in it."""
        cloud = cluster.session(AwsSessions).region(cluster.spec.region)
        with reported_errors():
            if not delete_load_balancer(cloud.elb, cluster.short_id):
                return Waiting("DeletingLoadBalancer", requeue_after=POLL_SECONDS)
            try:
                delete_network(cloud.ec2, cluster.short_id)
            except ClientError as error:
                if error_code(error) != "DependencyViolation":
                    raise
                return Waiting("DeletingNetwork", str(error), requeue_after=POLL_SECONDS)
        return Deleted()


def _port(cluster: Scope) -> int:
    endpoint = cluster.control_plane_endpoint
    return endpoint.port if endpoint else cluster.cluster.api_server_port or API_PORT


def _load_balancer(
    cloud: Cloud, owner: Owner, spec: Ec2ClusterSpec, network: Network, port: int
) -> LoadBalancer | None:
    if spec.load_balancer == "none":
        return None
    subnet_ids = list(network.subnets.values())
    return ensure_load_balancer(
        cloud.elb, owner, spec.load_balancer, network.vpc_id, subnet_ids, port
    )


def _status(network: Network, balancer: LoadBalancer | None) -> Ec2ClusterStatus:
    return Ec2ClusterStatus(
        vpc_id=network.vpc_id,
        security_group_id=network.security_group_id,
        target_group_arn=balancer.target_group_arn if balancer else None,
        subnets=tuple(
            Ec2ClusterStatusSubnets(zone=zone, id=id) for zone, id in network.subnets.items()
        ),
    )
