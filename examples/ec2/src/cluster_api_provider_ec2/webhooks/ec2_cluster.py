"""Warnings about clusters, from the Cluster and from objects that exist.

Nothing is refused: users and `clusterctl move` create objects in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from capsmith_runtime.admission import (
    AdmissionObject,
    AdmissionWarning,
    Cluster,
    ValidationResult,
    Validator,
)

from .._generated.api.ec2_cluster import Ec2ClusterSpec
from .._generated.api.ec2_security_group import Ec2SecurityGroup


class Ec2ClusterValidator(Validator[Ec2ClusterSpec]):
    """Warns of addresses that overlap, and of a security group that the cluster cannot own."""

    def validate_create(self, obj: AdmissionObject[Ec2ClusterSpec]) -> ValidationResult:
        """Return warnings only."""
        if obj.cluster is not None:
            yield from _find_overlaps(obj.spec.vpc_cidr, obj.cluster)
        group = Ec2SecurityGroup.resource
        found = obj.client.get(group.api_version, group.kind, obj.name) if obj.name else None
        if found is not None and not _is_owned(Ec2SecurityGroup.from_dict(found), obj.name):
            yield AdmissionWarning(
                f"Ec2SecurityGroup {obj.name} exists, and the cluster needs one of this name"
            )

    def validate_update(
        self, old: AdmissionObject[Ec2ClusterSpec], new: AdmissionObject[Ec2ClusterSpec]
    ) -> ValidationResult:
        """Return no warning: the name and the addresses are immutable."""
        return ()


def _find_overlaps(vpc_cidr: str, cluster: Cluster) -> Iterator[AdmissionWarning]:
    vpc = ip_network(vpc_cidr)
    for used, cidrs in (("pods", cluster.pod_cidrs), ("services", cluster.service_cidrs)):
        for cidr in map(ip_network, cidrs):
            if cidr.version == vpc.version and cidr.overlaps(vpc):
                yield AdmissionWarning(
                    f"vpcCIDR {vpc} overlaps with {cidr}, the {used} of Cluster {cluster.name}"
                )


def _is_owned(group: Ec2SecurityGroup, cluster: str) -> bool:
    owners = [(owner["kind"], owner["name"]) for owner in group.owner_references]
    return ("Ec2Cluster", cluster) in owners
