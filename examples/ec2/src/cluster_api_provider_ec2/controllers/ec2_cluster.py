"""Resources that all machines of a cluster share: network, security group and load balancer."""

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
    WatchedMachines,
)

from .._generated.api.ec2_cluster import (
    Ec2ClusterSpec,
    Ec2ClusterStatus,
    Ec2ClusterStatusSubnets,
)
from .._generated.api.ec2_machine import Ec2MachineStatus
from .._generated.api.ec2_security_group import (
    Ec2SecurityGroup,
    Ec2SecurityGroupSpec,
    Ec2SecurityGroupSpecIngress,
)
from ..cloud import LISTED_SECONDS, AwsSessions, Cloud, error_code, reported_errors
from ..load_balancer import LoadBalancer, delete_load_balancer, ensure_load_balancer, set_targets
from ..network import EVERYWHERE, Network, delete_network, ensure_network
from ..owner import Owner

API_PORT = 6443
POLL_SECONDS = 5.0

Scope = InfraClusterScope[Ec2ClusterSpec]


class Ec2ClusterReconciler(InfraClusterReconciler[Ec2ClusterSpec]):
    """Reconcile a VPC with its subnets, and a network load balancer for the API server."""

    session_factory = AwsSessions
    watched_machines = WatchedMachines.CONTROL_PLANE

    def reconcile_normal(self, cluster: Scope) -> InfraClusterState | Waiting:
        """Create what is missing, and return its state."""
        spec, port = cluster.spec, _port(cluster)
        cloud = cluster.session(AwsSessions).region(spec.region)
        owner = Owner(cluster.short_id, cluster.name, cluster.cluster.name, spec.additional_tags)
        with reported_errors():
            network = ensure_network(cloud.ec2, owner, spec.vpc_cidr, spec.availability_zones)
        group = _apply_security_group(cluster, network, port)
        with reported_errors():
            balancer = _load_balancer(cloud, owner, spec, network, port)
            if balancer is not None:
                set_targets(cloud.elb, balancer.target_group_arn, _running_instances(cluster))
        status = _status(network, group, balancer)
        endpoint = cluster.control_plane_endpoint
        if endpoint is None and balancer is not None:
            endpoint = Endpoint(balancer.host, port)
        domains = [FailureDomain(zone) for zone in network.subnets]
        if not group.ready:
            # Its change leads to the next call.
            message = f"Ec2SecurityGroup {group.name} is not ready"
            return Waiting("SecurityGroupNotReady", message, requeue_after=None, status=status)
        if balancer is not None and not balancer.is_active:
            return Waiting(
                "LoadBalancerProvisioning",
                requeue_after=POLL_SECONDS,
                status=status,
                control_plane_endpoint=endpoint,
                failure_domains=domains,
            )
        return InfraClusterState(
            control_plane_endpoint=endpoint, failure_domains=domains, status=status
        )

    def reconcile_delete(
        self, cluster: InfraClusterDeleteScope[Ec2ClusterSpec]
    ) -> Deleted | Waiting:
        """Delete everything; the network last, because the others are in it."""
        cloud = cluster.session(AwsSessions).region(cluster.spec.region)
        with reported_errors():
            if not delete_load_balancer(cloud.elb, cluster.short_id):
                return Waiting("DeletingLoadBalancer", requeue_after=POLL_SECONDS)
            group = Ec2SecurityGroup.resource
            if cluster.client.delete(group.api_version, group.kind, cluster.name):
                return Waiting("DeletingSecurityGroup", requeue_after=None)
            try:
                delete_network(cloud.ec2, cluster.short_id)
            except ClientError as error:
                if error_code(error) != "DependencyViolation":
                    raise
                return Waiting("DeletingNetwork", str(error), requeue_after=POLL_SECONDS)
        is_recorded = cluster.status(Ec2ClusterStatus).vpc_id is not None
        if not is_recorded and cluster.deletion_seconds < LISTED_SECONDS:
            return Waiting("NetworkNotListed", requeue_after=POLL_SECONDS)
        return Deleted()


def _port(cluster: Scope) -> int:
    endpoint = cluster.control_plane_endpoint
    return endpoint.port if endpoint else cluster.cluster.api_server_port or API_PORT


def _apply_security_group(cluster: Scope, network: Network, port: int) -> Ec2SecurityGroup:
    """Create or change the Ec2SecurityGroup of a cluster; return it as it is in the API server."""
    spec = cluster.spec
    group = Ec2SecurityGroup(
        name=cluster.name,
        namespace=cluster.namespace,
        spec=Ec2SecurityGroupSpec(
            region=spec.region,
            vpc_id=network.vpc_id,
            description="Nodes of a cluster",
            ingress=(
                Ec2SecurityGroupSpecIngress(protocol="all"),
                Ec2SecurityGroupSpecIngress(
                    protocol="tcp", from_port=port, to_port=port, cidr=EVERYWHERE
                ),
            ),
            additional_tags=spec.additional_tags,
        ),
        owner_references=[cluster.owner_reference()],
    )
    return Ec2SecurityGroup.from_dict(cluster.client.apply(group.to_dict()))


def _load_balancer(
    cloud: Cloud, owner: Owner, spec: Ec2ClusterSpec, network: Network, port: int
) -> LoadBalancer | None:
    if spec.load_balancer == "none":
        return None
    subnet_ids = list(network.subnets.values())
    return ensure_load_balancer(
        cloud.elb, owner, spec.load_balancer, network.vpc_id, subnet_ids, port
    )


def _running_instances(cluster: Scope) -> set[str]:
    """Return the ids of the control plane's instances that can serve requests."""
    # EC2 refuses targets that do not run yet.
    running = (m for m in cluster.machines if m.is_provisioned and not m.deleting)
    ids = (machine.status(Ec2MachineStatus).instance_id for machine in running)
    return {instance_id for instance_id in ids if instance_id is not None}


def _status(
    network: Network, group: Ec2SecurityGroup, balancer: LoadBalancer | None
) -> Ec2ClusterStatus:
    return Ec2ClusterStatus(
        vpc_id=network.vpc_id,
        security_group_id=group.status.group_id if group.status else None,
        target_group_arn=balancer.target_group_arn if balancer else None,
        subnets=tuple(
            Ec2ClusterStatusSubnets(zone=zone, id=id) for zone, id in network.subnets.items()
        ),
    )
