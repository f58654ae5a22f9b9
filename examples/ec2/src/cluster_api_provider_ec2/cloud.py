"""Clients of AWS, and its errors as errors with a reason for the Ready condition."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from capsmith_runtime.infrastructure import (
    Credentials,
    RateLimitedError,
    ReconcileError,
    SessionFactory,
    TerminalError,
)

from ._generated.manager import AWS_MAX_ATTEMPTS, AWS_READ_TIMEOUT

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_elbv2 import ElasticLoadBalancingv2Client

THROTTLING_SECONDS = 10.0
CAPACITY_SECONDS = 60.0
DEFAULT_REGION = "us-east-1"
"""Region of the calls that belong to no cluster, unless the environment names another."""
LISTED_SECONDS = 60.0
"""EC2 lists a resource sooner after its creation."""

_THROTTLED = {"RequestLimitExceeded", "Throttling", "ThrottlingException"}
_NO_CAPACITY = {"InsufficientInstanceCapacity", "InsufficientFreeAddressesInSubnet"}
_INVALID = re.compile(r"Invalid(AMIID|InstanceType|KeyPair|ParameterValue)\b.*")
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Cloud:
    """The clients of one region, with the credentials of one identity."""

    ec2: EC2Client
    elb: ElasticLoadBalancingv2Client


def _create_config() -> Config:
    """Return the settings of a client, after the command line is parsed."""
    return Config(
        connect_timeout=5,
        read_timeout=AWS_READ_TIMEOUT.value,
        retries={"mode": "standard", "total_max_attempts": AWS_MAX_ATTEMPTS.value},
        user_agent_extra="cluster-api-provider-ec2",
    )


class Aws:
    """The clients of one identity, in all regions."""

    def __init__(self, credentials: Credentials) -> None:
        self._keys = credentials["accessKeyID"], credentials["secretAccessKey"]
        self._regions: dict[str, Cloud] = {}

    def region(self, name: str) -> Cloud:
        """Return the clients of a region; several threads may use them at once."""
        # But a session must not create clients in several threads at once.
        with _LOCK:
            if name not in self._regions:
                session, (key_id, secret) = boto_session(), self._keys
                self._regions[name] = Cloud(
                    session.client(
                        "ec2",
                        name,
                        config=_create_config(),
                        aws_access_key_id=key_id,
                        aws_secret_access_key=secret,
                    ),
                    session.client(
                        "elbv2",
                        name,
                        config=_create_config(),
                        aws_access_key_id=key_id,
                        aws_secret_access_key=secret,
                    ),
                )
            return self._regions[name]

    def account(self) -> str:
        """Return the id of the account; a call that needs no permission."""
        session, (key_id, secret) = boto_session(), self._keys
        with _LOCK:
            client = session.client(
                "sts",
                session.region_name or DEFAULT_REGION,
                config=_create_config(),
                aws_access_key_id=key_id,
                aws_secret_access_key=secret,
            )
        with closing(client), reported_errors():
            return str(client.get_caller_identity()["Account"])

    def close(self) -> None:
        """Close the connections."""
        for cloud in self._regions.values():
            cloud.ec2.close()
            cloud.elb.close()


class AwsSessions(SessionFactory[Aws]):
    """Opens the clients of each identity once."""

    def open(self, credentials: Credentials) -> Aws:
        """Return clients, without a request yet."""
        return Aws(credentials)

    def account(self, session: Aws) -> str:
        """Return the id of the account, which no other credentials of it change."""
        return session.account()

    def close(self, session: Aws) -> None:
        """Close the connections."""
        session.close()


@functools.cache
def boto_session() -> Session:
    """Return the session of the process, which reads the large models of services once."""
    return Session()


@contextmanager
def reported_errors() -> Iterator[None]:
    """Raise errors of AWS as errors of the runtime, which tell apart what a retry can resolve."""
    try:
        yield
    except ClientError as error:
        raise _reported(error) from error
    except BotoCoreError as error:
        raise ReconcileError("AWSUnreachable", str(error)) from error


@contextmanager
def ignored_errors(*codes: str) -> Iterator[None]:
    """Ignore errors of AWS with these codes."""
    try:
        yield
    except ClientError as error:
        if error_code(error) not in codes:
            raise


def error_code(error: ClientError) -> str:
    """Return the code of an error, such as ``InvalidAMIID.NotFound``."""
    return error.response.get("Error", {}).get("Code", "Unknown")


def _reported(error: ClientError) -> ReconcileError:
    code, message = error_code(error), error.response.get("Error", {}).get("Message", "")
    reason = re.sub(r"[^A-Za-z0-9]", "", code)
    if _INVALID.fullmatch(code):
        return TerminalError(reason, message)
    if code in _THROTTLED:
        return RateLimitedError(message, reason=reason, retry_after=THROTTLING_SECONDS)
    if code in _NO_CAPACITY:
        return ReconcileError(reason, message, retry_after=CAPACITY_SECONDS)
    return ReconcileError(reason, message)
