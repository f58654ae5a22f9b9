"""What the page shows follows from objects: tree, groups, summaries, details, differences."""

from __future__ import annotations

from datetime import datetime

import pytest

from capsmith.clusters.conditions import list_conditions
from capsmith.clusters.lab.page.model.calls import AuthorCall
from capsmith.clusters.lab.page.model.details import describe_object, diff_versions
from capsmith.clusters.lab.page.model.log_lines import (
    LogFilter,
    describe_line,
    get_level,
    get_time,
    is_about,
    merge_lines,
)
from capsmith.clusters.lab.page.model.store import ObjectStore, ServedType, SimulatedServer
from capsmith.clusters.lab.page.model.summary import summarize
from capsmith.clusters.lab.page.model.tree import TreeQuery, build_tree, compare_rows, count_states
from tests.browser.objects import (
    ACME,
    JSON,
    condition,
    copy,
    make,
    make_cluster,
    make_event,
    make_machine,
)


def store_of(*objects: JSON) -> ObjectStore:
    store = ObjectStore()
    for number, each in enumerate(objects):
        each["metadata"].setdefault("resourceVersion", str(number + 1))
        store.apply(each)
    return store


def change(obj: JSON, **parts: object) -> JSON:
    found = {**copy(obj), **parts}
    found["metadata"]["resourceVersion"] = "9" + str(obj["metadata"].get("resourceVersion"))
    return found


def lines(store: ObjectStore, **query: object) -> list[str]:
    rows = build_tree(store, TreeQuery(**query))  # type: ignore[arg-type]
    return [f"{'  ' * row.depth}{row.kind or '*'}/{row.name}: {row.state}" for row in rows]


def test_tree_is_that_of_clusterctl_without_machine_sets() -> None:
    store = store_of(*make_cluster(), *make_machine("demo-md-0-abc-1"))
    assert lines(store) == [
        "Cluster/demo: Provisioned",
        "  AcmeCluster/demo: Provisioned",
        "  MachineDeployment/demo-md-0: 0 of 2 ready",
        "    Machine/demo-md-0-abc-1: Running",
        "      AcmeMachine/demo-md-0-abc-1: Provisioned",
    ]


def test_an_object_without_owner_is_below_what_refers_to_it() -> None:
    """An author sees an infrastructure cluster whose owner core has not set yet."""
    cluster, infrastructure, *_ = make_cluster()
    infrastructure["metadata"]["ownerReferences"] = []
    assert lines(store_of(infrastructure, cluster))[1].startswith("  AcmeCluster/demo")


def test_equal_machines_share_a_row_and_a_different_one_has_its_own() -> None:
    machines = [obj for number in range(6) for obj in make_machine(f"m-{number}")]
    waiting = make_machine("m-slow", phase="Provisioning", message="no quota")
    store = store_of(*make_cluster(), *machines, *waiting)
    rows = build_tree(store, TreeQuery())
    (group,) = (row for row in rows if row.count)
    assert (group.name, group.state, group.is_open) == ("6 Machines", "Running", False)
    assert next(row.waiting for row in rows if row.name == "m-slow") == (
        "InfrastructureReady: no quota"
    )
    opened = lines(store, open=frozenset({group.id}))
    assert len([line for line in opened if " AcmeMachine/m-" in line]) == 7
    assert len(lines(store, search="m-3")) == 4
    assert not [line for line in lines(store, is_waiting_only=True) if "Running" in line]


def test_groups_that_differ_have_different_ids() -> None:
    """A browser keeps rows by id: a second row with the same id would replace the first."""
    paused = [make_machine(f"p-{number}") for number in range(5)]
    for machine, _ in paused:
        machine["metadata"]["annotations"] = {"cluster.x-k8s.io/paused": ""}
    failed = [make_machine(f"f-{number}") for number in range(6)]
    for _, infrastructure in failed:
        infrastructure["status"] = {"phase": "Failed"}
    others = [make_machine(f"m-{number}") for number in range(7)]
    machines = [obj for pair in [*paused, *failed, *others] for obj in pair]
    store = store_of(*make_cluster(), *machines)
    groups = [row for row in build_tree(store, TreeQuery()) if row.count]
    assert sorted(row.count for row in groups) == [5, 6, 7]
    assert len({row.id for row in groups}) == 3
    for group in groups:
        opened = build_tree(store, TreeQuery(open=frozenset({group.id})))
        assert sum(row.kind == "Machine" for row in opened) == group.count


def test_a_group_is_shown_for_what_its_members_children_wait_for() -> None:
    machines = [make_machine(f"m-{number}") for number in range(6)]
    for _, infrastructure in machines:
        infrastructure["status"] = {"phase": "Failed"}
    store = store_of(*make_cluster(), *(obj for pair in machines for obj in pair))
    (group,) = (row for row in build_tree(store, TreeQuery(is_waiting_only=True)) if row.count)
    assert group.count == 6
    opened = lines(store, open=frozenset({group.id}), is_waiting_only=True)
    assert len([line for line in opened if " AcmeMachine/m-" in line]) == 6


def test_a_group_stays_open_while_objects_below_its_members_appear() -> None:
    machines = [make_machine(f"m-{number}") for number in range(6)]
    store = store_of(*make_cluster(), *(machine for machine, _ in machines))
    (group,) = (row for row in build_tree(store, TreeQuery()) if row.count)
    store = store_of(*make_cluster(), *(obj for pair in machines for obj in pair))
    rows = build_tree(store, TreeQuery(open=frozenset({group.id})))
    assert [row.is_open for row in rows if row.count] == [True]
    store.set_servers(())
    rows = build_tree(store, TreeQuery(open=frozenset({group.id})))
    assert [row.is_open for row in rows if row.count] == [True]


def test_two_machines_with_one_provider_id_have_a_row_each() -> None:
    one, two = make_machine("one"), make_machine("two")
    two[1]["spec"]["providerID"] = "acme://one"
    store = store_of(*make_cluster(), *one, *two)
    store.set_servers((SimulatedServer("17", "one", "acme://one"),))
    ids = [row.id for row in build_tree(store, TreeQuery())]
    assert len(ids) == len(set(ids))


def test_five_thousand_machines_are_few_rows() -> None:
    machines = [obj for number in range(5_000) for obj in make_machine(f"m-{number}")]
    store = store_of(*make_cluster(), *machines)
    assert len(build_tree(store, TreeQuery())) == 4
    rows = build_tree(store, TreeQuery(search="m-"))
    assert (len(rows), rows[-1].name[:10]) == (601, "9402 more ")


def test_servers_of_the_simulated_cloud_are_behind_their_machines() -> None:
    store = store_of(*make_cluster(), *make_machine("one"), *make_machine("two"))
    store.set_servers((SimulatedServer("17", "one", "acme://one"),))
    found = [line.strip() for line in lines(store) if "Server" in line]
    assert found == ["Server/one: Exists", "Server/two: Lost"]


def test_comparison_has_only_what_changed() -> None:
    cluster, *rest = make_cluster()
    store = store_of(cluster, *rest)
    before = build_tree(store, TreeQuery())
    assert compare_rows(before, build_tree(store, TreeQuery())) == {}
    store.apply(change(cluster, status={"phase": "Deleting"}))
    changed = compare_rows(before, build_tree(store, TreeQuery()))
    assert [row["name"] for row in changed["rows"]] == ["demo"]
    assert "order" not in changed
    assert count_states(store)["waiting"] == 2


def test_a_call_that_takes_long_is_in_the_rows_of_its_object_and_machine() -> None:
    names = [f"m-{number}" for number in range(6)]
    store = store_of(*make_cluster(), *(obj for name in names for obj in make_machine(name)))
    call = AuthorCall("AcmeMachineReconciler.reconcile_normal", 42.0)
    rows = build_tree(store, TreeQuery(), {("AcmeMachine", "default/m-3"): call})
    titles = [
        "",
        "",
        "",
        "",
        "AcmeMachine/m-3 reconcile_normal",
        "AcmeMachine/m-3 reconcile_normal",
    ]
    assert [row.call for row in rows] == titles
    assert [row.name for row in rows][3:] == ["5 Machines", "m-3", "m-3"]
    assert [row.call_begin for row in rows][-2:] == [42.0, 42.0]
    waiting = TreeQuery(is_waiting_only=True)
    rows = build_tree(store, waiting, {("AcmeMachine", "default/m-3"): call})
    assert "m-3" in [row.name for row in rows]


def test_a_group_shows_how_many_calls_take_long_and_since_when() -> None:
    names = [f"m-{number}" for number in range(5)]
    store = store_of(*make_cluster(), *(obj for name in names for obj in make_machine(name)))
    running = {
        ("AcmeMachine", f"default/{name}"): AuthorCall("AcmeMachineReconciler.reconcile", begin)
        for name, begin in zip(names, (50.0, 60.0, 42.0, 70.0, 80.0), strict=True)
    }
    (group,) = (row for row in build_tree(store, TreeQuery(), running) if row.count)
    assert (group.name, group.call) == ("5 Machines", "reconcile of 5 objects, the first")
    assert group.call_begin == 42.0


def test_machines_whose_errors_are_about_different_secrets_share_no_row() -> None:
    refused = [condition("InfrastructureReady", "False", "401 Unauthorized", "LoginRefused")]
    objects = make_cluster()
    for number in range(10):
        machine, infrastructure = make_machine(f"m-{number}", phase="Provisioning")
        machine["status"]["conditions"] = refused
        infrastructure["spec"]["credentialsRef"] = {"name": "even" if number % 2 == 0 else "odd"}
        objects += [machine, infrastructure]
    rows = [row for row in build_tree(store_of(*objects), TreeQuery()) if row.count]
    text = "InfrastructureReady (LoginRefused): 401 Unauthorized (Secret default/"
    assert sorted((row.name, row.waiting) for row in rows) == [
        ("5 Machines", f"{text}even)"),
        ("5 Machines", f"{text}odd)"),
    ]


def test_a_refused_login_names_no_other_secret_of_the_machine() -> None:
    machine, infrastructure = make_machine("one", phase="Provisioning")
    infrastructure["spec"]["sshKeySecretRef"] = {"name": "ssh"}
    refused = condition("InfrastructureReady", "False", "401 Unauthorized", "LoginRefused")
    machine["status"]["conditions"] = [refused]
    rows = build_tree(store_of(*make_cluster(), machine, infrastructure), TreeQuery())
    (row,) = (row for row in rows if row.kind == "Machine")
    assert row.waiting == "InfrastructureReady (LoginRefused): 401 Unauthorized"


def test_a_refused_login_names_the_secret_of_the_identity() -> None:
    objects = make_cluster()
    machine, infrastructure = make_machine("one", phase="Provisioning")
    objects[1]["spec"]["identityRef"] = {"kind": "AcmeIdentity", "name": "eu"}
    identity = make("AcmeIdentity", "eu", version=ACME, spec={"secretRef": {"name": "login"}})
    refused = condition("InfrastructureReady", "False", "401 Unauthorized", "LoginRefused")
    machine["status"]["conditions"] = [refused]
    store = store_of(*objects, machine, infrastructure, identity)
    (row,) = (row for row in build_tree(store, TreeQuery()) if row.kind == "Machine")
    text = "InfrastructureReady (LoginRefused): 401 Unauthorized (Secret default/login)"
    assert (row.tone, row.waiting) == ("failed", text)
    found = store.find(row.id)
    assert found is not None
    assert describe_object(store, found)["waiting"] == text


def test_a_bootstrap_error_names_the_secret_of_the_bootstrap_config() -> None:
    objects = make_cluster()
    objects[1]["spec"]["identityRef"] = {"kind": "Secret", "name": "login"}
    machine, infrastructure = make_machine("one", phase="Pending")
    reference = {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "one"}
    machine["spec"]["bootstrap"] = {"configRef": reference}
    config = make(
        "KubeadmConfig",
        "one",
        owner=machine,
        version="bootstrap.cluster.x-k8s.io/v1beta2",
        labels=machine["metadata"]["labels"],
        spec={"files": [{"contentFrom": {"secret": {"name": "file"}}}]},
    )
    failure = 'Secret "file" not found'
    for obj, type in ((machine, "BootstrapConfigReady"), (config, "Ready")):
        obj["status"]["conditions"] = [condition(type, "False", failure, "InternalError")]
    store = store_of(*objects, machine, infrastructure, config)
    rows = {row.kind: row.waiting for row in build_tree(store, TreeQuery())}
    named = f"(InternalError): {failure} (Secret default/file)"
    assert rows["Machine"] == f"BootstrapConfigReady {named}"
    assert rows["KubeadmConfig"] == f"Ready {named}"


@pytest.mark.parametrize(
    ("obj", "state", "waiting"),
    [
        ({"status": {"phase": "Pending", "conditions": [condition("Ready", "False", "a")]}},
         "Pending", "Ready: a"),
        ({"spec": {"replicas": 3}, "status": {"readyReplicas": 3}}, "3 of 3 ready", ""),
        ({"status": {"ready": False}, "metadata": {}}, "Not ready", "no owner yet"),
        ({"spec": {"replicas": 1}}, "0 of 1 ready", "no status yet"),
        (
            {
                "metadata": {"ownerReferences": [{}]},
                "spec": {"replicas": 2},
                "status": {
                    "phase": "ScalingUp",
                    "readyReplicas": 1,
                    "conditions": [condition("Available", "False", "one is missing")],
                },
            },
            "1 of 2 ready",
            "Available: one is missing",
        ),
        ({"status": {"dataSecretName": "s"}}, "Data created", ""),
        ({"status": {"addressRef": {"name": "ip"}}}, "Bound", ""),
        ({"metadata": {"deletionTimestamp": "now", "finalizers": ["a/b"]}},
         "Deleting", "finalizers: a/b"),
        ({"metadata": "no mapping", "spec": [], "status": {"conditions": {"a": 1}}}, "", ""),
    ],
)  # fmt: skip
def test_summary(obj: JSON, state: str, waiting: str) -> None:
    summary = summarize(obj)
    assert summary.state == state
    assert summary.waiting.startswith(waiting)
    assert bool(summary.waiting) == bool(waiting)


@pytest.mark.parametrize(
    "obj",
    [
        {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}},
        {"spec": {"paused": True}},
        {"status": {"conditions": [condition("Paused", "True")]}},
    ],
)
def test_pause_is_seen_wherever_it_is(obj: JSON) -> None:
    assert summarize(obj).is_paused


def test_conditions_of_both_contracts_are_read() -> None:
    old, new = condition("Ready", "False"), condition("Available", "True")
    moving = {"status": {"conditions": [old], "v1beta2": {"conditions": [new]}}}
    moved = {"status": {"conditions": [new], "deprecated": {"v1beta1": {"conditions": [old]}}}}
    for obj in (moving, moved):
        found = {(each.contract, each.type) for each in list_conditions(obj)}
        assert found == {("v1beta1", "Ready"), ("v1beta2", "Available")}


def test_details_have_events_owners_and_the_difference() -> None:
    machine, _ = make_machine("one")
    machine["metadata"]["managedFields"] = [{"manager": "acme", "apiVersion": "a/v1"}]
    store = store_of(*make_cluster(), machine)
    store.apply(change(machine, status={"phase": "Failed"}))
    store.add_event(make_event(machine, "e", "boom"))
    found = store.find("cluster.x-k8s.io/Machine/default/one")
    assert found is not None
    shown = describe_object(store, found)
    assert [each["message"] for each in shown["events"]] == ["boom"]
    assert shown["owners"][0]["id"] == "cluster.x-k8s.io/MachineSet/default/demo-md-0-abc"
    assert "-  phase: Running" in shown["difference"]
    assert "+  phase: Failed" in shown["difference"]
    assert "managedFields" not in shown["yaml"]
    assert {"name": "Written by acme in", "value": "a/v1"} in shown["versions"]


def test_events_wait_for_their_object_to_be_listed() -> None:
    """Events are listed by another thread than objects, in any order."""
    machine, infrastructure = make_machine("one")
    store = store_of()
    store.types["cluster.x-k8s.io", "Machine"] = ServedType("cluster.x-k8s.io", "Machine", "v1", "")
    for number in range(60):
        store.add_event(make_event(machine, "e" * number, f"event {number}"))
    store.add_event(make_event(infrastructure, "e", "of a kind that is not watched"))
    for obj in (machine, infrastructure):
        store.apply(obj)
    found = {each.key.kind: store.list_events(each) for each in store}
    assert found["Machine"][0]["message"] == "event 59"
    assert len(found["Machine"]) == 50
    assert found["AcmeMachine"] == []


def test_events_of_objects_that_are_never_listed_are_bounded() -> None:
    store = store_of()
    store.types["cluster.x-k8s.io", "Machine"] = ServedType("cluster.x-k8s.io", "Machine", "v1", "")
    machines = [make("Machine", f"m-{number}") for number in range(10_001)]
    for machine in machines:
        store.add_event(make_event(machine, "e", "boom"))
    for machine in (machines[0], machines[-1]):
        store.apply(machine)
    first, last = store
    assert store.list_events(first) == []
    assert len(store.list_events(last)) == 1


def test_events_of_an_object_are_not_those_of_its_successor() -> None:
    machine, _ = make_machine("one")
    store = store_of(machine)
    store.add_event(make_event(machine, "e", "boom"))
    successor = change(machine)
    successor["metadata"]["uid"] = "other"
    store.apply(successor)
    store.apply(change(change(machine)))
    (found,) = store
    assert store.list_events(found) == []


def test_an_object_of_the_same_name_is_not_a_new_version() -> None:
    machine, _ = make_machine("one")
    store = store_of(machine)
    other = change(machine)
    other["metadata"]["uid"] = "other"
    store.apply(other)
    found = store.find("cluster.x-k8s.io/Machine/default/one")
    assert found is not None
    assert found.previous is None
    assert diff_versions(found.previous, found.data) == []


def test_log_lines_of_an_object_are_selected_with_their_traceback() -> None:
    log = [
        "2026-11-26T08:00:00.000Z ERROR acme failed key=default/demo-1",
        "Traceback (most recent call last):",
        "  raise ValueError",
        "ValueError: no",
        "2026-11-26T08:00:00.000Z INFO acme failed key=default/demo-12",
        'I1126 08:00:00.000000 1 a.go:1] "x" Machine="default/demo-1"',
    ]
    selected = LogFilter(name="demo-1").select("manager", log)
    assert selected == [*log[:4], log[5]]
    assert LogFilter(component="core").select("manager", log) == []
    assert LogFilter().select("manager", log) == log
    assert LogFilter().select("workload-1", log) == LogFilter().select("etcd", log) == []
    assert LogFilter(component="etcd").select("etcd", log) == log
    assert [get_level(line) for line in log] == ["error", "", "", "", "", ""]
    assert get_level('{"level": "warning", "msg": "x"}') == "warning"
    assert get_level("E1126 08:00:00.000000 1 a.go:1] x") == "error"


def test_lines_of_several_components_are_merged_by_time() -> None:
    now = datetime(2026, 11, 26, 12)
    manager = [
        "a line without a time",
        "2026-11-26 08:00:02.000 ERROR second",
        "Traceback (most recent call last):",
        "2026-11-26 08:00:01.000 INFO behind, although its clock went back",
    ]
    core = [
        'I1126 08:00:01.500000 1 a.go:1] "first"',
        '{"level": "info", "ts": "2026-11-26T08:00:02.500", "msg": "third"}',
    ]
    merged = merge_lines([("core", core), ("manager", manager)], now)
    assert [line for _, line in merged] == [manager[0], core[0], *manager[1:], core[1]]
    assert merged[1][0] == "core"


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("2026-11-26T08:00:00.123456789Z INFO x", 1795680000.123456),
        ("2026-11-26T10:00:00+02:00 INFO x", 1795680000.0),
        ("I1231 23:00:00.000000 1 x", datetime(2025, 12, 31, 23).timestamp()),
        ("I1126 08:00:00.000000 1 2020-01-01T00:00:00Z", datetime(2026, 11, 26, 8).timestamp()),
        ("INFO since 2026-11-26T08:00:00Z", None),
        ("2026-13-26T08:00:00Z", None),
        ("I0230 08:00:00.000000 1 x", None),
    ],
)
def test_times_of_lines(line: str, time: float | None) -> None:
    assert get_time(line, datetime(2026, 11, 26, 12)) == time


def test_lines_have_no_control_characters() -> None:
    shown = describe_line("core", "a\x1b[31mb\u202ec")
    assert shown["text"] == "a\\x1b[31mb\\u202ec"
    assert len(describe_line("core", "x" * 10_000)["text"]) < 5_000
    assert not is_about("demo-10", "demo-1")
