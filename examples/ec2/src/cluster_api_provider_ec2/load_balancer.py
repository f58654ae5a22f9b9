"""The network load balancer of a control plane.

Names are unique in a region, and creating the same one again returns the existing one.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .cloud import ignored_errors
from .owner import Owner

if TYPE_CHECKING:
    from mypy_boto3_elbv2 import ElasticLoadBalancingv2Client
    from mypy_boto3_elbv2.type_defs import LoadBalancerTypeDef, TagTypeDef

Scheme = Literal["internet-facing", "internal"]


@dataclass(frozen=True, slots=True)
class LoadBalancer:
    """A load balancer whose targets are the control plane's instances."""

    host: str
    target_group_arn: str
    is_active: bool


def ensure_load_balancer(
    elb: ElasticLoadBalancingv2Client,
    owner: Owner,
    scheme: Scheme,
    vpc_id: str,
    subnet_ids: Sequence[str],
    port: int,
) -> LoadBalancer:
    """Return the load balancer of a cluster; create what is missing."""
    group_arn = _ensure_target_group(elb, owner, vpc_id, port)
    balancer = _find(elb, owner.id)
    if balancer is None:
        (balancer,) = elb.create_load_balancer(
            Name=owner.id, Type="network", Scheme=scheme, Subnets=subnet_ids, Tags=_tags(owner)
        )["LoadBalancers"]
    arn = balancer["LoadBalancerArn"]
    if not elb.describe_listeners(LoadBalancerArn=arn)["Listeners"]:
        elb.create_listener(
            LoadBalancerArn=arn,
            Protocol="TCP",
            Port=port,
            DefaultActions=[{"Type": "forward", "TargetGroupArn": group_arn}],
        )
    is_active = balancer.get("State", {}).get("Code") == "active"
    return LoadBalancer(balancer["DNSName"], group_arn, is_active)


def set_targets(elb: ElasticLoadBalancingv2Client, group_arn: str, instance_ids: Set[str]) -> None:
    """Make exactly these instances the targets of a load balancer."""
    health = elb.describe_target_health(TargetGroupArn=group_arn)["TargetHealthDescriptions"]
    registered = {
        each["Target"]["Id"]
        for each in health
        if each.get("TargetHealth", {}).get("State") != "draining"
    }
    for ids, change in (
        (instance_ids - registered, elb.register_targets),
        (registered - instance_ids, elb.deregister_targets),
    ):
        if ids:
            change(TargetGroupArn=group_arn, Targets=[{"Id": each} for each in sorted(ids)])


def delete_load_balancer(elb: ElasticLoadBalancingv2Client, name: str) -> bool:
    """Delete the load balancer and its targets; return whether nothing is left."""
    balancer = _find(elb, name)
    if balancer is not None:
        elb.delete_load_balancer(LoadBalancerArn=balancer["LoadBalancerArn"])
        return False
    group_arn = _find_target_group(elb, name)
    if group_arn is not None:
        elb.delete_target_group(TargetGroupArn=group_arn)
    return True


def _find(elb: ElasticLoadBalancingv2Client, name: str) -> LoadBalancerTypeDef | None:
    with ignored_errors("LoadBalancerNotFound"):
        return elb.describe_load_balancers(Names=[name])["LoadBalancers"][0]
    return None


def _find_target_group(elb: ElasticLoadBalancingv2Client, name: str) -> str | None:
    with ignored_errors("TargetGroupNotFound"):
        return elb.describe_target_groups(Names=[name])["TargetGroups"][0]["TargetGroupArn"]
    return None


def _ensure_target_group(
    elb: ElasticLoadBalancingv2Client, owner: Owner, vpc_id: str, port: int
) -> str:
    existing = _find_target_group(elb, owner.id)
    if existing is not None:
        return existing
    (group,) = elb.create_target_group(
        Name=owner.id,
        Protocol="TCP",
        Port=port,
        VpcId=vpc_id,
        TargetType="instance",
        Tags=_tags(owner),
    )["TargetGroups"]
    return group["TargetGroupArn"]


def _tags(owner: Owner) -> list[TagTypeDef]:
    return [{"Key": key, "Value": value} for key, value in owner.tags.items()]
