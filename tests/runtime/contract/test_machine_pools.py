"""MachinePools of both versions of core in one view, label values, and the status of pools."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.contract.machine_pool import (
    owning_machine_pool,
    read_machine_pool,
    read_pool_machine,
)
from capsmith_runtime.contract.machine_pool_status import (
    INSTANCE_STATUS,
    POOL_STATUS_WRITERS,
    InstanceFacts,
    PoolFacts,
    build_pool_spec,
    list_reductions,
)
from capsmith_runtime.contract.metadata import label_value
from capsmith_runtime.contract.model import Address, Condition, ObjectRef

GROUP = "infrastructure.cluster.x-k8s.io"
V1BETA1, V1BETA2 = POOL_STATUS_WRITERS["v1beta1"], POOL_STATUS_WRITERS["v1beta2"]
FEATURES = frozenset({"instances", "providerID", "machines"})
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"


def machine_pool(reference: dict[str, str], **annotations: str) -> dict[str, Any]:
    template = {
        "version": "v1.34.4",
        "bootstrap": {"dataSecretName": "data"},
        "infrastructureRef": reference,
    }
    return {
        "metadata": {
            "name": "p",
            "namespace": "n",
            "uid": "u",
            "annotations": {f"cluster.x-k8s.io/{key}": value for key, value in annotations.items()},
        },
        "spec": {
            "clusterName": "c",
            "replicas": 3,
            "failureDomains": ["a", "b"],
            "template": {"spec": template},
        },
    }


def test_both_versions_of_a_machine_pool_are_one_view() -> None:
    old = read_machine_pool(
        machine_pool({"apiVersion": f"{GROUP}/v1alpha1", "kind": "AcmePool", "name": "i"})
    )
    new = read_machine_pool(machine_pool({"apiGroup": GROUP, "kind": "AcmePool", "name": "i"}))

    assert old == new
    assert new.infrastructure == ObjectRef(GROUP, "AcmePool", "i")
    assert (new.replicas, new.version, new.data_secret_name) == (3, "v1.34.4", "data")
    assert new.failure_domains == ("a", "b")


def test_an_empty_machine_pool_can_be_read() -> None:
    view = read_machine_pool({"metadata": {"name": "p"}})
    assert (view.replicas, view.version, view.data_secret_name) == (1, None, None)
    assert view.infrastructure is None
    assert not view.replicas_managed_elsewhere


def test_no_machine_pool_has_fewer_than_no_machines() -> None:
    """The API server accepts negative numbers."""
    assert read_machine_pool({"metadata": {"name": "p"}, "spec": {"replicas": -1}}).replicas == 0


@pytest.mark.parametrize(
    ("value", "managed"), [("", True), ("an-autoscaler", True), ("true", True), ("false", False)]
)
def test_only_false_switches_the_autoscaler_off(value: str, managed: bool) -> None:
    """Proves: MP-17."""
    obj = machine_pool({})
    obj["metadata"]["annotations"] = {"cluster.x-k8s.io/replicas-managed-by": value}
    assert read_machine_pool(obj).replicas_managed_elsewhere is managed


def test_a_machine_says_what_its_pool_has_to_know() -> None:
    condition = {"type": "OwnerRemediated", "status": "False"}
    view = read_pool_machine(
        {
            "metadata": {"name": "m", "annotations": {"cluster.x-k8s.io/delete-machine": ""}},
            "status": {"nodeRef": {"name": "node"}, "conditions": [condition]},
        }
    )
    assert (view.delete_requested, view.unhealthy, view.has_node, view.deleting) == (
        True,
        True,
        True,
        False,
    )
    bare = read_pool_machine({"metadata": {"name": "m"}})
    assert not any((bare.delete_requested, bare.unhealthy, bare.has_node, bare.deleting))


def test_the_owner_is_core_s_machine_pool_only() -> None:
    owners = [
        {"apiVersion": "other.io/v1", "kind": "MachinePool", "name": "wrong"},
        {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachinePool", "name": "right"},
    ]
    assert owning_machine_pool({"metadata": {"ownerReferences": owners}}) == "right"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pool", "pool"),
        ("a.b_c-d", "a.b_c-d"),
        ("", ""),
        ("a" * 63, "a" * 63),
        # What Cluster API's MustFormatValue answers for the same names.
        ("a" * 64, "hash_2W8PhQ_z"),
        ("pool-.", "hash_AS-YjA_z"),
        ("x" * 200, "hash_s-S25Q_z"),
        ("-x", "hash_S81gwA_z"),
        ("long-pool-name." * 10 + "z", "hash_reS5fw_z"),
    ],
)
def test_names_become_label_values_as_core_makes_them(name: str, value: str) -> None:
    """Proves: MP-08."""
    assert label_value(name) == value


def facts(*, provisioned: bool = True, ids: tuple[str, ...] = ("b", "a")) -> PoolFacts:
    instances = [
        InstanceFacts(
            name=f"name-{one}",
            provider_id=one,
            addresses=[Address("InternalIP", "10.0.0.1")],
            version="v1.34.4",
            ready=False,
        )
        for one in ids
    ]
    return PoolFacts(
        provisioned=provisioned,
        provider_ids=ids,
        provider_id="group",
        instances=instances,
        machine_kind="AcmeMachine",
    )


def test_ids_come_in_one_order_each_once() -> None:
    """Proves: MP-03."""
    first = build_pool_spec({"spec": {"size": "s"}}, facts(ids=("b", "a", "b")), FEATURES)
    assert first == build_pool_spec({"spec": {"size": "s"}}, facts(ids=("a", "b")), FEATURES)
    assert first == {"size": "s", "providerIDList": ["a", "b"], "providerID": "group"}


@pytest.mark.parametrize("contract", POOL_STATUS_WRITERS.values(), ids=POOL_STATUS_WRITERS)
def test_core_reads_ready_whatever_the_contract(contract: Any) -> None:
    """Proves: MP-01, MP-04, MP-06, MP-07, MP-13."""
    status = contract.build_status({}, facts(), FEATURES, NOW)
    assert (status["ready"], status["replicas"]) == (True, 2)
    assert status["infrastructureMachineKind"] == "AcmeMachine"
    assert status["instances"][0] == {
        "instanceName": "name-a",
        "providerID": "a",
        "version": "v1.34.4",
        "ready": False,
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
    }
    assert not {"failureReason", "failureMessage"} & status.keys()
    assert contract.is_provisioned({"status": status})
    # Core compares the replicas with the list of provider ids, not with the instances.
    ids = ("a", "b", "b", "c")
    more = contract.build_status({}, replace(facts(), provider_ids=ids), FEATURES, NOW)
    assert more["replicas"] == 3


@pytest.mark.parametrize("contract", POOL_STATUS_WRITERS.values(), ids=POOL_STATUS_WRITERS)
def test_an_unprovisioned_pool_reports_nothing(contract: Any) -> None:
    """Proves: MP-01, MP-02."""
    status = contract.build_status({}, facts(provisioned=False), FEATURES, NOW)
    assert "ready" not in status
    assert "initialization" not in status
    assert not contract.is_provisioned({"status": status})


def test_both_flags_have_one_value() -> None:
    """Proves: MP-02."""
    status = V1BETA2.build_status({}, facts(), FEATURES, NOW)
    assert status["ready"] is status["initialization"]["provisioned"] is True
    again = V1BETA2.build_status({"status": status}, facts(provisioned=False), FEATURES, NOW)
    assert again["ready"] is again["initialization"]["provisioned"] is True


def test_what_is_switched_off_is_not_written() -> None:
    status = V1BETA2.build_status({}, facts(), frozenset(), NOW)
    assert not {"instances", "infrastructureMachineKind"} & status.keys()
    assert "providerID" not in build_pool_spec({}, facts(), frozenset())


def booted(provider_id: str, *conditions: Condition, **extra: Any) -> InstanceFacts:
    return InstanceFacts(
        name=f"name-{provider_id}",
        provider_id=provider_id,
        addresses=[Address("InternalIP", "10.0.0.1")],
        version=None,
        ready=True,
        conditions=conditions,
        extra=extra,
    )


def reported(
    contract: Any, before: dict[str, Any], *instances: InstanceFacts, now: str = NOW
) -> dict[str, Any]:
    """Return the pool's status, after ``before``, as it is for these instances."""
    known = PoolFacts(
        provisioned=True,
        provider_ids=[instance.provider_id for instance in instances],
        instances=instances,
    )
    features = FEATURES | {INSTANCE_STATUS}
    status: dict[str, Any] = contract.build_status({"status": before}, known, features, now)
    return status


UP = Condition(type="Booted", status=True, reason="Booted")
DOWN = Condition(type="Booted", status=False, reason="Stopped", message="by the user")
DISK = Condition(type="DiskFull", status=None, reason="Unknown")


@pytest.mark.parametrize("contract", POOL_STATUS_WRITERS.values(), ids=POOL_STATUS_WRITERS)
def test_each_machine_has_conditions_and_fields_of_its_own(contract: Any) -> None:
    """Conditions have the format of metav1.Condition under every contract.

    Proves: MP-06.
    """
    status = reported(contract, {}, booted("b", DOWN, zone="z"), booted("a", UP, zone=None))
    first, second = status["instances"]
    up = {"type": "Booted", "status": "True", "reason": "Booted", "message": ""}
    down = {"type": "Booted", "status": "False", "reason": "Stopped", "message": "by the user"}
    assert first["conditions"] == [{**up, "lastTransitionTime": NOW}]
    assert second["conditions"] == [{**down, "lastTransitionTime": NOW}]
    assert ("zone" in first, second["zone"]) == (False, "z")


def test_times_of_a_machine_stay_while_others_come_and_go() -> None:
    first = reported(V1BETA2, {}, booted("b", UP, DISK), booted("c", UP))
    assert reported(V1BETA2, first, booted("c", UP), booted("b", UP, DISK), now=LATER) == first

    second = reported(
        V1BETA2, first, booted("a", UP), booted("b", UP), booted("c", DOWN), now=LATER
    )
    times = [
        {each["type"]: each["lastTransitionTime"] for each in entry["conditions"]}
        for entry in second["instances"]
    ]
    # The new machine, one that lost a condition, and one whose condition changed.
    assert times == [{"Booted": LATER}, {"Booted": NOW}, {"Booted": LATER}]

    third = reported(V1BETA2, second, booted("b"), now=LATER)
    assert "conditions" not in third["instances"][0]


def test_a_kind_without_status_of_its_instances_writes_none() -> None:
    known = PoolFacts(provisioned=True, provider_ids=["a"], instances=[booted("a", UP, zone="z")])
    status = V1BETA2.build_status({}, known, FEATURES, NOW)
    assert not {"conditions", "zone"} & status["instances"][0].keys()


def test_what_is_for_display_only_is_left_out_step_by_step() -> None:
    known = PoolFacts(provisioned=True, provider_ids=["a"], instances=[booted("a", UP, zone="z")])
    left = [
        {key for key in ("addresses", "conditions", "extra") if getattr(facts.instances[0], key)}
        for facts in list_reductions(known)
    ]
    assert left == [{"addresses", "conditions", "extra"}, {"conditions", "extra"}, set()]
    assert all(facts.provider_ids == ["a"] for facts in list_reductions(known))
