"""Unit tests of Ec2MachineReconciler; they need no API server."""

from __future__ import annotations

import gzip
import random
from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from capsmith_runtime.infrastructure import (
    Deleted,
    InfraClusterView,
    InfraMachineState,
    ReconcileError,
    TerminalError,
    Terminated,
    Waiting,
)
from capsmith_runtime.testing import infrastructure as testing
from capsmith_runtime.testing.faults import Faults
from capsmith_runtime.testing.kubernetes import fake_client
from moto.ec2.models import ec2_backends

from cluster_api_provider_ec2._generated.api.ec2_cluster import Ec2ClusterSpec
from cluster_api_provider_ec2._generated.api.ec2_machine import Ec2MachineSpec
from cluster_api_provider_ec2._generated.wiring import load
from cluster_api_provider_ec2.cloud import LISTED_SECONDS
from cluster_api_provider_ec2.controllers.ec2_cluster import Ec2ClusterReconciler
from cluster_api_provider_ec2.controllers.ec2_machine import (
    Ec2MachineReconciler,
    Scope,
)

from .infrastructure import REGION, Infrastructure, open_session

ACCOUNT = "123456789012"
CLUSTER = {"region": REGION, "identityRef": {"kind": "Ec2Identity", "name": "ec2"}}
MACHINE = {"instanceType": "t3.large", "amiID": "ami-0123456789abcdef0"}


@pytest.fixture
def view(aws: Infrastructure) -> InfraClusterView:
    """A cluster that is provisioned."""
    spec = testing.spec_from(Ec2ClusterSpec, CLUSTER)
    scope = testing.infra_cluster(spec, session=open_session())
    scope = replace(scope, client=fake_client(load("infrastructure")))
    waiting = Ec2ClusterReconciler().reconcile_normal(scope)
    assert isinstance(waiting, Waiting)
    group = aws.cloud.ec2.create_security_group(
        GroupName="nodes", Description="nodes", VpcId=waiting.status.vpc_id
    )
    status = replace(waiting.status, security_group_id=group["GroupId"])
    return testing.infra_cluster_view(CLUSTER, status=status)


def _machine(view: InfraClusterView, *, spec: dict[str, Any] | None = None, **more: Any) -> Scope:
    typed = testing.spec_from(Ec2MachineSpec, {**MACHINE, **(spec or {})})
    return testing.infra_machine(typed, infra_cluster=view, session=open_session(), **more)


def _reconcile(machine: Scope) -> InfraMachineState:
    state = Ec2MachineReconciler().reconcile_normal(machine)
    assert isinstance(state, InfraMachineState)
    return state


def _delete(
    view: InfraClusterView, provider_id: str | None = None, seconds: float = 0.0
) -> Deleted | Waiting:
    spec = testing.spec_from(Ec2MachineSpec, MACHINE)
    scope = testing.infra_machine_deletion(
        spec,
        infra_cluster=view,
        provider_id=provider_id,
        session=open_session(),
        deletion_seconds=seconds,
    )
    return Ec2MachineReconciler().reconcile_delete(scope)


def _set_state(instance_id: str, code: int, name: str) -> None:
    """Put an instance into a state that moto passes over."""
    state = ec2_backends[ACCOUNT][REGION].get_instance(instance_id)._state
    state.code, state.name = code, name


def _refuse(code: str) -> Any:
    def call(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "refused"}}, "RunInstances")

    return call


def test_machine_is_created_once(aws: Infrastructure, view: InfraClusterView) -> None:
    machine = _machine(view, failure_domain="us-east-1b")

    first, again = (_reconcile(machine) for _ in range(2))

    assert first == again
    assert first.provider_id == f"aws:///us-east-1b/{first.status.instance_id}"
    assert first.failure_domain == "us-east-1b"
    assert {each.type for each in first.addresses} >= {"InternalIP", "InternalDNS", "ExternalIP"}
    assert aws.servers() == [first.status.instance_id]
    assert [each.reason for each in machine.events.recorded] == ["InstanceCreated"]


def test_the_instance_is_as_specified(aws: Infrastructure, view: InfraClusterView) -> None:
    spec = {"spot": True, "rootVolume": {"sizeGiB": 50}, "additionalTags": {"team": "a"}}
    state = _reconcile(_machine(view, spec=spec, bootstrap=b"#cloud-config: here"))
    instance_id = state.status.instance_id

    (reservation,) = aws.cloud.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"]
    (instance,) = reservation["Instances"]
    tags = {each["Key"]: each["Value"] for each in instance["Tags"]}
    assert tags["team"] == "a"
    assert tags["kubernetes.io/cluster/cluster"] == "owned"
    filters: Any = [{"Name": "attachment.instance-id", "Values": [instance_id]}]
    (volume,) = aws.cloud.ec2.describe_volumes(Filters=filters)["Volumes"]
    assert (volume["Size"], volume["Encrypted"]) == (50, True)
    data = aws.cloud.ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")
    assert gzip.decompress(b64decode(data["UserData"]["Value"])) == b"#cloud-config: here"
    assert state.interruptible


def test_machines_without_failure_domain_spread(view: InfraClusterView) -> None:
    states = [_reconcile(_machine(view, name=f"m{number}")) for number in range(8)]

    assert len({state.failure_domain for state in states}) == 3


def test_a_pending_instance_is_waited_for(
    aws: Infrastructure, view: InfraClusterView, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = _reconcile(_machine(view))
    _set_state(state.status.instance_id, 0, "pending")

    waiting = Ec2MachineReconciler().reconcile_normal(_machine(view))

    assert isinstance(waiting, Waiting)
    assert waiting.provider_id == state.provider_id
    assert waiting.status.instance_state == "pending"


def test_an_instance_that_is_not_listed_yet_is_waited_for_and_deleted(
    aws: Infrastructure, view: InfraClusterView
) -> None:
    aws.simulate(Faults(late=10))

    first = Ec2MachineReconciler().reconcile_normal(_machine(view))
    assert isinstance(first, Waiting)
    assert first.provider_id is not None
    known = _machine(view, provider_id=first.provider_id, is_provisioned=False)
    assert Ec2MachineReconciler().reconcile_normal(known) == first
    assert len(aws.servers()) == 1

    while isinstance(_delete(view, provider_id=first.provider_id), Waiting):
        pass
    assert aws.servers() == []


def test_an_instance_of_another_owner_is_not_deleted(
    aws: Infrastructure, view: InfraClusterView
) -> None:
    """The user who creates a machine may write any provider id."""
    region = view.spec(Ec2ClusterSpec).region
    ec2 = open_session().region(region).ec2
    (created,) = ec2.run_instances(ImageId=MACHINE["amiID"], MinCount=1, MaxCount=1)["Instances"]
    provider_id = f"aws:///{region}a/{created['InstanceId']}"

    assert isinstance(_delete(view, provider_id=provider_id), Waiting)
    assert _delete(view, provider_id=provider_id, seconds=LISTED_SECONDS) == Deleted()
    assert aws.servers() == [created["InstanceId"]]


def test_an_instance_whose_id_was_not_recorded_is_deleted_when_it_is_listed(
    aws: Infrastructure, view: InfraClusterView
) -> None:
    aws.simulate(Faults(late=3))
    Ec2MachineReconciler().reconcile_normal(_machine(view))

    results = [_delete(view) for _ in range(3)]

    assert all(isinstance(each, Waiting) for each in results)
    assert aws.servers() == []
    assert _delete(view) == Deleted()


def test_a_machine_without_instance_is_deleted_when_none_can_be_listed_any_longer(
    view: InfraClusterView,
) -> None:
    assert isinstance(_delete(view), Waiting)
    assert _delete(view, seconds=LISTED_SECONDS) == Deleted()


def test_a_repeated_request_creates_no_second_instance(
    aws: Infrastructure, view: InfraClusterView
) -> None:
    """A manager that was killed has recorded nothing of an instance that is not listed yet."""
    aws.simulate(Faults(late=10))

    results = [Ec2MachineReconciler().reconcile_normal(_machine(view)) for _ in range(2)]

    assert results[0] == results[1]
    assert len(aws.servers()) == 1


def test_a_stopped_instance_is_not_ready(view: InfraClusterView) -> None:
    state = _reconcile(_machine(view))
    _set_state(state.status.instance_id, 80, "stopped")

    stopped = _reconcile(_machine(view, provider_id=state.provider_id))

    assert (stopped.ready, stopped.reason) == (False, "InstanceNotRunning")


def test_an_instance_that_disappeared_is_not_created_again(
    aws: Infrastructure, view: InfraClusterView
) -> None:
    state = _reconcile(_machine(view))
    aws.remove_server(state.status.instance_id)
    known = _machine(view, provider_id=state.provider_id, is_provisioned=True)
    forgotten = _machine(
        view, name="another", provider_id="aws:///us-east-1a/i-0", is_provisioned=True
    )

    results = [Ec2MachineReconciler().reconcile_normal(each) for each in (known, forgotten)]

    assert [getattr(each, "reason", "") for each in results] == [
        "InstanceTerminated",
        "InstanceNotFound",
    ]
    assert all(isinstance(each, Terminated) for each in results)
    assert aws.servers() == []


@pytest.mark.parametrize(
    ("code", "reason", "retry_after"),
    [
        ("RequestLimitExceeded", "RequestLimitExceeded", 10.0),
        ("InsufficientInstanceCapacity", "InsufficientInstanceCapacity", 60.0),
        ("InvalidGroup.NotFound", "InvalidGroupNotFound", None),
    ],
)
def test_errors_that_pass_are_retried(
    aws: Infrastructure,
    view: InfraClusterView,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    reason: str,
    retry_after: float | None,
) -> None:
    monkeypatch.setattr(aws.cloud.ec2, "run_instances", _refuse(code))

    with pytest.raises(ReconcileError) as raised:
        _reconcile(_machine(view))

    assert not isinstance(raised.value, TerminalError)
    assert (raised.value.reason, raised.value.retry_after) == (reason, retry_after)


def test_an_invalid_image_is_a_terminal_error(view: InfraClusterView) -> None:
    with pytest.raises(TerminalError) as raised:
        _reconcile(_machine(view, spec={"amiID": "ami-00000000"}))

    assert raised.value.reason == "InvalidAMIIDNotFound"
    assert "ami-00000000" in raised.value.message


def test_an_invalid_type_is_a_terminal_error(
    aws: Infrastructure, view: InfraClusterView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws.cloud.ec2, "run_instances", _refuse("InvalidParameterValue"))

    with pytest.raises(TerminalError, match="InvalidParameterValue"):
        _reconcile(_machine(view))


def test_bootstrap_data_may_be_too_long(aws: Infrastructure, view: InfraClusterView) -> None:
    noise = random.Random(0).randbytes(17 * 1024)

    with pytest.raises(TerminalError, match="BootstrapDataTooLong"):
        _reconcile(_machine(view, bootstrap=noise))

    assert aws.servers() == []


def test_an_unknown_zone_is_reported(view: InfraClusterView) -> None:
    with pytest.raises(ReconcileError, match="no subnet in us-east-1f"):
        _reconcile(_machine(view, failure_domain="us-east-1f"))


def test_a_machine_is_deleted_when_its_instance_is_terminated(
    aws: Infrastructure, view: InfraClusterView
) -> None:
    state = _reconcile(_machine(view))

    first = _delete(view)
    _set_state(state.status.instance_id, 32, "shutting-down")
    second = _delete(view)
    _set_state(state.status.instance_id, 48, "terminated")

    assert isinstance(first, Waiting)
    assert isinstance(second, Waiting)
    assert _delete(view) == Deleted()
    assert aws.servers() == []


def test_the_capacity_of_an_instance_type(view: InfraClusterView) -> None:
    spec = testing.spec_from(Ec2MachineSpec, MACHINE)
    template = testing.infra_machine_template(spec, infra_cluster=view, session=open_session())

    capacity = Ec2MachineReconciler().capacity(template)

    assert capacity.resources == {"cpu": "2", "memory": "8192Mi"}
    assert (capacity.architecture, capacity.operating_system) == ("amd64", "linux")
