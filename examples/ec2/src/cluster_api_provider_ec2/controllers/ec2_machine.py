"""Instances of Machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capsmith_runtime.infrastructure import (
    Deleted,
    InfraMachineDeleteScope,
    InfraMachineReconciler,
    InfraMachineScope,
    InfraMachineState,
    InfraMachineTemplateScope,
    MachineCapacity,
    ReconcileError,
    Terminated,
    Waiting,
)

from .._generated.api.ec2_cluster import Ec2ClusterSpec, Ec2ClusterStatus
from .._generated.api.ec2_machine import Ec2MachineSpec, Ec2MachineStatus
from ..cloud import LISTED_SECONDS, AwsSessions, Cloud, reported_errors
from ..instances import (
    Placement,
    addresses,
    capacity_of,
    find_instance,
    is_gone,
    provider_id,
    run_instance,
    terminate_instance,
)
from ..owner import Owner

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import InstanceTypeDef

POLL_SECONDS = 5.0

Scope = InfraMachineScope[Ec2MachineSpec]
DeleteScope = InfraMachineDeleteScope[Ec2MachineSpec]
TemplateScope = InfraMachineTemplateScope[Ec2MachineSpec]


class Ec2MachineReconciler(InfraMachineReconciler[Ec2MachineSpec]):
    """Reconcile an instance."""

    session_factory = AwsSessions

    def reconcile_normal(self, machine: Scope) -> InfraMachineState | Waiting | Terminated:
        """Look up the instance, create it if it never existed, and return its state."""
        cloud, recorded_id = _cloud(machine), machine.provider_id
        with reported_errors():
            instance = find_instance(cloud.ec2, machine.short_id)
            if instance is None and machine.is_provisioned:
                return Terminated("InstanceNotFound", f"{recorded_id} no longer exists")
            if instance is None and recorded_id is None:
                recorded_id = self._create(cloud, machine)
                instance = find_instance(cloud.ec2, machine.short_id)
            if instance is None:
                # EC2 lists an instance some time after its creation: it is not lost.
                return Waiting(
                    "InstanceNotListed", requeue_after=POLL_SECONDS, provider_id=recorded_id
                )
            return self._state(cloud, machine, instance)

    def reconcile_delete(self, machine: DeleteScope) -> Deleted | Waiting:
        """Terminate the instance.  Return Deleted when it is terminated, or never existed.

        Its tag says that it is the machine's; the provider id may be one that a user has written.
        """
        cloud = _cloud(machine)
        with reported_errors():
            instance = find_instance(cloud.ec2, machine.short_id)
            if instance is None and machine.deletion_seconds < LISTED_SECONDS:
                # One that was created a moment ago has to be terminated too.
                return Waiting("InstanceNotListed", requeue_after=POLL_SECONDS)
            if instance is None or terminate_instance(cloud.ec2, instance["InstanceId"]):
                return Deleted()
            instance_id = instance["InstanceId"]
        machine.events.normal("InstanceTerminating", instance_id)
        return Waiting("InstanceTerminating", requeue_after=POLL_SECONDS)

    def capacity(self, template: TemplateScope) -> MachineCapacity:
        """Return what an instance of the template's type has."""
        with reported_errors():
            return capacity_of(_cloud(template).ec2, template.spec.instance_type)

    def _create(self, cloud: Cloud, machine: Scope) -> str:
        """Create the instance and return its provider id."""
        owner, placement = _owner(machine), _placement(machine)
        data = machine.bootstrap_data()
        instance = run_instance(cloud.ec2, owner, machine.spec, placement, data)
        message = f"{instance['InstanceId']} in {placement.subnet_id}"
        machine.events.normal("InstanceCreated", message)
        return provider_id(instance)

    def _state(
        self, cloud: Cloud, machine: Scope, instance: InstanceTypeDef
    ) -> InfraMachineState | Waiting | Terminated:
        status = _status(instance)
        if is_gone(instance):
            message = instance.get("StateReason", {}).get("Message", "")
            return Terminated("InstanceTerminated", message, status)
        if instance["State"]["Name"] == "pending":
            return Waiting(
                "InstancePending",
                requeue_after=POLL_SECONDS,
                status=status,
                provider_id=provider_id(instance),
                addresses=addresses(instance),
            )
        is_running = instance["State"]["Name"] == "running"
        return InfraMachineState(
            provider_id=provider_id(instance),
            addresses=addresses(instance),
            failure_domain=instance["Placement"]["AvailabilityZone"],
            interruptible=machine.spec.spot,
            ready=is_running,
            reason="" if is_running else "InstanceNotRunning",
            message="" if is_running else f"the instance is {instance['State']['Name']}",
            status=status,
        )


def _cloud(machine: Scope | DeleteScope | TemplateScope) -> Cloud:
    aws = machine.session(AwsSessions)
    return aws.region(machine.require_infra_cluster().spec(Ec2ClusterSpec).region)


def _owner(machine: Scope) -> Owner:
    tags = machine.require_infra_cluster().spec(Ec2ClusterSpec).additional_tags
    tags = {**tags, **machine.spec.additional_tags}
    return Owner(machine.short_id, machine.name, machine.cluster.name, tags)


def _cluster_status(machine: Scope) -> Ec2ClusterStatus:
    return machine.require_infra_cluster().status(Ec2ClusterStatus)


def _placement(machine: Scope) -> Placement:
    status = _cluster_status(machine)
    if status.security_group_id is None or not status.subnets:
        raise ReconcileError("NoNetwork", "the Ec2Cluster has no network yet")
    subnets = {subnet.zone: subnet.id for subnet in status.subnets}
    # The same zone at each call, and all zones alike: EC2 accepts a repeated request only if it is
    # the same one.
    zone = machine.failure_domain or sorted(subnets)[int(machine.short_id, 36) % len(subnets)]
    if zone not in subnets:
        raise ReconcileError("NoSubnet", f"the Ec2Cluster has no subnet in {zone}")
    groups = [status.security_group_id, *machine.spec.additional_security_group_ids]
    return Placement(subnets[zone], groups)


def _status(instance: InstanceTypeDef) -> Ec2MachineStatus:
    return Ec2MachineStatus(
        instance_id=instance["InstanceId"], instance_state=instance["State"]["Name"]
    )
