"""Unit tests of sessions: keys of users, and roles that are assumed with them."""

from __future__ import annotations

from contextlib import closing

import pytest
from boto3.session import Session
from botocore.credentials import CredentialResolver
from botocore.credentials import Credentials as BotoCredentials
from botocore.exceptions import ClientError
from capsmith_runtime.infrastructure import Credentials, ReconcileError, SessionExpiredError

from cluster_api_provider_ec2 import cloud
from cluster_api_provider_ec2.cloud import Aws, AwsSessions, find_keys, reported_errors

from .infrastructure import CREDENTIALS, Infrastructure

USER = Credentials(CREDENTIALS, "user", kind="Ec2Identity")


def _role(account: str, source: Credentials | None) -> Credentials:
    spec = {"roleARN": f"arn:aws:iam::{account}:role/cluster-api", "durationSeconds": 900}
    return Credentials(identity="role", kind="Ec2RoleIdentity", spec=spec, source=source)


def test_a_role_is_assumed_with_the_keys_of_its_source(aws: Infrastructure) -> None:
    middle = _role("111111111111", USER)

    with closing(AwsSessions().open(_role("222222222222", middle))) as session:
        assert session.account() == "222222222222"
    with closing(Aws(middle)) as session:
        assert session.account() == "111111111111"
    assert find_keys(USER) == {
        "aws_access_key_id": CREDENTIALS["accessKeyID"],
        "aws_secret_access_key": CREDENTIALS["secretAccessKey"],
    }


def test_a_role_without_source_is_assumed_by_the_manager(
    aws: Infrastructure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "manager")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "manager")

    assert "aws_session_token" in find_keys(_role("111111111111", None))


@pytest.fixture
def new_session(aws: Infrastructure, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Return a session of boto3 that has not looked for keys yet."""
    found = Session()
    monkeypatch.setattr(cloud, "boto_session", lambda: found)
    return found


def test_no_other_identity_waits_for_the_keys_of_the_manager(
    new_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[bool] = []

    def look(resolver: CredentialResolver) -> BotoCredentials:
        waiting.append(cloud._LOCK.locked())
        return BotoCredentials("manager", "manager")

    monkeypatch.setattr(CredentialResolver, "load_credentials", look)
    role = find_keys(_role("111111111111", None))

    assert waiting == [False], "boto3 keeps what it has found"
    assert "aws_session_token" in role


def test_a_manager_without_keys_says_so(
    new_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CredentialResolver, "load_credentials", lambda resolver: None)

    with pytest.raises(ReconcileError, match="the manager has no credentials of AWS"):
        AwsSessions().open(_role("111111111111", None))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ExpiredToken", SessionExpiredError),
        ("RequestExpired", SessionExpiredError),
        ("AccessDenied", ReconcileError),
    ],
)
def test_the_end_of_a_session_is_told_apart(code: str, expected: type[Exception]) -> None:
    with pytest.raises(expected), reported_errors():
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeInstances")


def test_a_cluster_without_an_identity_gets_no_keys() -> None:
    with pytest.raises(ReconcileError, match="has no identity"):
        find_keys(Credentials())
