"""The next step of a control plane: each decision by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.controlplane.scale_decision import (
    CANNOT_BE_REMEDIATED,
    DEFERRED,
    MACHINE_DELETING,
    Decision,
    MachineInput,
    ScaleDown,
    ScaleInput,
    ScaleUp,
    decide,
)

DOMAINS = ("a", "b", "c")


def _machine(number: int, **changes: Any) -> MachineInput:
    machine = MachineInput(
        name=f"m{number}", created=f"2030-01-01T00:00:0{number}Z", domain=DOMAINS[number % 3]
    )
    return replace(machine, **changes)


def _decide(replicas: int, *machines: MachineInput, **changes: Any) -> Decision:
    return decide(ScaleInput(replicas=replicas, machines=machines, domains=DOMAINS, **changes))


THREE = tuple(_machine(number) for number in range(3))


def test_nothing_is_done_when_all_machines_are_healthy() -> None:
    assert _decide(3, *THREE) == Decision()


def test_the_first_machine_needs_no_other() -> None:
    """Proves: CP-24."""
    assert _decide(3, initialized=False).step == ScaleUp("a")


def test_the_second_machine_waits_for_the_api_server() -> None:
    decision = _decide(3, _machine(0, joined=False, had_node=False), initialized=False)

    assert decision.step is None
    assert "API server" in decision.blocked


@pytest.mark.parametrize(
    "problem",
    [{"joined": False}, {"checks_passed": False}, {"deleting": True}],
    ids=["joining", "unhealthy", "deleting"],
)
def test_one_change_at_a_time(problem: dict[str, Any]) -> None:
    changed = replace(THREE[2], **problem)

    for replicas in (1, 5):
        decision = _decide(replicas, THREE[0], THREE[1], changed)
        # An unhealthy Machine may be deleted itself, if there is one too many.
        assert decision.step in (None, ScaleDown("m2", "scaling down"))
        assert decision.step is None or not problem.get("deleting")
    assert _decide(5, THREE[0], THREE[1], changed).blocked


def test_machines_are_spread_over_failure_domains() -> None:
    """Proves: CP-24."""
    assert _decide(3, THREE[0]).step == ScaleUp("b")
    assert _decide(3, THREE[0], THREE[2]).step == ScaleUp("b")
    assert _decide(4, *THREE).step == ScaleUp("a")


def test_outdated_machines_do_not_count_for_their_domain() -> None:
    """Proves: CP-24."""
    outdated = [replace(THREE[0], up_to_date=False), THREE[1], THREE[2]]

    assert _decide(3, *outdated).step == ScaleUp("a")


def test_the_oldest_machine_of_the_fullest_domain_is_deleted() -> None:
    decision = _decide(3, *THREE, _machine(3))

    assert decision.step == ScaleDown("m0", "scaling down")


def test_machines_outside_known_domains_are_deleted_first() -> None:
    decision = _decide(3, *THREE, _machine(4, domain="gone"))

    assert decision.step == ScaleDown("m4", "scaling down")


def test_the_machine_that_the_user_marked_is_deleted_first() -> None:
    """Proves: CP-31."""
    marked = replace(THREE[1], delete_annotation=True)

    assert _decide(2, THREE[0], marked, THREE[2]).step == ScaleDown("m1", "scaling down")
    # The annotation alone deletes nothing.
    assert _decide(3, THREE[0], marked, THREE[2]).step is None


def test_a_rollout_surges_by_one_and_then_deletes_an_outdated_machine() -> None:
    old = tuple(replace(machine, up_to_date=False) for machine in THREE)
    new = _machine(3, domain="a")

    assert isinstance(_decide(3, *old).step, ScaleUp)
    assert _decide(3, *old, replace(new, joined=False)).step is None
    assert _decide(3, *old, new).step == ScaleDown("m0", "rolling out")


def test_a_rollout_of_one_machine_creates_the_new_one_first() -> None:
    old = replace(THREE[0], up_to_date=False)

    assert isinstance(_decide(1, old).step, ScaleUp)
    assert _decide(1, old, _machine(1)).step == ScaleDown("m0", "rolling out")


def test_a_rollout_without_surge_deletes_an_outdated_machine_first() -> None:
    old = tuple(replace(machine, up_to_date=False) for machine in THREE)
    new = _machine(3, domain="a")

    assert _decide(3, *old, max_surge=0).step == ScaleDown("m0", "rolling out")
    leaving = replace(old[0], deleting=True)
    assert _decide(3, leaving, *old[1:], max_surge=0).step is None
    assert _decide(3, *old[1:], max_surge=0).step == ScaleUp("a")
    assert _decide(3, *old[1:], replace(new, joined=False), max_surge=0).step is None
    assert _decide(3, *old[1:], new, max_surge=0).step == ScaleDown("m1", "rolling out")


def test_a_rollout_without_surge_waits_for_the_health_of_all_other_machines() -> None:
    old = [replace(machine, up_to_date=False) for machine in THREE]
    unhealthy = replace(old[1], checks_passed=False)

    # The unhealthy one itself may go: the two others keep the quorum.
    decision = _decide(3, old[0], unhealthy, old[2], max_surge=0)
    assert decision.step == ScaleDown("m1", "rolling out")
    two = [unhealthy, replace(old[2], checks_passed=False)]
    decision = _decide(3, old[0], *two, max_surge=0)
    assert decision.step is None
    assert "healthy" in decision.blocked
    assert _decide(3, old[0], unhealthy, max_surge=0).step is None


@pytest.mark.parametrize("replicas", [1, 2])
def test_fewer_than_three_machines_are_not_replaced_without_surge(replicas: int) -> None:
    old = tuple(replace(machine, up_to_date=False) for machine in THREE[:replicas])

    assert isinstance(_decide(replicas, *old, max_surge=0).step, ScaleUp)


def test_an_unhealthy_outdated_machine_is_deleted_first() -> None:
    old = [replace(machine, up_to_date=False) for machine in THREE]
    unhealthy = replace(old[1], checks_passed=False)

    assert _decide(3, old[0], unhealthy, old[2], _machine(3)).step == ScaleDown("m1", "rolling out")


def _unhealthy(number: int, **changes: Any) -> MachineInput:
    return _machine(number, needs_remediation=True, checks_passed=False, **changes)


def test_an_unhealthy_machine_is_deleted_first_then_replaced() -> None:
    """Proves: CP-31."""
    decision = _decide(3, THREE[0], THREE[1], _unhealthy(2))

    assert decision.step == ScaleDown("m2", "remediating")
    assert decision.remediation["m2"].reason == MACHINE_DELETING
    assert isinstance(_decide(3, THREE[0], THREE[1], remediation_in_progress=True).step, ScaleUp)


@pytest.mark.parametrize(
    ("machines", "reason"),
    [
        ([_unhealthy(0)], CANNOT_BE_REMEDIATED),
        ([_machine(0), _unhealthy(1)], MACHINE_DELETING),
        ([_machine(0), _unhealthy(1), _unhealthy(2)], CANNOT_BE_REMEDIATED),
        ([_machine(0), _machine(1, deleting=True), _unhealthy(2)], DEFERRED),
        ([_machine(0), _machine(1, joined=False), _unhealthy(2)], DEFERRED),
        (
            [_machine(0), _machine(1), _unhealthy(2, remediation_retry_after="too soon")],
            DEFERRED,
        ),
    ],
    ids=["only one", "one of two", "two of three", "one is deleted", "one joins", "too soon"],
)
def test_a_quorum_is_never_risked(machines: list[MachineInput], reason: str) -> None:
    """Proves: CP-31."""
    decision = _decide(len(machines), *machines)

    reasons = {decision.remediation[m.name].reason for m in machines if m.needs_remediation}
    assert reason in reasons
    assert (reason == MACHINE_DELETING) == isinstance(decision.step, ScaleDown)


def test_the_most_unhealthy_machine_is_replaced_first() -> None:
    """Proves: CP-31."""
    five = [_machine(0), _machine(1), _machine(4)]
    without_node = _unhealthy(3, had_node=False, joined=False)
    forced = _unhealthy(2, remediate_annotation=True)

    assert _decide(5, *five, _unhealthy(2), without_node).step == ScaleDown("m3", "remediating")
    assert _decide(5, *five, forced, without_node).step == ScaleDown("m2", "remediating")


def test_an_uninitialised_control_plane_may_lose_its_only_machine() -> None:
    """Proves: CP-31."""
    failed = _unhealthy(0, joined=False, had_node=False)

    assert _decide(3, failed, initialized=False).step == ScaleDown("m0", "remediating")
    # After a move the status is lost, but the Machine had a Node: it holds all the data.
    moved = _unhealthy(0, joined=False, had_node=True)
    assert _decide(3, moved, initialized=False).step is None


def test_a_replacement_may_join_a_damaged_control_plane() -> None:
    """Proves: CP-31."""
    damaged = [_machine(0), _machine(1), _machine(2), _unhealthy(3)]

    assert isinstance(_decide(5, *damaged, remediation_in_progress=True).step, ScaleUp)
    assert _decide(5, *damaged).step == ScaleDown("m3", "remediating")
    assert _decide(3, _machine(0), _unhealthy(1), remediation_in_progress=True).step is None
