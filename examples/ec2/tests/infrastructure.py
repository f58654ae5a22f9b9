"""moto's server in place of AWS, for the conformance kit and for unit tests."""

from __future__ import annotations

import functools
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from boto3.session import Session
from capsmith_runtime.infrastructure import Credentials
from capsmith_runtime.testing.faults import Faults
from moto.server import ThreadedMotoServer

from cluster_api_provider_ec2.cloud import Aws, Cloud, boto_session
from cluster_api_provider_ec2.instances import is_gone

from .faults import FaultInjector, honour_client_tokens

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import InstanceTypeDef

REGION = "us-east-1"
CREDENTIALS = {"accessKeyID": "change-me", "secretAccessKey": "change-me"}
"""Those of config/samples."""

_INJECTOR = FaultInjector()


@functools.cache
def _server_url() -> str:
    honour_client_tokens()
    _INJECTOR.install(boto_session())
    # Each manager of the kit opens a session, and creating clients takes most of its time.
    shared = functools.cache(boto_session().client)
    boto_session().client = shared  # type: ignore[method-assign]
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    return f"http://{host}:{port}"


@functools.cache
def open_session() -> Aws:
    """Return the session of all unit tests."""
    return Aws(Credentials(CREDENTIALS))


@functools.cache
def _observer() -> Cloud:
    """Return clients whose calls never fail."""
    session = Session("any", "any", region_name=REGION)
    return Cloud(session.client("ec2"), session.client("elbv2"))


def _instances() -> list[InstanceTypeDef]:
    reservations = _observer().ec2.describe_instances()["Reservations"]
    instances = [instance for each in reservations for instance in each["Instances"]]
    return [each for each in instances if not is_gone(each)]


class Infrastructure:
    """A test double of AWS, empty for each test."""

    def __init__(self, folder: Path) -> None:
        """moto keeps nothing in the folder."""

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make clients that are created from now on use moto, and delete what it has."""
        monkeypatch.setenv("AWS_ENDPOINT_URL", _server_url())
        reset = urllib.request.Request(f"{_server_url()}/moto-api/reset", method="POST")
        urllib.request.urlopen(reset).close()
        self.simulate(Faults())

    def simulate(self, faults: Faults) -> None:
        """Let calls of the reconcilers fail from now on."""
        _INJECTOR.simulate(faults)

    @property
    def cloud(self) -> Cloud:
        """The clients of unit tests."""
        return open_session().region(REGION)

    def servers(self) -> list[str]:
        """Return the id of each instance that is not terminated."""
        return sorted(each["InstanceId"] for each in _instances())

    def failure_domains(self) -> dict[str, str]:
        """Return the zone of each instance that is not terminated."""
        return {each["InstanceId"]: each["Placement"]["AvailabilityZone"] for each in _instances()}

    def remove_server(self, name: str) -> None:
        """Terminate an instance without the reconciler."""
        _observer().ec2.terminate_instances(InstanceIds=[name])

    def clusters(self) -> list[str]:
        """Return the id of each VPC, except the one that each region has."""
        vpcs = _observer().ec2.describe_vpcs()["Vpcs"]
        return sorted(vpc["VpcId"] for vpc in vpcs if not vpc["IsDefault"])

    def resources(self) -> list[str]:
        """Return the id of each security group, except the one that each VPC has."""
        groups = _observer().ec2.describe_security_groups()["SecurityGroups"]
        return sorted(each["GroupId"] for each in groups if each["GroupName"] != "default")
