"""Clients of AWS, and its errors as errors with a reason for the Ready condition."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from capsmith_runtime.infrastructure import (
    Credentials,
    RateLimitedError,
    ReconcileError,
    SessionExpiredError,
    SessionFactory,
    TerminalError,
)

from ._generated.api.ec2_role_identity import Ec2RoleIdentitySpec
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
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
_ROLE_SESSION = "cluster-api-provider-ec2"
"""Name of sessions of roles, which CloudTrail shows."""
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


class Keys(TypedDict, total=False):
    """The keys that sign requests; empty for those that boto3 finds in the environment."""

    aws_access_key_id: str
    aws_secret_access_key: str
    aws_session_token: str


def find_keys(credentials: Credentials) -> Keys:
    """Return the keys of an identity, after its role has been assumed with those of its source."""
    if credentials.identity_kind != "Ec2RoleIdentity":
        # The manager's own keys are only for roles that allow it to assume them.
        if not credentials:
            message = "the Ec2Cluster has no identity: set spec.identityRef"
            raise ReconcileError("CredentialsNotFound", message)
        return Keys(
            aws_access_key_id=credentials["accessKeyID"],
            aws_secret_access_key=credentials["secretAccessKey"],
        )
    role = credentials.identity_spec(Ec2RoleIdentitySpec)
    source = find_keys(credentials.source) if credentials.source is not None else Keys()
    with closing(_create_sts_client(source)) as client, reported_errors():
        assumed = client.assume_role(
            RoleArn=role.role_arn,
            RoleSessionName=_ROLE_SESSION,
            DurationSeconds=role.duration_seconds,
            **({"ExternalId": role.external_id} if role.external_id is not None else {}),
        )["Credentials"]
    return Keys(
        aws_access_key_id=assumed["AccessKeyId"],
        aws_secret_access_key=assumed["SecretAccessKey"],
        aws_session_token=assumed["SessionToken"],
    )


def _create_sts_client(keys: Keys) -> Any:
    session = boto_session()
    # boto3 may look for the manager's keys in the metadata of its instance, which takes seconds:
    # not within the lock, for which other identities wait. It keeps what it finds, but not that it
    # found none.
    if not keys and session.get_credentials() is None:
        message = "the manager has no credentials of AWS: set them in its environment"
        raise ReconcileError("CredentialsNotFound", message)
    region = session.region_name or DEFAULT_REGION
    with _LOCK:
        return session.client("sts", region, config=_create_config(), **keys)


class Aws:
    """The clients of one identity, in all regions."""

    def __init__(self, credentials: Credentials) -> None:
        self._keys = find_keys(credentials)
        self._regions: dict[str, Cloud] = {}

    def region(self, name: str) -> Cloud:
        """Return the clients of a region; several threads may use them at once."""
        # But a session must not create clients in several threads at once.
        with _LOCK:
            if name not in self._regions:
                session, config = boto_session(), _create_config()
                self._regions[name] = Cloud(
                    session.client("ec2", name, config=config, **self._keys),
                    session.client("elbv2", name, config=config, **self._keys),
                )
            return self._regions[name]

    def account(self) -> str:
        """Return the id of the account; a call that needs no permission."""
        with closing(_create_sts_client(self._keys)) as client, reported_errors():
            return str(client.get_caller_identity()["Account"])

    def close(self) -> None:
        """Close the connections."""
        for cloud in self._regions.values():
            cloud.ec2.close()
            cloud.elb.close()


class AwsSessions(SessionFactory[Aws]):
    """Opens the clients of each identity once."""

    def open(self, credentials: Credentials) -> Aws:
        """Return clients; only roles need requests for that."""
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
    """Raise errors of AWS as errors of the runtime, which tell apart what a retry can resolve.

    The session of a role ends after a while: then the runtime opens another one.
    """
    try:
        yield
    except ClientError as error:
        if error_code(error) in _EXPIRED:
            raise SessionExpiredError(str(error)) from error
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
