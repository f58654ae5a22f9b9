"""Clients of AWS, and its errors as errors with a reason for the Ready condition."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from capsmith_runtime.infrastructure import Credentials, ReconcileError, TerminalError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_elbv2 import ElasticLoadBalancingv2Client

THROTTLING_SECONDS = 10.0
CAPACITY_SECONDS = 60.0

_CONFIG = Config(
    connect_timeout=5,
    read_timeout=30,
    retries={"mode": "standard", "total_max_attempts": 3},
    user_agent_extra="cluster-api-provider-ec2",
)
_THROTTLED = {"RequestLimitExceeded", "Throttling", "ThrottlingException"}
_NO_CAPACITY = {"InsufficientInstanceCapacity", "InsufficientFreeAddressesInSubnet"}
_INVALID = re.compile(r"Invalid(AMIID|InstanceType|KeyPair|ParameterValue)\b.*")
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Cloud:
    """The clients of one region, with the credentials of one identity."""

    ec2: EC2Client
    elb: ElasticLoadBalancingv2Client


def connect(region: str, credentials: Credentials) -> Cloud:
    """Return the clients of a region.  They are shared: creating them takes long."""
    # Clients may be used in several threads at once, but a session must not create them so.
    with _LOCK:
        return _clients(region, credentials["accessKeyID"], credentials["secretAccessKey"])


@functools.lru_cache(maxsize=64)
def _clients(region: str, key_id: str, secret: str) -> Cloud:
    session = Session(aws_access_key_id=key_id, aws_secret_access_key=secret, region_name=region)
    return Cloud(session.client("ec2", config=_CONFIG), session.client("elbv2", config=_CONFIG))


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
        return ReconcileError(reason, message, retry_after=THROTTLING_SECONDS)
    if code in _NO_CAPACITY:
        return ReconcileError(reason, message, retry_after=CAPACITY_SECONDS)
    return ReconcileError(reason, message)
