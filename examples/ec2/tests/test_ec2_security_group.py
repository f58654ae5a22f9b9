"""Unit tests of Ec2SecurityGroupReconciler; they need no API server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from capsmith_runtime.resource import Deleted, Owner, ReconcileError, ResourceState, Waiting
from capsmith_runtime.testing import resource as testing

from cluster_api_provider_ec2._generated.api.ec2_security_group import Ec2SecurityGroupSpec
from cluster_api_provider_ec2.cloud import LISTED_SECONDS
from cluster_api_provider_ec2.controllers.ec2_security_group import (
    Ec2SecurityGroupReconciler,
    Scope,
)

from .infrastructure import REGION, Infrastructure, open_session

SSH = {"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidr": "10.1.2.3/8"}
DNS = {"protocol": "udp", "fromPort": 53, "toPort": 53, "cidr": "192.0.2.0/24"}
MEMBERS = {"protocol": "all"}
EC2_CLUSTER = Owner(
    group="infrastructure.cluster.x-k8s.io",
    kind="Ec2Cluster",
    name="cluster",
    uid="0001",
    controller=True,
)


def _group(*ingress: dict[str, Any], owners: tuple[Owner, ...] = (), **fields: Any) -> Scope:
    spec = testing.spec_from(
        Ec2SecurityGroupSpec, {"region": REGION, "ingress": list(ingress), **fields}
    )
    cluster = testing.core_cluster("cluster")
    return testing.resource(spec, cluster=cluster, owners=owners, session=open_session())


def _reconcile(group: Scope) -> str:
    """Return the id of the group."""
    state = Ec2SecurityGroupReconciler().reconcile_normal(group)
    assert isinstance(state, ResourceState)
    assert isinstance(state.status.group_id, str)
    return state.status.group_id


def _delete(seconds: float = LISTED_SECONDS) -> Deleted | Waiting:
    spec = testing.spec_from(Ec2SecurityGroupSpec, {"region": REGION})
    scope = testing.resource_deletion(spec, session=open_session())
    scope = replace(scope, deletion_seconds=seconds)
    return Ec2SecurityGroupReconciler().reconcile_delete(scope)


def _rules(aws: Infrastructure, group_id: str) -> dict[tuple[Any, ...], str]:
    """Return the id of each rule, by protocol, ports and source."""
    found = aws.cloud.ec2.describe_security_group_rules(
        Filters=[{"Name": "group-id", "Values": [group_id]}]
    )["SecurityGroupRules"]
    return {
        (
            each["IpProtocol"],
            each["FromPort"],
            each["ToPort"],
            each.get("CidrIpv4") or each["ReferencedGroupInfo"]["GroupId"],
        ): each["SecurityGroupRuleId"]
        for each in found
        if not each["IsEgress"]
    }


def _refuse(code: str) -> Any:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "not now"}}, "call")

    return refuse


def test_a_group_is_created_once_with_its_rules(aws: Infrastructure) -> None:
    first, again = (_reconcile(_group(SSH, MEMBERS)) for _ in range(2))

    assert first == again
    assert aws.resources() == [first]
    assert _rules(aws, first).keys() == {
        ("tcp", 22, 22, "10.0.0.0/8"),
        ("-1", -1, -1, first),
    }


def test_only_rules_that_differ_are_changed(aws: Infrastructure) -> None:
    group_id = _reconcile(_group(SSH, MEMBERS))
    before = _rules(aws, group_id)

    assert _reconcile(_group(DNS, MEMBERS)) == group_id

    after, kept = _rules(aws, group_id), ("-1", -1, -1, group_id)
    assert after.keys() == {("udp", 53, 53, "192.0.2.0/24"), kept}
    assert after[kept] == before[kept]


def test_rules_that_others_add_are_removed(aws: Infrastructure) -> None:
    group_id = _reconcile(_group(SSH))
    before = _rules(aws, group_id)
    permission: Any = {
        "IpProtocol": "tcp",
        "FromPort": 1,
        "ToPort": 9,
        "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
        "Ipv6Ranges": [{"CidrIpv6": "::/0"}],
    }
    aws.cloud.ec2.authorize_security_group_ingress(GroupId=group_id, IpPermissions=[permission])

    _reconcile(_group(SSH))

    assert _rules(aws, group_id) == before


def test_the_group_of_an_ec2_cluster_is_in_its_vpc_and_has_its_tags(aws: Infrastructure) -> None:
    vpc_id = aws.cloud.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    fields = {"vpcID": vpc_id, "description": "Nodes", "additionalTags": {"team": "a"}}

    group_id = _reconcile(_group(owners=(EC2_CLUSTER,), **fields))

    (found,) = aws.cloud.ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"]
    assert (found["VpcId"], found["Description"]) == (vpc_id, "Nodes")
    tags = {each["Key"]: each["Value"] for each in found["Tags"]}
    assert tags["team"] == "a"
    assert tags["kubernetes.io/cluster/cluster"] == "owned"


def test_a_further_group_does_not_have_the_tag_of_the_cluster(aws: Infrastructure) -> None:
    group_id = _reconcile(_group())

    (found,) = aws.cloud.ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"]
    assert not [each for each in found["Tags"] if each["Key"].startswith("kubernetes.io/")]


@pytest.mark.parametrize(
    "call", ["authorize_security_group_ingress", "revoke_security_group_ingress"]
)
def test_an_interrupted_change_is_completed(
    aws: Infrastructure, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    group_id = _reconcile(_group(SSH))
    with monkeypatch.context() as patch:
        patch.setattr(aws.cloud.ec2, call, _refuse("InternalError"))
        with pytest.raises(ReconcileError, match="InternalError"):
            _reconcile(_group(DNS))

    assert _reconcile(_group(DNS)) == group_id
    assert _rules(aws, group_id).keys() == {("udp", 53, 53, "192.0.2.0/24")}


def test_a_group_whose_id_was_not_recorded_is_deleted_when_it_is_listed(
    aws: Infrastructure,
) -> None:
    before = _delete(seconds=0.0)
    _reconcile(_group(SSH))
    listed = _delete(seconds=5.0)

    assert isinstance(before, Waiting)
    assert isinstance(listed, Waiting)
    assert aws.resources() == []
    assert _delete() == Deleted()


def test_a_group_in_use_is_waited_for(aws: Infrastructure, monkeypatch: pytest.MonkeyPatch) -> None:
    _reconcile(_group(SSH))
    with monkeypatch.context() as patch:
        patch.setattr(aws.cloud.ec2, "delete_security_group", _refuse("DependencyViolation"))
        waiting = _delete()

    assert isinstance(waiting, Waiting)
    assert waiting.reason == "SecurityGroupInUse"
    assert [_delete() for _ in range(2)] == [Deleted(), Deleted()]
    assert aws.resources() == []
