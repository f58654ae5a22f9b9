"""Each check of infrastructure providers passes for a good provider, and finds what a bad one does.

No process runs, and nothing waits: core, provider and API server are in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from capsmith.judge.running.checks import INFRASTRUCTURE
from capsmith.judge.running.checks.restart_and_move import _leave_only_main
from capsmith.judge.running.checks.shared import (
    ensure_main_cluster,
    register_nodes,
    wait_for_condition,
)
from capsmith.judge.running.model import Skipped, Violated
from tests.unit.judge.running.infrastructure import open_session
from tests.unit.judge.running.memory import MemoryClient, condition

CHECKS = {check.name: check for check in INFRASTRUCTURE}
WITHOUT_POOLS = [name for name in CHECKS if not name.startswith("pool-")]
NOT_HERE = {
    "remediation": "needs Nodes",
    "move": "did not start the management clusters",
}
FAULTS = [
    ("cluster-provisioned", "never-provisions-clusters", "it never became provisioned"),
    ("cluster-waits-for-owner", "ignores-owners", "although no Cluster owns the object"),
    ("cluster-endpoint", "no-endpoint", "host or port of its endpoint is missing"),
    ("cluster-ready", "not-ready", "condition Ready is False, not True"),
    ("cluster-conditions", "no-reason", "Ready has no reason"),
    ("cluster-externally-managed", "takes-external", "leaves it to another system"),
    ("machine-provisioned", "never-provisions-machines", "it never became provisioned"),
    ("machine-waits-for-owner", "ignores-owners", "although no Machine owns the object"),
    ("machine-waits-for-cluster", "ignores-clusters", "its cluster is not provisioned"),
    ("machine-waits-for-data", "ignores-data", "its Machine has no bootstrap data"),
    ("machine-provider-id", "no-provider-id", "its provider ID is missing"),
    ("machine-addresses", "wrong-address", "an address is"),
    ("machine-failure-domain", "wrong-failure-domain", "its infrastructure is in elsewhere"),
    ("machine-ready", "not-ready", "condition Ready is False, not True"),
    ("machine-conditions", "no-reason", "Ready has no reason"),
    ("template-immutable", "mutable-template", "a change of spec.template.spec was accepted"),
    ("template-dry-run", "refuses-dry-runs", "was refused: spec.template.spec is immutable"),
    ("pause-cluster", "ignores-pause", "although spec.paused of the Cluster is true"),
    ("pause-annotation", "ignores-pause", "although the object has the annotation"),
    ("pause-condition", "no-paused-condition", "the Paused condition is not True"),
    ("pause-deletion", "deletes-paused", "completed the deletion of a paused object"),
    ("restart", "forgets", "after a restart its provider ID is"),
    ("delete-early", "never-deletes", "was deleted before anything was created"),
    ("delete-machine", "never-deletes", "its Machine was deleted, but it still exists"),
    ("delete-cluster", "never-deletes", "its Cluster was deleted, but it still exists"),
    ("finalizer-first", "no-finalizer", "but no finalizer"),
    ("provisioned-once", "loses-provisioned", "it was provisioned, but no longer is"),
    (
        "provider-id-constant",
        "changes-provider-id",
        "the provider ID changed from box://2 to box://1",
    ),
    ("owners-kept", "drops-owners", "an owner reference that core set was removed"),
    ("spec-kept", "changes-spec", "changed sizeGiB from 8 to 16"),
    ("ready-steady", "unsteady", "the message of Ready changes without a cause"),
]
POOL_FAULTS = [
    ("pool-provisioned", "never-provisions-pools", "it never became provisioned"),
    ("pool-initialization", "old-contract", "status.ready is true, but the field of contract"),
    ("pool-order", "reorders", "the order of the same provider IDs changed"),
    ("pool-machines", "other-machine-kind", "its machines are OtherMachine"),
    ("pool-scale-down", "ignores-marks", "was deleted although"),
    ("pool-waits-for-owner", "ignores-owners", "although no MachinePool owns the object"),
    ("pool-waits-for-data", "ignores-data", "its MachinePool has no bootstrap data"),
    ("pool-paused", "ignores-pause", "although the object has the annotation"),
    ("pool-provider-ids", "duplicates", "duplicate provider ID"),
    ("pool-replicas", "no-replicas", "it does not report 2 replicas"),
    ("pool-ready", "not-ready", "condition Ready is False, not True"),
    ("pool-conditions", "no-reason", "Ready has no reason"),
    ("pool-failures", "old-failures", "failureReason has a value, over which core panics"),
    ("pool-scale-up", "replaces-machines", "changed while others were added"),
    ("pool-restart", "forgets", "after a restart it had duplicate machines"),
    ("pool-replicas-managed", "scales-anyway", "although the MachinePool has"),
    ("pool-deletion", "never-deletes", "its MachinePool was deleted, but it still exists"),
]


@pytest.mark.parametrize("name", WITHOUT_POOLS)
def test_a_good_provider_passes(name: str) -> None:
    session = open_session()
    if name in NOT_HERE:
        with pytest.raises(Skipped, match=NOT_HERE[name]):
            CHECKS[name].run(session)
    else:
        CHECKS[name].run(session)


@pytest.mark.parametrize(("name", "fault", "message"), FAULTS, ids=[row[0] for row in FAULTS])
def test_a_fault_is_found(name: str, fault: str, message: str) -> None:
    with pytest.raises(Violated) as caught:
        CHECKS[name].run(open_session(fault))
    assert message in str(caught.value)
    assert caught.value.subject


@pytest.mark.parametrize("name", [name for name in CHECKS if name.startswith("pool-")])
@pytest.mark.parametrize("has_machines", [True, False])
def test_good_pools_pass(name: str, has_machines: bool) -> None:
    session = open_session("" if has_machines else "no-machine-objects", pools=True)
    if not has_machines and name in ("pool-machines", "pool-scale-down"):
        with pytest.raises(Skipped, match="no pool has"):
            CHECKS[name].run(session)
    else:
        CHECKS[name].run(session)


@pytest.mark.parametrize(
    ("name", "fault", "message"), POOL_FAULTS, ids=[row[0] for row in POOL_FAULTS]
)
def test_a_fault_of_pools_is_found(name: str, fault: str, message: str) -> None:
    with pytest.raises(Violated) as caught:
        CHECKS[name].run(open_session(fault, pools=True))
    assert message in str(caught.value)


def test_pools_need_a_template_with_a_pool() -> None:
    with pytest.raises(Skipped, match="no cluster template has a machine pool"):
        CHECKS["pool-provisioned"].run(open_session())


def test_two_machines_with_one_provider_id_are_found() -> None:
    session = open_session()
    CHECKS["machine-provisioned"].run(session)
    session.create_machine("main", "main-1")
    other = session.latest("BoxMachine", "main-1")
    taken = session.latest("BoxMachine", "main-0")["spec"]["providerID"]
    session.client.patch(other, {"spec": {"providerID": taken}})
    with pytest.raises(Violated, match="is also that of"):
        CHECKS["provider-id-constant"].run(session)


@pytest.mark.parametrize(
    ("fault", "required", "actual"),
    [("first-failure-domain", "two", "one"), ("last-failure-domain", "one", "two")],
)
def test_a_provider_that_always_uses_one_failure_domain_is_found(
    fault: str, required: str, actual: str
) -> None:
    message = f"the Machine requires failure domain {required}, its infrastructure is in {actual}"
    with pytest.raises(Violated, match=message) as caught:
        CHECKS["machine-failure-domain"].run(open_session(fault))
    assert caught.value.path == "status.failureDomain"


def test_machines_that_do_not_report_their_failure_domain_are_not_judged() -> None:
    with pytest.raises(Skipped, match="do not report their failure domains"):
        CHECKS["machine-failure-domain"].run(open_session("no-failure-domain"))


def test_a_step_that_failed_skips_the_checks_that_need_it() -> None:
    session = open_session("never-provisions-clusters")
    with pytest.raises(Violated, match="it never became provisioned") as caught:
        CHECKS["cluster-provisioned"].run(session)
    assert caught.value.hint == ""
    with pytest.raises(Skipped, match="the provisioning of the main cluster failed before") as left:
        CHECKS["machine-provisioned"].run(session)
    assert "\n" not in str(left.value)


def test_a_provider_that_says_why_it_waits_gets_no_hint_about_fields() -> None:
    session = open_session("lacks-credentials")
    with pytest.raises(Violated, match="it never became provisioned") as caught:
        CHECKS["cluster-provisioned"].run(session)
    assert "SecretNotFound" in caught.value.hint
    assert session.namespace in caught.value.hint
    assert "--apply" in caught.value.hint


def test_every_check_has_a_fault_or_a_reason() -> None:
    without = {"cluster-failure-domains", *NOT_HERE}
    assert {row[0] for row in (*FAULTS, *POOL_FAULTS)} == set(CHECKS) - without


def test_a_condition_may_become_true_after_the_object_is_provisioned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine pool is provisioned with its first machine, and ready with its last."""
    session = open_session()
    cluster = ensure_main_cluster(session)
    wait = session.history.wait

    def become_available(probe: Callable[[], bool], seconds: float) -> bool:
        conditions = [*cluster["status"]["conditions"], condition("Available", "True")]
        session.client.patch(cluster, {"status": {"conditions": conditions}}, "status")
        return wait(probe, seconds)

    with pytest.raises(Violated, match="condition Available is missing"):
        wait_for_condition(session, cluster, "Available", "True")
    monkeypatch.setattr(session.history, "wait", become_available)
    assert wait_for_condition(session, cluster, "Available", "True")["status"] == "True"


def test_machines_that_others_delete_before_the_move_are_no_fault() -> None:
    """Core is still deleting those of a MachineDeployment while the check deletes the others."""
    session = open_session()
    CHECKS["machine-provisioned"].run(session)
    session.create_machine("main", "other-1")
    session.create_machine("main", "other-2")
    client = session.client
    assert isinstance(client, MemoryClient)

    def delete_second() -> None:
        first, second = (client.memory.find("Machine", f"other-{n}") for n in (1, 2))
        if first is None and second is not None:
            client.delete(second)

    client.memory.controllers.append(delete_second)
    _leave_only_main(session)
    assert session.history.names("Machine") == ["main-0"]


def test_machines_that_are_deleted_while_nodes_are_registered_are_no_fault() -> None:
    session = open_session()
    CHECKS["machine-provisioned"].run(session)
    session.create_machine("main", "other")
    session.timing = replace(session.timing, patience=60.0)
    client = session.client
    assert isinstance(client, MemoryClient)

    def find_node_of_first() -> None:
        """Act when a Machine is changed to make core look for Nodes."""
        machine, other = (client.memory.find("Machine", name) for name in ("main-0", "other"))
        assert machine is not None
        if machine["metadata"].get("annotations") and other is not None:
            client.delete(other)
            client.patch(machine, {"status": {"nodeRef": {"name": "main-0"}}}, "status")

    client.memory.controllers.append(find_node_of_first)
    register_nodes(session)
    assert session.latest("Machine", "main-0")["status"]["nodeRef"] == {"name": "main-0"}
    assert session.history.names("Machine") == ["main-0"]


def test_nothing_is_left() -> None:
    session = open_session(pools=True)
    for name in ("cluster-ready", "pool-ready", "pause-annotation"):
        CHECKS[name].run(session)
    session.clean_up()
    for kind in ("Namespace", "Cluster", "BoxCluster", "BoxMachine", "BoxMachinePool"):
        version = "v1" if kind == "Namespace" else "cluster.x-k8s.io/v1beta2"
        assert session.client.list(version, kind, session.namespace) == []
