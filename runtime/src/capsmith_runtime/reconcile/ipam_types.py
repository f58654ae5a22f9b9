"""Resource types of claims and addresses."""

from __future__ import annotations

from capsmith_runtime.contract.ipam import ADDRESS_KIND, CLAIM_KIND, IPAM_GROUP
from capsmith_runtime.kube.client import ResourceType


def claim_type(version: str) -> ResourceType:
    """Return the type of IPAddressClaims in a version of ipam.cluster.x-k8s.io."""
    return ResourceType(IPAM_GROUP, version, CLAIM_KIND, "ipaddressclaims")


def address_type(version: str) -> ResourceType:
    """Return the type of IPAddresses in a version of ipam.cluster.x-k8s.io."""
    return ResourceType(IPAM_GROUP, version, ADDRESS_KIND, "ipaddresses")
