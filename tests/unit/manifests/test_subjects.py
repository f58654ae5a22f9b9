"""Which subjects of bindings are the ServiceAccount of another provider, as installed."""

from __future__ import annotations

import pytest

from capsmith.manifests.parse import SAMPLE
from capsmith.manifests.permissions import ServiceAccount, is_subject

OTHER = ServiceAccount("other-system", "other-manager")


@pytest.mark.parametrize(
    "subject",
    [
        {"kind": "User", "name": "system:serviceaccount:other-system:other-manager"},
        {"kind": "User", "name": f"system:serviceaccount:{SAMPLE}:other-manager"},
        {"kind": "User", "name": "system:serviceaccount:${OTHER_NAMESPACE}:other-manager"},
        {"kind": "Group", "name": "system:serviceaccounts:other-system"},
        {"kind": "Group", "name": "system:serviceaccounts"},
        {"kind": "Group", "name": "system:authenticated"},
    ],
    ids=lambda subject: subject["name"],
)
def test_users_and_groups_stay_as_they_are(subject: dict[str, str]) -> None:
    assert is_subject(OTHER, subject, "acme-system")
    assert is_subject(OTHER, subject, "")


@pytest.mark.parametrize(
    "subject",
    [
        {"kind": "User", "name": "other-manager"},
        {"kind": "User", "name": "system:serviceaccount:other-system:other-manager-2"},
        {"kind": "User", "name": "system:serviceaccount:acme-system:other-manager"},
        {"kind": "User", "name": "system:serviceaccounts:other-system"},
        {"kind": "Group", "name": "system:serviceaccounts:acme-system"},
        {"kind": "Group", "name": "system:serviceaccount:other-system:other-manager"},
        {"kind": "ServiceAccount", "name": "manager", "namespace": "other-system"},
        {"kind": "Robot", "name": "other-manager", "namespace": "other-system"},
        None,
    ],
    ids=str,
)
def test_others_are_none(subject: dict[str, str] | None) -> None:
    assert not is_subject(OTHER, subject, "other-system")


def test_a_service_account_is_one_of_the_namespace_in_which_clusterctl_installs() -> None:
    subject = {"kind": "ServiceAccount", "name": "other-manager", "namespace": "other-system"}
    assert is_subject(OTHER, subject, "")
    assert is_subject(OTHER, subject, "other-system")
    assert not is_subject(OTHER, subject, "acme-system")
    assert is_subject(OTHER, {**subject, "namespace": "acme-system"}, "other-system")
