"""The life of an object: what changed when, and who wrote it."""

from __future__ import annotations

from typing import Any

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.history import State
from capsmith.judge.running.life import list_changes
from capsmith.judge.running.model import ObjectChange

READY = 'k:{"type":"Ready"}'


def entry(manager: str, fields: JSON, time: str = "1", **more: str) -> JSON:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields, **more}


def machine(*entries: JSON, **parts: Any) -> JSON:
    """Return a machine; ``parts`` are its spec, its status and fields of its metadata."""
    found: JSON = {"metadata": {"name": "one", "managedFields": list(entries)}}
    for name, value in parts.items():
        if name in ("spec", "status"):
            found[name] = value
        else:
            found["metadata"][name] = value
    return found


def condition(status: str, reason: str, message: str = "") -> JSON:
    return {"type": "Ready", "status": status, "reason": reason, "message": message}


def list_all(*objects: JSON, begin: float = 0.0) -> list[ObjectChange]:
    states = [State(obj, False, float(number)) for number, obj in enumerate(objects, 1)]
    return list(list_changes(states, begin, str))


def test_a_life_from_creation_to_deletion() -> None:
    owner = {"kind": "Machine", "name": "m", "uid": "u"}
    test = entry("capsmith", {"f:spec": {}})
    core = entry("manager", {"f:metadata": {"f:ownerReferences": {'k:{"uid":"u"}': {}}}})
    spec: JSON = {"f:spec": {"f:providerID": {}}}
    status: JSON = {"f:status": {"f:conditions": {READY: {}}}}
    acme = [entry("acme", spec), entry("acme", status, subresource="status")]
    owned = {"ownerReferences": [owner]}
    ready = {"status": {"conditions": [condition("True", "Ready")]}, "spec": {"providerID": "x"}}
    states = [
        State(machine(test), False, 1.0),
        State(machine(test, core, **owned), False, 2.0),
        State(machine(test, core, *acme, **owned, **ready), False, 4.25),
        State(machine(test, core, *acme, **owned, **ready, deletionTimestamp="now"), False, 5.0),
        State(machine(), True, 6.0),
    ]
    assert list_changes(states, 2.0, str) == (
        ObjectChange(-1.0, "created", "", "capsmith"),
        ObjectChange(0.0, "owner set: Machine m", "metadata.ownerReferences[u]", "manager"),
        ObjectChange(2.25, "providerID: x", "spec.providerID", "acme"),
        ObjectChange(2.25, "condition Ready: True Ready", "status.conditions[Ready]", "acme"),
        ObjectChange(3.0, "deletion requested", "metadata.deletionTimestamp", ""),
        ObjectChange(4.0, "deleted", "", ""),
    )


def test_a_condition_changes_with_its_reason_and_message_only() -> None:
    first = condition("False", "Waiting", "for data")
    same = {**first, "lastTransitionTime": "later"}
    states = [{"status": {"conditions": [each]}} for each in (first, same)]
    changes = list_all(*(machine(**each) for each in states))
    assert [each.what for each in changes] == [
        "created",
        "condition Ready: False Waiting: for data",
    ]


def test_a_condition_that_stays_is_no_change_when_those_of_the_former_contract_appear() -> None:
    current = {"conditions": [condition("True", "Ready")]}
    former = {"deprecated": {"v1beta1": {"conditions": [condition("True", "")]}}}
    changes = list_all(machine(status=current), machine(status={**current, **former}))
    assert [each.path for each in changes[1:]] == [
        "status.conditions[Ready]",
        "status.deprecated.v1beta1.conditions[Ready]",
    ]


def test_conditions_of_both_contracts_have_their_paths() -> None:
    old = {"deprecated": {"v1beta1": {"conditions": [condition("False", "Old")]}}}
    changes = list_all(
        machine(status={"conditions": [condition("True", "New")], **old}), machine(status={})
    )
    assert [(each.what, each.path) for each in changes[1:3]] == [
        ("condition Ready: True New", "status.conditions[Ready]"),
        ("condition Ready: False Old", "status.deprecated.v1beta1.conditions[Ready]"),
    ]
    assert {each.what for each in changes[3:]} == {"condition Ready removed"}


def test_the_writer_of_a_removed_field_is_the_one_whose_entry_has_changed() -> None:
    fields: JSON = {"f:metadata": {"f:finalizers": {".": {}, 'v:"acme/x"': {}}}}
    before = machine(entry("core", {}), entry("acme", fields), finalizers=["acme/x"])
    after = machine(entry("core", {}), entry("acme", {}, time="2"))
    added, removed = list_all(before, after)[1:]
    assert (added.what, added.writer) == ("finalizer added: acme/x", "acme")
    assert (removed.what, removed.writer) == ("finalizer removed: acme/x", "acme")


def test_the_writer_of_a_second_change_within_a_second_is_known() -> None:
    fields = entry("acme", {"f:status": {"f:conditions": {READY: {}}}})
    other = entry("core", {"f:status": {"f:conditions": {'k:{"type":"Paused"}': {}}}})
    reasons = [{"status": {"conditions": [condition("False", each)]}} for each in ("A", "B")]
    changes = list_all(*(machine(fields, other, **each) for each in reasons))
    assert [each.writer for each in changes[1:]] == ["acme", "acme"]


def test_managed_fields_that_list_a_parent_as_a_whole() -> None:
    atomic = entry("acme", {"f:status": {"f:conditions": {}}})
    _, changed = list_all(machine(atomic, status={"conditions": [condition("True", "Yes")]}))
    assert changed.writer == "acme"


def test_a_second_object_of_the_same_name_begins_a_new_life() -> None:
    states = [
        State(machine(spec={"providerID": "a"}), False, 1.0),
        State(machine(), True, 2.0),
        State(machine(spec={"providerID": "a"}), False, 3.0),
    ]
    changes = [each.what for each in list_changes(states, 0.0, str)]
    assert changes == ["created", "providerID: a", "deleted", "created", "providerID: a"]


def test_only_named_fields_are_shown_and_secrets_are_hidden() -> None:
    obj = machine(
        spec={"password": "s3cret", "files": [{"content": "s3cret"}]},
        status={"conditions": [condition("False", "Refused", "the login s3cret")]},
        annotations={"key": "s3cret"},
    )
    states = [State(obj, False, 1.0)]
    changes = list_changes(states, 0.0, lambda text: text.replace("s3cret", "(hidden)"))
    assert "s3cret" not in str(changes)
    assert changes[1].what == "condition Ready: False Refused: the login (hidden)"


def test_objects_of_any_shape_are_read() -> None:
    shapes: list[Any] = [None, [], "x", 1, {"a": 1}, [1, None, {"type": None}]]
    for shape in shapes:
        obj = machine(spec=shape, status={"conditions": shape, "deprecated": shape})
        obj["metadata"] |= {"ownerReferences": shape, "finalizers": shape, "managedFields": shape}
        assert list_all(obj, machine(), obj)[0].what == "created"
