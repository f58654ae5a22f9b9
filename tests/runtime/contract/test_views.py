"""Core objects of both versions in one view; guards; identities of infrastructure."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.contract import external_id, metadata
from capsmith_runtime.contract.core import is_deleted_for_move, is_externally_managed, pause_message
from capsmith_runtime.contract.model import Endpoint, ObjectRef
from capsmith_runtime.contract.v1beta1 import CoreV1Beta1
from capsmith_runtime.contract.v1beta2 import CoreV1Beta2
from capsmith_runtime.contract.versions import CoreNotServedError, choose

META = {"name": "c", "namespace": "n", "uid": "u", "labels": {"l": "1"}}
GROUP = "infrastructure.cluster.x-k8s.io"


def cluster(reference: dict[str, str], status: dict[str, Any]) -> dict[str, Any]:
    spec = {
        "paused": True,
        "controlPlaneEndpoint": {"host": "h", "port": 6443},
        "infrastructureRef": reference,
        "clusterNetwork": {"pods": {"cidrBlocks": ["10.1.0.0/16"]}, "apiServerPort": 443},
    }
    return {"metadata": META, "spec": spec, "status": status}


def test_both_versions_of_a_cluster_are_one_view() -> None:
    old = CoreV1Beta1().read_cluster(
        cluster(
            {"apiVersion": f"{GROUP}/v1alpha1", "kind": "AcmeCluster", "name": "c"},
            {
                "infrastructureReady": True,
                "conditions": [{"type": "ControlPlaneInitialized", "status": "True"}],
                "phase": "x",
            },
        )
    )
    initialized = ("infrastructureProvisioned", "controlPlaneInitialized")
    new = CoreV1Beta2().read_cluster(
        cluster(
            {"apiGroup": GROUP, "kind": "AcmeCluster", "name": "c"},
            {"initialization": dict.fromkeys(initialized, True)},
        )
    )

    assert old == new
    assert new.paused
    assert new.infrastructure_provisioned
    assert new.infrastructure == ObjectRef(GROUP, "AcmeCluster", "c")
    assert new.control_plane_endpoint == Endpoint("h", 6443)
    assert (new.pod_cidrs, new.service_cidrs, new.api_server_port) == (("10.1.0.0/16",), (), 443)


def test_a_control_plane_that_is_down_was_initialized_all_the_same() -> None:
    """What v1beta1 calls ready comes and goes, and comes before there is anything to join.

    Proves: BC-12.
    """
    begun = {"controlPlaneReady": True}
    down = {"conditions": [{"type": "ControlPlaneInitialized", "status": "True"}]}

    assert not CoreV1Beta1().read_cluster(cluster({}, begun)).control_plane_initialized
    assert CoreV1Beta1().read_cluster(cluster({}, down)).control_plane_initialized


@pytest.mark.parametrize("reader", [CoreV1Beta1(), CoreV1Beta2()])
def test_an_empty_cluster_and_machine_can_be_read(reader: Any) -> None:
    view = reader.read_cluster({"metadata": {"name": "c"}})
    machine = reader.read_machine({"metadata": {"name": "m"}, "spec": {"bootstrap": None}})

    assert not view.paused
    assert view.infrastructure is None
    assert machine.data_secret_name is None
    assert not machine.is_control_plane


@pytest.mark.parametrize("reader", [CoreV1Beta1(), CoreV1Beta2()])
def test_a_machine_of_a_pool_names_an_empty_secret(reader: Any) -> None:
    """Proves: IM-21."""
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "name": "p"}
    labels = {"cluster.x-k8s.io/control-plane": ""}
    machine = reader.read_machine(
        {
            "metadata": {"name": "m", "ownerReferences": [owner], "labels": labels},
            "spec": {"bootstrap": {"dataSecretName": ""}, "failureDomain": "", "version": "v1"},
        }
    )

    assert (machine.data_secret_name, machine.pool_name) == ("", "p")
    assert (machine.failure_domain, machine.version) == (None, "v1")
    assert machine.is_control_plane


def test_the_newest_version_that_is_served_is_read() -> None:
    assert choose(["v1beta1", "v1beta2", "v1alpha4"]).version == "v1beta2"
    assert choose(["v1beta1"]).version == "v1beta1"
    with pytest.raises(CoreNotServedError, match="the API server serves nothing"):
        choose([])


def test_owners_are_found_by_kind_and_group_only() -> None:
    """Proves: IC-17."""
    owners = [
        {"apiVersion": "other.io/v1", "kind": "Cluster", "name": "wrong", "controller": True},
        {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "right"},
    ]
    obj = {"metadata": {"ownerReferences": owners}}

    assert metadata.owner_name(obj, "Cluster", "cluster.x-k8s.io") == "right"
    assert metadata.owner_name(obj, "Machine", "cluster.x-k8s.io") is None


def test_pause_names_every_cause() -> None:
    """Proves: SM-01, ST-08."""
    obj = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
    view = CoreV1Beta2().read_cluster({"metadata": META, "spec": {"paused": True}})

    assert pause_message(obj, "AcmeMachine", view) == (
        "Cluster spec.paused is set to true, "
        "AcmeMachine has the cluster.x-k8s.io/paused annotation"
    )
    assert pause_message({"metadata": {}}, "AcmeMachine", None) == ""


def test_only_presence_of_an_annotation_counts() -> None:
    """Proves: IC-15, MV-08."""
    for key, guard in (
        ("cluster.x-k8s.io/managed-by", is_externally_managed),
        ("clusterctl.cluster.x-k8s.io/delete-for-move", is_deleted_for_move),
    ):
        assert guard({"metadata": {"annotations": {key: ""}}})
        assert not guard({"metadata": {"labels": {key: "true"}}})


def test_an_identity_survives_a_move_but_not_a_copy() -> None:
    """Proves: SM-09, ST-11."""
    key = external_id.annotation(GROUP)
    first = external_id.create({"metadata": {"name": "m.1", "uid": "u1"}})
    moved = {"metadata": {"name": "m.1", "uid": "u2", "annotations": {key: first}}}
    copied = {"metadata": {"name": "m2", "uid": "u3", "annotations": {key: first}}}

    assert first == "m.1.u1"
    assert external_id.of(moved, GROUP) == first
    assert external_id.stored(copied, GROUP) is None
    assert external_id.of(copied, GROUP) == "m2.u3"


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Newer"}]}, False),
        (
            {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]},
            False,
        ),
    ],
)
def test_selectors(wanted: dict[str, Any], holds: bool) -> None:
    assert metadata.is_selected(wanted, {"a": "1"}) is holds


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "b", "operator": "NotIn"},
        {"key": "b", "operator": "NotIn", "values": []},
        {"key": "b", "operator": "NotIn", "values": ["*"]},
        {"key": "b", "operator": "NotIn", "values": ["v" * 64]},
        {"key": "b*", "operator": "NotIn", "values": ["1"]},
        {"key": "/b", "operator": "DoesNotExist"},
        {"key": "b..c/d", "operator": "DoesNotExist"},
        {"key": "", "operator": "DoesNotExist"},
        {"key": "k" * 64, "operator": "DoesNotExist"},
        {"key": f"{'p' * 254}/k", "operator": "DoesNotExist"},
        {"key": "b", "operator": "DoesNotExist", "values": ["1"]},
        {"key": "a", "operator": "Exists", "values": ["1"]},
        {"key": "a", "operator": "In", "values": ["1", "-"]},
    ],
    ids=str,
)
def test_selectors_that_kubernetes_cannot_parse_match_nothing(expression: Any) -> None:
    """Proves: MV-02."""
    assert not metadata.is_selected({"matchExpressions": [expression]}, {"a": "1"})


def test_keys_of_selectors_may_have_a_prefix() -> None:
    expression = {"key": f"{'p' * 253}/k", "operator": "DoesNotExist", "values": []}
    assert metadata.is_selected({"matchExpressions": [expression]}, {"a": "1"})


@pytest.mark.parametrize("reader", [CoreV1Beta1(), CoreV1Beta2()])
def test_the_node_of_a_machine_is_part_of_its_view(reader: Any) -> None:
    plain = {"metadata": {"name": "m", "namespace": "n", "uid": "1"}, "spec": {}}
    running = {**plain, "status": {"phase": "Running"}}
    joined = {**plain, "status": {"phase": "Running", "nodeRef": {"name": "n1"}}}

    assert reader.read_machine(plain) == reader.read_machine(running), "phases are no events"
    assert reader.read_machine(running) != reader.read_machine(joined)
    assert reader.read_machine(joined).node_name == "n1"
    assert reader.read_machine(joined).phase == "Running"
