"""Unit tests of Ec2ClusterReconciler; they need no API server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from capsmith_runtime.infrastructure import (
    Deleted,
    Endpoint,
    InfraClusterState,
    InfraMachineView,
    KubernetesClient,
    ReconcileError,
    Waiting,
)
from capsmith_runtime.testing import infrastructure as testing
from capsmith_runtime.testing.kubernetes import fake_client

from cluster_api_provider_ec2._generated.api.ec2_cluster import Ec2ClusterSpec, Ec2ClusterStatus
from cluster_api_provider_ec2._generated.api.ec2_machine import Ec2MachineStatus
from cluster_api_provider_ec2._generated.api.ec2_security_group import (
    Ec2SecurityGroup,
    Ec2SecurityGroupSpec,
    Ec2SecurityGroupSpecIngress,
)
from cluster_api_provider_ec2._generated.wiring import load
from cluster_api_provider_ec2.cloud import LISTED_SECONDS
from cluster_api_provider_ec2.controllers.ec2_cluster import Ec2ClusterReconciler, Scope

from .infrastructure import REGION, Infrastructure, open_session

FIELDS = {"region": REGION, "identityRef": {"kind": "Ec2Identity", "name": "ec2"}}


GROUP = Ec2SecurityGroup.resource
GROUP_ID = "sg-0123456789abcdef0"


def _client(*, ready: bool | None) -> KubernetesClient:
    """Return a client that finds the security group of the cluster, unless ``ready`` is None."""
    spec = Ec2SecurityGroupSpec(region=REGION)
    group = Ec2SecurityGroup(name="cluster", namespace="default", spec=spec).to_dict()
    group["status"] = {
        "groupID": GROUP_ID,
        "conditions": [{"type": "Ready", "status": str(ready)}],
    }
    return fake_client(load("infrastructure"), *[group] * (ready is not None))


def _cluster(
    endpoint: Endpoint | None = None,
    client: KubernetesClient | None = None,
    machines: Sequence[InfraMachineView] = (),
    **fields: Any,
) -> Scope:
    spec = testing.spec_from(Ec2ClusterSpec, {**FIELDS, **fields})
    session = open_session()
    scope = testing.infra_cluster(spec, endpoint=endpoint, machines=machines, session=session)
    return replace(scope, client=client or _client(ready=True))


def _delete(
    client: KubernetesClient | None = None, seconds: float = LISTED_SECONDS
) -> Deleted | Waiting:
    spec = testing.spec_from(Ec2ClusterSpec, FIELDS)
    scope = testing.infra_cluster_deletion(spec, session=open_session())
    scope = replace(scope, client=client or _client(ready=None), deletion_seconds=seconds)
    return Ec2ClusterReconciler().reconcile_delete(scope)


def _reconcile(cluster: Scope) -> InfraClusterState:
    """Reconcile until the load balancer is active, which takes moto one look."""
    state = Ec2ClusterReconciler().reconcile_normal(cluster)
    if isinstance(state, Waiting):
        state = Ec2ClusterReconciler().reconcile_normal(cluster)
    assert isinstance(state, InfraClusterState)
    return state


def test_cluster_is_created_once(aws: Infrastructure) -> None:
    first, again = (_reconcile(_cluster()) for _ in range(2))

    assert first == again
    assert aws.clusters() == [first.status.vpc_id]
    assert first.control_plane_endpoint is not None
    assert first.control_plane_endpoint.host.endswith("amazonaws.com")
    assert len(aws.cloud.elb.describe_load_balancers()["LoadBalancers"]) == 1


def test_zones_are_failure_domains(aws: Infrastructure) -> None:
    zones = ["us-east-1b", "us-east-1d"]
    state = _reconcile(_cluster(availabilityZones=zones, vpcCIDR="10.8.0.0/16"))

    assert [each.name for each in state.failure_domains] == zones
    ids = [subnet.id for subnet in state.status.subnets]
    subnets = aws.cloud.ec2.describe_subnets(SubnetIds=ids)["Subnets"]
    assert {each["AvailabilityZone"]: each["CidrBlock"] for each in subnets} == {
        "us-east-1b": "10.8.0.0/20",
        "us-east-1d": "10.8.16.0/20",
    }


def test_running_control_planes_are_targets(aws: Infrastructure) -> None:
    first, second = (_run_instance(aws) for _ in range(2))
    state = _reconcile(_cluster(machines=[_machine(first), _machine(second), _pending()]))
    assert _targets(aws, state) == {first, second}

    state = _reconcile(_cluster(machines=[_machine(first, deleting=True), _machine(second)]))
    assert _targets(aws, state) == {second}


def _run_instance(aws: Infrastructure) -> str:
    (image,) = aws.cloud.ec2.describe_images()["Images"][:1]
    run = aws.cloud.ec2.run_instances(ImageId=image["ImageId"], MinCount=1, MaxCount=1)
    return run["Instances"][0]["InstanceId"]


def _machine(instance_id: str, *, deleting: bool = False) -> InfraMachineView:
    return testing.infra_machine_view(
        instance_id,
        provider_id=f"aws:///us-east-1a/{instance_id}",
        deleting=deleting,
        status=Ec2MachineStatus(instance_id=instance_id, instance_state="running"),
    )


def _pending() -> InfraMachineView:
    return testing.infra_machine_view("pending", status=Ec2MachineStatus(instance_id="i-1"))


def _targets(aws: Infrastructure, state: InfraClusterState) -> set[str]:
    health = aws.cloud.elb.describe_target_health(TargetGroupArn=state.status.target_group_arn)
    return {each["Target"]["Id"] for each in health["TargetHealthDescriptions"]}


@pytest.mark.parametrize(
    ("service", "call"),
    [
        ("ec2", "attach_internet_gateway"),
        ("ec2", "create_route"),
        ("ec2", "create_subnet"),
        ("elb", "create_load_balancer"),
        ("elb", "create_listener"),
    ],
)
def test_an_interrupted_creation_is_completed(
    aws: Infrastructure, monkeypatch: pytest.MonkeyPatch, service: str, call: str
) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "InternalError", "Message": "try again"}}, call)

    with monkeypatch.context() as patch:
        patch.setattr(getattr(aws.cloud, service), call, refuse)
        with pytest.raises(ReconcileError) as raised:
            _reconcile(_cluster())
        assert raised.value.reason == "InternalError"
    state = _reconcile(_cluster())

    assert aws.clusters() == [state.status.vpc_id]
    (balancer,) = aws.cloud.elb.describe_load_balancers()["LoadBalancers"]
    listeners = aws.cloud.elb.describe_listeners(LoadBalancerArn=balancer["LoadBalancerArn"])
    assert [each["Port"] for each in listeners["Listeners"]] == [6443]


def test_an_endpoint_of_the_user_needs_no_load_balancer(aws: Infrastructure) -> None:
    own = Endpoint("api.example.com", 8443)

    state = _reconcile(_cluster(own, loadBalancer="none"))

    assert state.control_plane_endpoint == own
    assert aws.cloud.elb.describe_load_balancers()["LoadBalancers"] == []


def test_status_is_written_while_the_load_balancer_is_provisioned(aws: Infrastructure) -> None:
    waiting = Ec2ClusterReconciler().reconcile_normal(_cluster())

    assert isinstance(waiting, Waiting)
    assert waiting.reason == "LoadBalancerProvisioning"
    assert isinstance(waiting.status, Ec2ClusterStatus)
    assert aws.clusters() == [waiting.status.vpc_id]


@pytest.mark.parametrize("ready", [None, False])
def test_the_security_group_is_created_and_waited_for(
    aws: Infrastructure, ready: bool | None
) -> None:
    client = _client(ready=ready)

    waiting = Ec2ClusterReconciler().reconcile_normal(_cluster(client=client))

    assert isinstance(waiting, Waiting)
    assert (waiting.reason, waiting.requeue_after) == ("SecurityGroupNotReady", None)
    found = client.get(GROUP.api_version, GROUP.kind, "cluster")
    assert found is not None
    group = Ec2SecurityGroup.from_dict(found)
    assert (group.spec.region, [group.spec.vpc_id]) == (REGION, aws.clusters())
    assert group.spec.ingress == (
        Ec2SecurityGroupSpecIngress(protocol="all"),
        Ec2SecurityGroupSpecIngress(protocol="tcp", from_port=6443, to_port=6443, cidr="0.0.0.0/0"),
    )
    assert [each["controller"] for each in group.owner_references] == [True]


def test_the_id_of_the_security_group_is_taken_over(aws: Infrastructure) -> None:
    assert _reconcile(_cluster()).status.security_group_id == GROUP_ID


def test_the_network_is_deleted_after_the_security_group(aws: Infrastructure) -> None:
    state = _reconcile(_cluster(Endpoint("api.example.com", 6443), loadBalancer="none"))
    client = _client(ready=True)

    waiting = _delete(client)

    assert isinstance(waiting, Waiting)
    assert (waiting.reason, waiting.requeue_after) == ("DeletingSecurityGroup", None)
    assert aws.clusters() == [state.status.vpc_id]
    assert _delete(client) == Deleted()
    assert aws.clusters() == []


def test_a_network_whose_id_was_not_recorded_is_deleted_when_it_is_listed(
    aws: Infrastructure,
) -> None:
    before = _delete(seconds=0.0)
    _reconcile(_cluster(Endpoint("api.example.com", 6443), loadBalancer="none"))
    listed = _delete(seconds=5.0)

    assert isinstance(before, Waiting)
    assert isinstance(listed, Waiting)
    assert aws.clusters() == []
    assert _delete() == Deleted()


def test_nothing_is_left_of_a_cluster(aws: Infrastructure) -> None:
    _reconcile(_cluster())

    results = [_delete() for _ in range(3)]

    assert isinstance(results[0], Waiting)
    assert results[1:] == [Deleted(), Deleted()]
    assert aws.clusters() == []
    assert aws.cloud.elb.describe_target_groups()["TargetGroups"] == []


def test_a_network_in_use_is_waited_for(
    aws: Infrastructure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "DependencyViolation"}}, "DeleteSubnet")

    _reconcile(_cluster(Endpoint("api.example.com", 6443), loadBalancer="none"))
    with monkeypatch.context() as patch:
        patch.setattr(aws.cloud.ec2, "delete_subnet", refuse)
        waiting = _delete()

    assert isinstance(waiting, Waiting)
    assert waiting.reason == "DeletingNetwork"
    assert _delete() == Deleted()
