"""Instances of machines."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from capsmith_runtime.infrastructure import (
    Address,
    BootstrapData,
    MachineCapacity,
    TerminalError,
)

from ._generated.api.ec2_machine import Ec2MachineSpec
from .cloud import ignored_errors
from .owner import Owner, owned_by

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import (
        BlockDeviceMappingTypeDef,
        InstanceTypeDef,
        RunInstancesRequestTypeDef,
    )

MAX_USER_DATA = 16 * 1024
_GONE = ("shutting-down", "terminated")
_ARCHITECTURES: Final[dict[str, Literal["amd64", "arm64"]]] = {"x86_64": "amd64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an instance is created."""

    subnet_id: str
    security_group_ids: Sequence[str]


def find_instance(ec2: EC2Client, owner_id: str) -> InstanceTypeDef | None:
    """Return the instance of a machine, if there is one: a terminated one only if no other."""
    found = [
        instance
        for page in ec2.get_paginator("describe_instances").paginate(Filters=owned_by(owner_id))
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
    ]
    return min(found, key=lambda each: (is_gone(each), each["InstanceId"]), default=None)


def run_instance(
    ec2: EC2Client, owner: Owner, spec: Ec2MachineSpec, placement: Placement, data: BootstrapData
) -> InstanceTypeDef:
    """Create the instance of a machine; a repeated call returns the same instance."""
    request: RunInstancesRequestTypeDef = {
        "ClientToken": owner.id,
        "MinCount": 1,
        "MaxCount": 1,
        "ImageId": spec.ami_id,
        "InstanceType": spec.instance_type,  # type: ignore[typeddict-item] # AWS adds types
        "BlockDeviceMappings": [_root_volume(ec2, spec)],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
        "NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "SubnetId": placement.subnet_id,
                "Groups": placement.security_group_ids,
                "AssociatePublicIpAddress": spec.public_ip,
            }
        ],
        "TagSpecifications": owner.tags_for("instance", "volume"),
        "UserData": _user_data(data),  # type: ignore[typeddict-item] # the stubs know only text
    }
    if spec.key_name:
        request["KeyName"] = spec.key_name
    if spec.iam_instance_profile:
        request["IamInstanceProfile"] = {"Name": spec.iam_instance_profile}
    if spec.spot:
        request["InstanceMarketOptions"] = {"MarketType": "spot"}
    return ec2.run_instances(**request)["Instances"][0]


def capacity_of(ec2: EC2Client, instance_type: str) -> MachineCapacity:
    """Return what an instance of a type has."""
    # The stubs know the types of one day.
    names: Sequence[Any] = [instance_type]
    (found,) = ec2.describe_instance_types(InstanceTypes=names)["InstanceTypes"]
    architectures = found["ProcessorInfo"]["SupportedArchitectures"]
    known = [_ARCHITECTURES[each] for each in architectures if each in _ARCHITECTURES]
    return MachineCapacity(
        resources={
            "cpu": str(found["VCpuInfo"]["DefaultVCpus"]),
            "memory": f"{found['MemoryInfo']['SizeInMiB']}Mi",
        },
        architecture=known[0] if known else None,
        operating_system="linux",
    )


def terminate_instance(ec2: EC2Client, instance_id: str) -> bool:
    """Terminate an instance, which takes a while; return whether it was terminated before."""
    with ignored_errors("InvalidInstanceID.NotFound"):
        (change,) = ec2.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"]
        return change["PreviousState"]["Name"] == "terminated"
    return True


def is_gone(instance: InstanceTypeDef) -> bool:
    """Return whether an instance is terminated, or about to be."""
    return instance["State"]["Name"] in _GONE


def provider_id(instance: InstanceTypeDef) -> str:
    """Return the id that the cloud controller manager writes into the Node."""
    return f"aws:///{instance['Placement']['AvailabilityZone']}/{instance['InstanceId']}"


def addresses(instance: InstanceTypeDef) -> list[Address]:
    """Return the addresses that an instance has so far."""
    candidates = (
        Address("InternalIP", instance.get("PrivateIpAddress", "")),
        Address("InternalDNS", instance.get("PrivateDnsName", "")),
        Address("ExternalIP", instance.get("PublicIpAddress", "")),
        Address("ExternalDNS", instance.get("PublicDnsName", "")),
    )
    return [each for each in candidates if each.address]


def _root_volume(ec2: EC2Client, spec: Ec2MachineSpec) -> BlockDeviceMappingTypeDef:
    (image,) = ec2.describe_images(ImageIds=[spec.ami_id])["Images"]
    volume = spec.root_volume
    return {
        "DeviceName": image["RootDeviceName"],
        "Ebs": {
            "VolumeSize": volume.size_gib,
            "VolumeType": volume.type_,
            "Encrypted": volume.encrypted,
            "DeleteOnTermination": True,
        },
    }


def _user_data(data: BootstrapData) -> bytes:
    """Return bootstrap data, compressed if cloud-init reads them: kubeadm's can be too long."""
    # The time is fixed: with the same token, EC2 accepts only the same request.
    value = gzip.compress(data.value, mtime=0) if data.format == "cloud-config" else data.value
    if len(value) > MAX_USER_DATA:
        text = f"{len(value)} bytes of bootstrap data; EC2 accepts {MAX_USER_DATA}"
        raise TerminalError("BootstrapDataTooLong", text)
    return value
