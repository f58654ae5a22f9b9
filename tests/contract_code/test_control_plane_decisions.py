"""What a control plane does next: every single decision, and where they lead together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from capsmith_generated.controllers.control_plane.remediation import CANNOT, DEFERRED, DELETING
from capsmith_generated.controllers.control_plane.scaling import decide
from capsmith_generated.controllers.control_plane.situation import (
    Create,
    Decision,
    Member,
    Remove,
    Situation,
)

DOMAINS = ("a", "b", "c")


def _member(number: int, **changes: Any) -> Member:
    made = Member(
        name=f"m{number}", created=f"2030-01-01T00:00:0{number}Z", domain=DOMAINS[number % 3]
    )
    return replace(made, **changes)


def _decided(wanted: int, *members: Member, **changes: Any) -> Decision:
    return decide(Situation(wanted=wanted, members=members, domains=DOMAINS, **changes))


THREE = tuple(_member(number) for number in range(3))


def test_nothing_is_done_when_all_is_well() -> None:
    assert _decided(3, *THREE) == Decision()


def test_the_first_machine_needs_nobody() -> None:
    """Proves: CP-24."""
    assert _decided(3, initialized=False).step == Create("a")


def test_the_second_machine_waits_for_the_api_server() -> None:
    found = _decided(3, _member(0, settled=False, had_node=False), initialized=False)

    assert found.step is None
    assert "API server" in found.blocked


@pytest.mark.parametrize(
    "trouble",
    [{"settled": False}, {"healthy": False}, {"deleting": True}],
    ids=["joining", "unhealthy", "leaving"],
)
def test_one_change_at_a_time(trouble: dict[str, Any]) -> None:
    changed = replace(THREE[2], **trouble)

    for wanted in (1, 5):
        found = _decided(wanted, THREE[0], THREE[1], changed)
        # The broken one itself may go, if it is one too many.
        assert found.step in (None, Remove("m2", "scaling down"))
        assert found.step is None or not trouble.get("deleting")
    assert _decided(5, THREE[0], THREE[1], changed).blocked


def test_machines_are_spread() -> None:
    """Proves: CP-24."""
    assert _decided(3, THREE[0]).step == Create("b")
    assert _decided(3, THREE[0], THREE[2]).step == Create("b")
    assert _decided(4, *THREE).step == Create("a")


def test_the_domain_of_outdated_machines_counts_as_free() -> None:
    """Proves: CP-24."""
    outdated = [replace(THREE[0], up_to_date=False), THREE[1], THREE[2]]

    assert _decided(3, *outdated).step == Create("a")


def test_the_fullest_domain_gives_first_the_oldest() -> None:
    found = _decided(3, *THREE, _member(3))

    assert found.step == Remove("m0", "scaling down")


def test_machines_in_no_known_domain_go_first() -> None:
    found = _decided(3, *THREE, _member(4, domain="gone"))

    assert found.step == Remove("m4", "scaling down")


def test_the_users_choice_goes_first() -> None:
    """Proves: CP-31."""
    marked = replace(THREE[1], unwanted=True)

    assert _decided(2, THREE[0], marked, THREE[2]).step == Remove("m1", "scaling down")
    # A mark alone removes nothing.
    assert _decided(3, THREE[0], marked, THREE[2]).step is None


def test_a_rollout_surges_by_one_and_then_removes_the_outdated() -> None:
    old = tuple(replace(member, up_to_date=False) for member in THREE)
    new = _member(3, domain="a")

    assert isinstance(_decided(3, *old).step, Create)
    assert _decided(3, *old, replace(new, settled=False)).step is None
    assert _decided(3, *old, new).step == Remove("m0", "rolling out")


def test_a_rollout_of_one_machine_makes_the_new_one_first() -> None:
    old = replace(THREE[0], up_to_date=False)

    assert isinstance(_decided(1, old).step, Create)
    assert _decided(1, old, _member(1)).step == Remove("m0", "rolling out")


def test_a_broken_outdated_machine_goes_before_others() -> None:
    old = [replace(member, up_to_date=False) for member in THREE]
    broken = replace(old[1], healthy=False)

    assert _decided(3, old[0], broken, old[2], _member(3)).step == Remove("m1", "rolling out")


def _condemned(number: int, **changes: Any) -> Member:
    return _member(number, condemned=True, healthy=False, **changes)


def test_a_condemned_machine_is_removed_first_then_replaced() -> None:
    """Proves: CP-31."""
    found = _decided(3, THREE[0], THREE[1], _condemned(2))

    assert found.step == Remove("m2", "remediating")
    assert found.verdicts["m2"].reason == DELETING
    assert isinstance(_decided(3, THREE[0], THREE[1], replacing=True).step, Create)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([_condemned(0)], CANNOT),
        ([_member(0), _condemned(1)], DELETING),
        ([_member(0), _condemned(1), _condemned(2)], CANNOT),
        ([_member(0), _member(1, deleting=True), _condemned(2)], DEFERRED),
        ([_member(0), _member(1, settled=False), _condemned(2)], DEFERRED),
        ([_member(0), _member(1), _condemned(2, reprieve="too soon")], DEFERRED),
    ],
    ids=["only one", "one of two", "two of three", "one leaves", "one joins", "too soon"],
)
def test_a_quorum_is_never_risked(members: list[Member], reason: str) -> None:
    """Proves: CP-31."""
    found = _decided(len(members), *members)

    reasons = {found.verdicts[m.name].reason for m in members if m.condemned}
    assert reason in reasons
    assert (reason == DELETING) == isinstance(found.step, Remove)


def test_the_most_broken_one_is_replaced_first() -> None:
    """Proves: CP-31."""
    five = [_member(0), _member(1), _member(4)]
    without_node = _condemned(3, had_node=False, settled=False)
    forced = _condemned(2, forced=True)

    assert _decided(5, *five, _condemned(2), without_node).step == Remove("m3", "remediating")
    assert _decided(5, *five, forced, without_node).step == Remove("m2", "remediating")


def test_a_control_plane_that_never_was_loses_its_only_machine() -> None:
    """Proves: CP-31."""
    failed = _condemned(0, settled=False, had_node=False)

    assert _decided(3, failed, initialized=False).step == Remove("m0", "remediating")
    # After a move the status is gone, but the Machine has been a Node: it holds all the data.
    moved = _condemned(0, settled=False, had_node=True)
    assert _decided(3, moved, initialized=False).step is None


def test_a_replacement_may_join_a_damaged_control_plane() -> None:
    """Proves: CP-31."""
    damaged = [_member(0), _member(1), _member(2), _condemned(3)]

    assert isinstance(_decided(5, *damaged, replacing=True).step, Create)
    assert _decided(5, *damaged).step == Remove("m3", "remediating")
    assert _decided(3, _member(0), _condemned(1), replacing=True).step is None
