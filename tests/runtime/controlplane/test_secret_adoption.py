"""What a control plane writes into the metadata of a cluster's Secret."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.contract.model import ObjectRef
from capsmith_runtime.controlplane.secrets.contents import build_adoption_patch

LABELS = {"cluster.x-k8s.io/cluster-name": "c1"}
OWNER = {
    "apiVersion": "controlplane.example.com/v1",
    "kind": "FooControlPlane",
    "metadata": {"name": "c1", "uid": "uid-c1"},
}
REFERENCE = {
    "apiVersion": "controlplane.example.com/v1",
    "kind": "FooControlPlane",
    "name": "c1",
    "uid": "uid-c1",
    "controller": True,
    "blockOwnerDeletion": True,
}
CONFIGURATION = {
    "apiVersion": "bootstrap.example.com/v1",
    "kind": "FooConfig",
    "name": "m1",
    "uid": "uid-m1",
    "controller": True,
}


def _patch(references: list[Any], labels: dict[str, str], *configurations: ObjectRef) -> Any:
    secret = {"metadata": {"name": "c1-ca", "labels": labels, "ownerReferences": references}}
    return build_adoption_patch(secret, "c1", OWNER, configurations)


def test_a_secret_that_is_complete_stays_as_it_is() -> None:
    assert _patch([REFERENCE], LABELS) == {}


def test_a_secret_without_metadata_lacks_the_label_and_the_owner() -> None:
    assert _patch([], {"a": "b"}) == {"labels": LABELS, "ownerReferences": [REFERENCE]}


def test_a_label_of_another_cluster_is_replaced() -> None:
    other = {"cluster.x-k8s.io/cluster-name": "c2"}
    assert _patch([REFERENCE], other) == {"labels": LABELS}


@pytest.mark.parametrize("is_listed", [True, False])
def test_only_the_configurations_of_the_cluster_are_replaced_as_owners(is_listed: bool) -> None:
    """The API server rejects a second controller."""
    listed = [ObjectRef("bootstrap.example.com", "FooConfig", "m1")] if is_listed else []
    expected = {"ownerReferences": [REFERENCE]} if is_listed else {}
    assert _patch([CONFIGURATION], LABELS, *listed) == expected


def test_a_former_control_plane_is_replaced_and_further_owners_are_kept() -> None:
    former = {**REFERENCE, "uid": "former"}
    further = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "uid-x"}
    expected = {"ownerReferences": [further, REFERENCE]}
    assert _patch([former, further], LABELS) == expected
