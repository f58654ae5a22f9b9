"""Where an object's time went: log records of a manager, and conditions of core's objects."""

from __future__ import annotations

import json
from datetime import datetime

from capsmith.clusters.conditions import JSON
from capsmith.clusters.lab.page.model.calls import CallHistory
from capsmith.clusters.lab.page.model.store import ObjectStore, get_key
from capsmith.clusters.lab.page.model.time_axis import describe_time
from tests.browser.objects import CREATED, condition, make_cluster, make_machine, write_record

VALUES = {"controller": "AcmeMachine", "key": "default/one"}
METHOD = {**VALUES, "method": "AcmeMachineReconciler.reconcile_normal"}
OBJECT = {"kind": "AcmeMachine", "object": "default/one"}


def describe(lines: list[str], machine: list[JSON], selected: int = 1) -> JSON:
    store = ObjectStore()
    for obj in [*make_cluster(), *machine]:
        store.apply(obj)
    store.calls.read(lines)
    found = store.find(get_key(machine[selected]).id)
    assert found is not None
    return describe_time(store, store.calls, found)


def read_spans(described: JSON) -> list[tuple[str, str, float | None]]:
    return [(each["who"], each["what"], each["seconds"]) for each in described["spans"]]


LINES = [
    write_record(1, "INFO", "reconcile", "waiting", **OBJECT, reason="NoData", message="no data"),
    write_record(3, "DEBUG", "hooks", "call starts", **METHOD),
    write_record(4, "DEBUG", "hooks", "call ends", **METHOD, result="Waiting", seconds=1.0),
    write_record(4, "DEBUG", "controller", "reconciled", **VALUES, requeue_seconds=5),
    write_record(9, "DEBUG", "hooks", "call starts", **METHOD),
    write_record(11, "DEBUG", "hooks", "call ends", **METHOD, result="ValueError", seconds=2.0),
    write_record(
        *(11, "ERROR", "controller", "reconcile failed"),
        controller="AcmeMachine",
        key="default/one",
        error='ValueError: "no" password=s3cretvalue',
        retry_seconds=1.5,
    ),
    "Traceback (most recent call last):",
]


def test_time_is_that_of_core_queue_author_and_cloud() -> None:
    described = describe(LINES, make_machine("one", phase="Provisioning", message="no quota"))
    method = "reconcile_normal"
    error = 'ValueError: "no" password=(hidden)'
    assert read_spans(described) == [
        ("provider's queue", "first reconcile", 1.0),
        ("core", "NoData: no data", 2.0),
        ("author's call", f"{method} Waiting", 1.0),
        ("cloud", "the author's code waits, asked again after 5 s", 5.0),
        ("author's call", f"{method} {error}", 2.0),
        ("provider's queue", "InfrastructureReady: no quota", None),
    ]
    assert [each["requeue"] for each in described["calls"]] == [5.0, 1.5]


def test_records_in_json_are_read_as_those_in_text() -> None:
    texts = CallHistory()
    texts.read(LINES[1:4])
    records: list[JSON] = [
        {"ts": LINES[1].split()[0], "logger": "hooks", "msg": "call starts", **METHOD},
        {"logger": "hooks", "msg": "call ends", **METHOD, "result": "Waiting", "seconds": 1.0},
        {"logger": "controller", "msg": "reconciled", **VALUES, "requeue_seconds": 5},
    ]
    read = CallHistory()
    read.read(json.dumps({"ts": "2026-11-26T08:00:04.000Z", **each}) for each in records)
    found, expected = (each.find("AcmeMachine", "default/one") for each in (read, texts))
    assert found is not None
    assert expected is not None
    assert found.calls == expected.calls


def test_a_call_that_runs_is_open_until_the_manager_starts_again() -> None:
    machine = make_machine("one", phase="Provisioning")
    described = describe(LINES[1:2], machine)
    assert read_spans(described)[-1] == ("author's call", "reconcile_normal", None)
    start = write_record(20, "INFO", "manager", "starting", component="infrastructure")
    (call,) = describe([*LINES[1:2], start], machine)["calls"]
    assert call["result"] == "the manager ended"


def test_lines_of_the_author_and_of_nobody_are_no_calls() -> None:
    history = CallHistory()
    lines = [each.replace(" hooks ", " author ") for each in LINES[1:3]]
    history.read([*lines, "", "{", "[" * 100_000, '{"msg": ["call ends"], "logger": {}}', "x" * 9])
    assert history.find("AcmeMachine", "default/one") is None


def test_a_machine_shows_its_steps_and_its_infrastructure() -> None:
    machine, infrastructure = make_machine("one")
    times = {"BootstrapConfigReady": 5, "InfrastructureReady": 9, "NodeReady": 20, "Other": 7}
    machine["status"]["conditions"] = [
        {**condition(each, "True"), "lastTransitionTime": f"2026-11-26T08:00:{second:02d}Z"}
        for each, second in times.items()
    ]
    described = describe(LINES[1:3], [machine, infrastructure], selected=0)
    assert read_spans(described)[:3] == [
        ("bootstrap provider", "until BootstrapConfigReady", 5.0),
        ("infrastructure provider", "until InfrastructureReady", 4.0),
        ("node", "until NodeReady", 11.0),
    ]
    assert {each["object"] for each in described["spans"]} == {"Machine/one", "AcmeMachine/one"}
    assert [each["object"] for each in described["calls"]] == ["AcmeMachine/one"]


def test_a_wait_of_core_begins_with_its_condition() -> None:
    machine, infrastructure = make_machine("one", phase="Provisioning", message="no quota")
    machine["status"]["conditions"][0]["lastTransitionTime"] = "2026-11-26T08:30:00Z"
    (span,) = describe([], [machine, infrastructure], selected=0)["spans"][:1]
    created = datetime.fromisoformat(CREATED).timestamp()
    assert span["who"] == "infrastructure provider"
    assert span["what"] == "InfrastructureReady: no quota"
    assert (span["begin"] - created, span["seconds"]) == (1800.0, None)
