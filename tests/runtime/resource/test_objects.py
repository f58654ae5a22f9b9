"""Typed objects of a kind: their JSON, and what they tell of an existing object."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.api.serialization import DecodingError
from capsmith_runtime.kube.client import ResourceType
from capsmith_runtime.resource import CustomObject
from tests.runtime.resource.scripted_resources import SecurityGroupSpec, SecurityGroupStatus

RULE = {"protocol": "tcp", "port": 22}
OWNER = {"apiVersion": "example.com/v1", "kind": "Net", "name": "n", "uid": "1"}


class SecurityGroup(CustomObject[SecurityGroupSpec, SecurityGroupStatus]):
    resource = ResourceType("example.com", "v1", "SecurityGroup", "securitygroups")
    spec_class = SecurityGroupSpec
    status_class = SecurityGroupStatus


def test_the_json_to_create_an_object() -> None:
    group = SecurityGroup(
        name="g",
        namespace="ns",
        spec=SecurityGroupSpec(rules=(RULE,)),
        status=SecurityGroupStatus(group_id="g-1"),
        labels={"a": "b"},
        owner_references=[OWNER],
        identity_ref={"kind": "Identity", "name": "i"},
    )

    assert group.to_dict() == {
        "apiVersion": "example.com/v1",
        "kind": "SecurityGroup",
        "metadata": {
            "name": "g",
            "namespace": "ns",
            "labels": {"a": "b"},
            "ownerReferences": [OWNER],
        },
        "spec": {"rules": [RULE], "identityRef": {"kind": "Identity", "name": "i"}},
    }


def test_a_required_list_is_sent_even_if_it_is_empty() -> None:
    group = SecurityGroup(name="g", spec=SecurityGroupSpec(rules=()))

    assert group.to_dict()["spec"] == {"rules": []}


def test_what_was_sent_is_read_again() -> None:
    group = SecurityGroup(
        name="g",
        namespace="ns",
        spec=SecurityGroupSpec(rules=(RULE,)),
        status=SecurityGroupStatus(),
        annotations={"c": "d"},
        owner_references=[OWNER],
        identity_ref={"kind": "Identity", "name": "i"},
    )

    assert SecurityGroup.from_dict(group.to_dict()) == group


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([], None),
        ([{"type": "Paused", "status": "True"}], None),
        ([{"type": "Ready", "status": "True", "observedGeneration": 2}], True),
        ([{"type": "Ready", "status": "True", "observedGeneration": 1}], None),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "Ready", "status": "Unknown"}], None),
    ],
    ids=["none", "another", "true", "of an older spec", "false", "unknown"],
)
def test_ready_is_that_of_the_current_spec(conditions: list[Any], ready: bool | None) -> None:
    obj = {
        "metadata": {"name": "g", "generation": 2, "uid": "u", "deletionTimestamp": "now"},
        "spec": {"rules": []},
        "status": {"groupID": "g-1", "conditions": conditions},
    }
    group = SecurityGroup.from_dict(obj)

    assert group.ready is ready
    assert group.deleting
    assert group.uid == "u"
    assert group.status == SecurityGroupStatus(group_id="g-1")


def test_a_spec_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(DecodingError, match=r"spec\.rules"):
        SecurityGroup.from_dict({"metadata": {"name": "g"}, "spec": {"rules": "all"}})
