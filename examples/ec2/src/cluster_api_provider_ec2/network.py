"""The network of a cluster: a VPC with a public subnet in each zone.

Each function looks a resource up and creates it if it is missing, so that an interrupted call is
completed by the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from itertools import islice
from typing import TYPE_CHECKING

from .owner import Owner, owned_by

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

EVERYWHERE = "0.0.0.0/0"

_DEFAULT_ZONES = 3
_SUBNET_BITS = 4


@dataclass(frozen=True, slots=True)
class Network:
    """Ids of the network of a cluster."""

    vpc_id: str
    subnets: dict[str, str]
    """Ids of subnets by zone."""


def ensure_network(ec2: EC2Client, owner: Owner, cidr: str, zones: Sequence[str]) -> Network:
    """Return the network of a cluster; create what is missing."""
    vpc_id = _ensure_vpc(ec2, owner, cidr)
    _ensure_route(ec2, vpc_id, _ensure_gateway(ec2, owner, vpc_id))
    chosen = zones or list(islice(_zones_of_region(ec2), _DEFAULT_ZONES))
    return Network(
        vpc_id=vpc_id,
        subnets=_ensure_subnets(ec2, owner, vpc_id, cidr, chosen),
    )


def delete_network(ec2: EC2Client, owner_id: str) -> None:
    """Delete the network of a cluster, as far as it exists.

    Raises ClientError with the code DependencyViolation while something else uses it.
    """
    filters = owned_by(owner_id)
    for subnet in ec2.describe_subnets(Filters=filters)["Subnets"]:
        ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    for gateway in ec2.describe_internet_gateways(Filters=filters)["InternetGateways"]:
        gateway_id = gateway["InternetGatewayId"]
        for attachment in gateway["Attachments"]:
            ec2.detach_internet_gateway(InternetGatewayId=gateway_id, VpcId=attachment["VpcId"])
        ec2.delete_internet_gateway(InternetGatewayId=gateway_id)
    for vpc in ec2.describe_vpcs(Filters=filters)["Vpcs"]:
        ec2.delete_vpc(VpcId=vpc["VpcId"])


def _ensure_vpc(ec2: EC2Client, owner: Owner, cidr: str) -> str:
    found = ec2.describe_vpcs(Filters=owned_by(owner.id))["Vpcs"]
    if found:
        return min(vpc["VpcId"] for vpc in found)
    tags = owner.tags_for("vpc")
    return ec2.create_vpc(CidrBlock=cidr, TagSpecifications=tags)["Vpc"]["VpcId"]


def _ensure_gateway(ec2: EC2Client, owner: Owner, vpc_id: str) -> str:
    found = ec2.describe_internet_gateways(Filters=owned_by(owner.id))["InternetGateways"]
    tags = owner.tags_for("internet-gateway")
    gateway = (
        found[0]
        if found
        else ec2.create_internet_gateway(TagSpecifications=tags)["InternetGateway"]
    )
    gateway_id = gateway["InternetGatewayId"]
    if not gateway.get("Attachments"):
        ec2.attach_internet_gateway(InternetGatewayId=gateway_id, VpcId=vpc_id)
    return gateway_id


def _ensure_route(ec2: EC2Client, vpc_id: str, gateway_id: str) -> None:
    (table,) = ec2.describe_route_tables(
        Filters=[
            {"Name": "vpc-id", "Values": [vpc_id]},
            {"Name": "association.main", "Values": ["true"]},
        ]
    )["RouteTables"]
    if all(route.get("GatewayId") != gateway_id for route in table["Routes"]):
        ec2.create_route(
            RouteTableId=table["RouteTableId"],
            DestinationCidrBlock=EVERYWHERE,
            GatewayId=gateway_id,
        )


def _zones_of_region(ec2: EC2Client) -> list[str]:
    found = ec2.describe_availability_zones(
        Filters=[{"Name": "zone-type", "Values": ["availability-zone"]}]
    )
    return sorted(zone["ZoneName"] for zone in found["AvailabilityZones"])


def _ensure_subnets(
    ec2: EC2Client, owner: Owner, vpc_id: str, cidr: str, zones: Sequence[str]
) -> dict[str, str]:
    existing = {
        subnet["AvailabilityZone"]: subnet["SubnetId"]
        for subnet in ec2.describe_subnets(Filters=owned_by(owner.id))["Subnets"]
    }
    ranges = ip_network(cidr).subnets(prefixlen_diff=_SUBNET_BITS)
    for zone, block in zip(zones, ranges, strict=False):
        if zone not in existing:
            created = ec2.create_subnet(
                VpcId=vpc_id,
                CidrBlock=str(block),
                AvailabilityZone=zone,
                TagSpecifications=owner.tags_for("subnet"),
            )
            existing[zone] = created["Subnet"]["SubnetId"]
    return {zone: existing[zone] for zone in sorted(existing)}
