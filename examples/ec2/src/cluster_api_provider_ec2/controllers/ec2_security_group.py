"""Security groups of clusters, and further ones of users."""

from __future__ import annotations

from botocore.exceptions import ClientError
from capsmith_runtime.resource import (
    Deleted,
    ResourceDeleteScope,
    ResourceReconciler,
    ResourceScope,
    ResourceState,
    Waiting,
)

from .._generated.api.ec2_security_group import Ec2SecurityGroupSpec, Ec2SecurityGroupStatus
from ..cloud import LISTED_SECONDS, AwsSessions, error_code, reported_errors
from ..owner import Owner
from ..security_groups import delete_security_group, ensure_security_group

POLL_SECONDS = 5.0

Scope = ResourceScope[Ec2SecurityGroupSpec]


class Ec2SecurityGroupReconciler(ResourceReconciler[Ec2SecurityGroupSpec]):
    """Reconcile a security group and its rules."""

    session_factory = AwsSessions

    def reconcile_normal(self, resource: Scope) -> ResourceState | Waiting:
        """Create the group or change its rules, and return its state."""
        spec = resource.spec
        # The cloud controller manager accepts only one group with the cluster's tag on an instance:
        # that of the Ec2Cluster, not one that merely has the label of the Cluster.
        cluster = resource.cluster.name if resource.cluster and resource.owners else None
        owner = Owner(resource.short_id, resource.name, cluster, spec.additional_tags)
        with reported_errors():
            ec2 = resource.session(AwsSessions).region(spec.region).ec2
            group_id = ensure_security_group(ec2, owner, spec)
        return ResourceState(status=Ec2SecurityGroupStatus(group_id=group_id))

    def reconcile_delete(
        self, resource: ResourceDeleteScope[Ec2SecurityGroupSpec]
    ) -> Deleted | Waiting:
        """Delete the group, which an instance may use until it is terminated."""
        ec2 = resource.session(AwsSessions).region(resource.spec.region).ec2
        with reported_errors():
            try:
                delete_security_group(ec2, resource.short_id)
            except ClientError as error:
                if error_code(error) != "DependencyViolation":
                    raise
                return Waiting("SecurityGroupInUse", str(error), requeue_after=POLL_SECONDS)
        is_recorded = resource.status(Ec2SecurityGroupStatus).group_id is not None
        if not is_recorded and resource.deletion_seconds < LISTED_SECONDS:
            return Waiting("SecurityGroupNotListed", requeue_after=POLL_SECONDS)
        return Deleted()
