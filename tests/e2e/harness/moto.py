"""A process of moto, which simulates AWS, and a view of its content."""

from __future__ import annotations

import gzip
import os
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from boto3.session import Session

from capsmith.clusters.lab.simulated.kubelet import Server
from capsmith.clusters.processes.process import Process, free_port, probe_port

from .cloud import CloudCluster, Event, SimulatedCloud

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef, InstanceTypeDef

OWNER_TAG = "ec2.cluster.x-k8s.io/owner"
"""With which the EC2 example marks what it creates."""
_OWNED: list[FilterTypeDef] = [{"Name": "tag-key", "Values": [OWNER_TAG]}]
_TERMINATED = ("shutting-down", "terminated")


class MotoCloud(SimulatedCloud):
    """EC2 as a simulated cloud; it never forgets an instance, so it is its own journal."""

    def __init__(self, folder: Path, images: Path, region: str) -> None:
        """`images` describes the AMIs that exist."""
        super().__init__(folder)
        self._port = free_port()
        argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self._port)]
        env = {**os.environ, "MOTO_AMIS_PATH": str(images)}
        self.process = Process("moto", argv, folder / "moto.log", env)
        session = Session(aws_access_key_id="any", aws_secret_access_key="any", region_name=region)
        self._ec2 = session.client("ec2", endpoint_url=self.url)
        self._elb = session.client("elbv2", endpoint_url=self.url)

    @property
    def url(self) -> str:
        """Return the endpoint of all services."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start moto without any resources."""
        self.process.start()
        self.process.wait_ready(probe_port(self._port))

    def servers(self, cluster: str | None = None) -> list[Server]:
        found = [_server(each) for each in self._instances() if not _is_terminated(each)]
        return [server for server in found if cluster is None or server.cluster == cluster]

    def clusters(self) -> list[CloudCluster]:
        """Return everything else that a provider created."""
        ec2, own = self._ec2, _OWNED
        ids = [each["VpcId"] for each in ec2.describe_vpcs(Filters=own)["Vpcs"]]
        ids += [each["SubnetId"] for each in ec2.describe_subnets(Filters=own)["Subnets"]]
        ids += [each["VolumeId"] for each in ec2.describe_volumes(Filters=own)["Volumes"]]
        groups = ec2.describe_security_groups(Filters=own)["SecurityGroups"]
        ids += [each["GroupId"] for each in groups]
        gateways = ec2.describe_internet_gateways(Filters=own)["InternetGateways"]
        ids += [each["InternetGatewayId"] for each in gateways]
        balancers = self._elb.describe_load_balancers()["LoadBalancers"]
        ids += [each["LoadBalancerArn"] for each in balancers]
        targets = self._elb.describe_target_groups()["TargetGroups"]
        ids += [each["TargetGroupArn"] for each in targets]
        return [CloudCluster(id, id) for id in ids]

    def security_groups(self) -> dict[str, set[str]]:
        """Return the running instances of each of a provider's security groups, by id."""
        found = self._ec2.describe_security_groups(Filters=_OWNED)["SecurityGroups"]
        members: dict[str, set[str]] = {group["GroupId"]: set() for group in found}
        for instance in self._instances():
            for interface in instance["NetworkInterfaces"] if not _is_terminated(instance) else ():
                for group in interface["Groups"]:
                    members[group["GroupId"]].add(instance["InstanceId"])
        return members

    def journal(self) -> list[Event]:
        """Return the creations; an instance is named by its owner, which must not have two."""
        return [Event("create", "server", _tags(each)[OWNER_TAG]) for each in self._instances()]

    def terminate(self, server: Server) -> None:
        """Terminate an instance, as a failure of its host would."""
        self._ec2.terminate_instances(InstanceIds=[server.id])

    def user_data(self, server: Server) -> str:
        """Return the user data that an instance gets at its first start."""
        found = self._ec2.describe_instance_attribute(InstanceId=server.id, Attribute="userData")
        return gzip.decompress(b64decode(found["UserData"]["Value"])).decode()

    def _instances(self) -> Iterator[InstanceTypeDef]:
        for reservation in self._ec2.describe_instances()["Reservations"]:
            yield from reservation["Instances"]


def _server(instance: InstanceTypeDef) -> Server:
    tags, prefix = _tags(instance), "kubernetes.io/cluster/"
    (cluster,) = (key.removeprefix(prefix) for key in tags if key.startswith(prefix))
    zone, id = instance["Placement"]["AvailabilityZone"], instance["InstanceId"]
    return Server(id, tags["Name"], f"aws:///{zone}/{id}", cluster, user_data=None)


def _is_terminated(instance: InstanceTypeDef) -> bool:
    return instance["State"]["Name"] in _TERMINATED


def _tags(instance: InstanceTypeDef) -> dict[str, str]:
    return {each["Key"]: each["Value"] for each in instance["Tags"]}
