"""One set of facts in the shapes of both contracts."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.contract.control_plane import ControlPlaneFacts, ReplicaFacts
from capsmith_runtime.contract.control_plane_shapes import CONTROL_PLANE_SHAPES
from capsmith_runtime.contract.model import Address, Condition, Endpoint, FailureDomain
from capsmith_runtime.contract.status_writer import ClusterFacts, MachineFacts
from capsmith_runtime.contract.v1beta1 import V1Beta1Status
from capsmith_runtime.contract.v1beta2 import V1Beta2Status

ALL = {"controlPlaneEndpoint", "failureDomains", "addresses", "failureDomain", "interruptible"}
OLD, NEW = V1Beta1Status(), V1Beta2Status()
CLUSTER = ClusterFacts(
    endpoint=Endpoint("host", 6443),
    failure_domains=[FailureDomain("b", False, {"x": "y"}), FailureDomain("a")],
)
MACHINE = MachineFacts(
    provider_id="acme://1",
    addresses=[Address("InternalIP", "10.0.0.1"), Address("Hostname", "one")],
    failure_domain="a",
    interruptible=True,
    extra={"serverID": "s", "gone": None},
)
ADDRESSES = [
    {"type": "InternalIP", "address": "10.0.0.1"},
    {"type": "Hostname", "address": "one"},
]


def test_cluster_status() -> None:
    """Proves: IC-05, IC-06, IC-08, IC-09."""
    assert NEW.build_cluster_status({}, CLUSTER, ALL) == {
        "initialization": {"provisioned": True},
        "failureDomains": [
            {"name": "a", "controlPlane": True},
            {"name": "b", "controlPlane": False, "attributes": {"x": "y"}},
        ],
    }
    assert OLD.build_cluster_status({}, CLUSTER, ALL) == {
        "ready": True,
        "failureDomains": {
            "a": {"controlPlane": True},
            "b": {"controlPlane": False, "attributes": {"x": "y"}},
        },
    }


def test_ready_is_kept_beside_the_initialization() -> None:
    for status in (
        NEW.build_cluster_status({}, CLUSTER, {"ready"}),
        NEW.build_machine_status({}, MACHINE, {"ready"}),
        CONTROL_PLANE_SHAPES["v1beta2"].build_status(
            {}, ControlPlaneFacts(initialized=True), {"ready"}
        ),
    ):
        assert status["ready"] is True
        assert True in status["initialization"].values()
    waiting = ControlPlaneFacts(initialized=False)
    assert CONTROL_PLANE_SHAPES["v1beta2"].build_status({}, waiting, {"ready"}) == {}


def test_machine_spec_and_status() -> None:
    """Proves: IM-01, IM-02, IM-03, IM-04, IM-05, IM-07, IM-08, IM-09."""
    before = {"spec": {"size": "s"}, "status": {"gone": 1, "kept": 2}}

    assert NEW.build_machine_spec(before, MACHINE, ALL) == {"size": "s", "providerID": "acme://1"}
    assert NEW.build_machine_status(before, MACHINE, ALL) == {
        "kept": 2,
        "initialization": {"provisioned": True},
        "addresses": ADDRESSES,
        "failureDomain": "a",
        "interruptible": True,
        "serverID": "s",
    }
    assert OLD.build_machine_spec(before, MACHINE, ALL) == {
        "size": "s",
        "providerID": "acme://1",
        "failureDomain": "a",
    }
    assert OLD.build_machine_status(before, MACHINE, ALL) == {
        "kept": 2,
        "ready": True,
        "addresses": ADDRESSES,
        "interruptible": True,
        "serverID": "s",
    }


@pytest.mark.parametrize("writer", [OLD, NEW])
def test_nothing_is_written_that_the_kind_does_not_have(writer: Any) -> None:
    status = {**writer.build_machine_status({}, MACHINE, set())}
    status |= writer.build_cluster_status({}, CLUSTER, set())

    assert status.keys() - {"initialization", "ready"} == {"serverID"}
    assert writer.build_cluster_spec({}, CLUSTER, set()) == {}
    assert "failureDomain" not in writer.build_machine_spec({}, MACHINE, set())


@pytest.mark.parametrize("writer", [OLD, NEW])
def test_missing_values_are_removed(writer: Any) -> None:
    """Proves: IM-03, IM-04."""
    before = {"status": writer.build_machine_status({}, MACHINE, ALL)}
    bare = MachineFacts(provider_id="x", addresses=[], failure_domain=None, interruptible=False)

    status = writer.build_machine_status(before, bare, ALL)

    assert status.keys() - {"serverID"} <= {"initialization", "ready"}
    assert writer.is_provisioned({"status": status})


@pytest.mark.parametrize("writer", [OLD, NEW])
@pytest.mark.parametrize("given", [{"host": "mine", "port": 1}, {"port": 1}])
def test_an_endpoint_of_the_user_is_kept(writer: Any, given: dict[str, Any]) -> None:
    """Proves: IC-02, IC-03."""
    spec = writer.build_cluster_spec({"spec": {"controlPlaneEndpoint": given}}, CLUSTER, ALL)

    assert spec == {"controlPlaneEndpoint": given}


@pytest.mark.parametrize("writer", [OLD, NEW])
@pytest.mark.parametrize(
    ("given", "host"),
    [({"host": "mine"}, "mine"), ({"port": 6443}, "host"), ({"host": "", "port": 6443}, "host")],
)
def test_half_an_endpoint_of_the_users_is_completed(
    writer: Any, given: dict[str, Any], host: str
) -> None:
    """A host that the user gave is kept, and only what is missing is added.

    Proves: IC-02, IC-03.
    """
    spec = writer.build_cluster_spec({"spec": {"controlPlaneEndpoint": given}}, CLUSTER, ALL)

    assert spec == {"controlPlaneEndpoint": {"host": host, "port": 6443}}


@pytest.mark.parametrize("writer", [OLD, NEW])
def test_an_empty_endpoint_is_none(writer: Any) -> None:
    zero = {"spec": {"controlPlaneEndpoint": {"host": "", "port": 0}}}

    spec = writer.build_cluster_spec(zero, CLUSTER, ALL)

    assert spec == {"controlPlaneEndpoint": {"host": "host", "port": 6443}}


def test_counters_of_control_planes() -> None:
    """Proves: CP-04, CP-05, CP-06."""
    replicas = ReplicaFacts(
        desired=7, current=6, ready=5, available=4, nodes_ready=3, up_to_date=2, selector="a=b"
    )
    facts = ControlPlaneFacts(initialized=False, replicas=replicas)
    statuses = {
        name: shape.build_status({}, facts, {"replicas"})
        for name, shape in CONTROL_PLANE_SHAPES.items()
    }
    common = {"replicas": 6, "selector": "a=b"}
    assert statuses == {
        "v1beta1": common | {"readyReplicas": 3, "updatedReplicas": 2, "unavailableReplicas": 3},
        "v1beta2": common | {"readyReplicas": 5, "availableReplicas": 4, "upToDateReplicas": 2},
    }


def test_status_of_control_planes_without_machines() -> None:
    """Proves: CP-02, CP-03, CP-09, CP-10, CP-25."""
    facts = ControlPlaneFacts(
        initialized=True, versions=(("v1.33.1", 1), ("v1.34.1", 0)), externally_managed=True
    )
    statuses = {
        name: shape.build_status({}, facts, {"version"})
        for name, shape in CONTROL_PLANE_SHAPES.items()
    }
    assert statuses == {
        "v1beta1": {
            "initialized": True,
            "ready": True,
            "version": "v1.33.1",
            "externalManagedControlPlane": True,
        },
        "v1beta2": {
            "initialization": {"controlPlaneInitialized": True},
            "version": "v1.33.1",
            "versions": [{"version": "v1.33.1", "replicas": 1}, {"version": "v1.34.1"}],
            "externalManagedControlPlane": True,
        },
    }


def test_only_true_is_provisioned() -> None:
    assert not NEW.is_provisioned({"status": {"initialization": {"provisioned": "true"}}})
    assert not NEW.is_provisioned({"status": {"ready": True}})
    assert not OLD.is_provisioned({"status": {"ready": 1}})


def test_the_old_shape_has_no_paused_condition_that_is_false() -> None:
    """Proves: ST-08."""
    paused = Condition(type="Paused", status=True, reason="Paused", message="m")
    active = Condition(type="Paused", status=False, reason="NotPaused")

    status = OLD.merge_conditions({}, {}, [paused], "t1")
    after = OLD.merge_conditions({"status": status}, status, [active], "t2")

    assert [entry["type"] for entry in status["conditions"]] == ["Paused"]
    assert after["conditions"] == []
    assert NEW.merge_conditions({}, {}, [active], "t")["conditions"][0]["status"] == "False"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Endpoint("", 1),
        lambda: Endpoint("h", 0),
        lambda: Endpoint("h", 65536),
        lambda: FailureDomain(""),
        lambda: Address("IP", "x"),  # type: ignore[arg-type] # the wrong one is meant
        lambda: Address("InternalIP", "x" * 257),
        lambda: Condition(type="no type!", status=True, reason="R"),
    ],
)
def test_values_that_core_refuses_are_refused_here(make: Any) -> None:
    with pytest.raises(ValueError, match=r"must|condition type"):
        make()
