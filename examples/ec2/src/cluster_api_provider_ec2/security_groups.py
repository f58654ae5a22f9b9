"""Security groups, found by their tag, with exactly the rules of a spec."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, NamedTuple

from ._generated.api.ec2_security_group import Ec2SecurityGroupSpec, Ec2SecurityGroupSpecIngress
from .owner import Owner, owned_by

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import (
        CreateSecurityGroupRequestTypeDef,
        IpPermissionTypeDef,
        SecurityGroupRuleTypeDef,
    )

_ALL = "-1"


class _Rule(NamedTuple):
    """A rule as EC2 knows it."""

    protocol: str
    from_port: int
    to_port: int
    source: str
    """Addresses, or the id of a group."""


def ensure_security_group(ec2: EC2Client, owner: Owner, spec: Ec2SecurityGroupSpec) -> str:
    """Return the id of a group; create it if it is missing, and change its rules if they differ."""
    found = _find(ec2, owner.id)
    group_id = found[0] if found else _create(ec2, owner, spec)
    wanted, existing = {_wanted(each, group_id) for each in spec.ingress}, _existing(ec2, group_id)
    missing, surplus = sorted(wanted - existing.keys()), sorted(existing.keys() - wanted)
    # In this order, what old and new rules permit is never interrupted.
    if missing:
        ec2.authorize_security_group_ingress(
            GroupId=group_id, IpPermissions=[_permission(rule, group_id) for rule in missing]
        )
    if surplus:
        ec2.revoke_security_group_ingress(
            GroupId=group_id, SecurityGroupRuleIds=[existing[rule] for rule in surplus]
        )
    return group_id


def delete_security_group(ec2: EC2Client, owner_id: str) -> None:
    """Delete a group, if it exists.

    Raises ClientError with the code DependencyViolation while something uses it.
    """
    for group_id in _find(ec2, owner_id):
        ec2.delete_security_group(GroupId=group_id)


def _find(ec2: EC2Client, owner_id: str) -> list[str]:
    found = ec2.describe_security_groups(Filters=owned_by(owner_id))["SecurityGroups"]
    return [group["GroupId"] for group in found]


def _create(ec2: EC2Client, owner: Owner, spec: Ec2SecurityGroupSpec) -> str:
    request: CreateSecurityGroupRequestTypeDef = {
        # A VPC has one group of a name, so that none is created twice.
        "GroupName": owner.id,
        "Description": spec.description,
        "TagSpecifications": owner.tags_for("security-group"),
    }
    if spec.vpc_id:
        request["VpcId"] = spec.vpc_id
    return ec2.create_security_group(**request)["GroupId"]


def _wanted(rule: Ec2SecurityGroupSpecIngress, group_id: str) -> _Rule:
    # EC2 drops the bits of a host.
    source = str(ip_network(rule.cidr, strict=False)) if rule.cidr else group_id
    if rule.protocol == "all":
        return _Rule(_ALL, -1, -1, source)
    return _Rule(rule.protocol, rule.from_port, rule.to_port, source)


def _existing(ec2: EC2Client, group_id: str) -> dict[_Rule, str]:
    """Return the id of each ingress rule of a group."""
    pages = ec2.get_paginator("describe_security_group_rules").paginate(
        Filters=[{"Name": "group-id", "Values": [group_id]}]
    )
    return {
        _Rule(rule["IpProtocol"], rule["FromPort"], rule["ToPort"], _source(rule)): rule[
            "SecurityGroupRuleId"
        ]
        for page in pages
        for rule in page["SecurityGroupRules"]
        if not rule["IsEgress"]
    }


def _source(rule: SecurityGroupRuleTypeDef) -> str:
    sources = (
        rule.get("CidrIpv4"),
        rule.get("CidrIpv6"),
        rule.get("PrefixListId"),
        rule.get("ReferencedGroupInfo", {}).get("GroupId"),
    )
    return next(each for each in sources if each)


def _permission(rule: _Rule, group_id: str) -> IpPermissionTypeDef:
    permission: IpPermissionTypeDef = {
        "IpProtocol": rule.protocol,
        "FromPort": rule.from_port,
        "ToPort": rule.to_port,
    }
    if rule.source == group_id:
        return {**permission, "UserIdGroupPairs": [{"GroupId": group_id}]}
    return {**permission, "IpRanges": [{"CidrIp": rule.source}]}
