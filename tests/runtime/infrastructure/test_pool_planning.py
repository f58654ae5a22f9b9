"""Plans of machine pools: properties of single steps, and whole sequences."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsmith_runtime.infrastructure.machine_pool.plan import (
    MAX_CREATED,
    Plan,
    PoolMember,
    Rollout,
    assign_failure_domains,
    plan,
)
from capsmith_runtime.infrastructure.machine_pool.pool_machines import (
    format_machine_name,
    has_lost_owner,
    parse_machine_number,
    pool_labels,
)

FLAGS = ("deleting", "delete_requested", "unhealthy", "outdated", "has_node")
DOMAINS = ("", "a", "b", "c")
STEPS = 400
OWNER = {
    **{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool"},
    **{"name": "workers", "uid": "w", "controller": True},
}


def members(limit: int = 12) -> st.SearchStrategy[list[PoolMember]]:
    flags = st.fixed_dictionaries(dict.fromkeys(FLAGS, st.booleans()))
    one = st.tuples(flags, st.sampled_from(DOMAINS))
    return st.lists(one, max_size=limit).map(
        lambda found: [
            PoolMember(name=f"p-{number}", number=number, failure_domain=domain, **flags)
            for number, (flags, domain) in enumerate(found)
        ]
    )


def alive(found: list[PoolMember]) -> list[PoolMember]:
    return [member for member in found if not member.deleting]


def test_a_step_creates_few_machines() -> None:
    """Users set the number, and nothing limits it to less than two billion."""
    assert plan([], 2**31 - 1) == Plan(create=MAX_CREATED)


@given(members(), st.integers(0, 15))
def test_a_step_leads_to_the_wanted_number(found: list[PoolMember], wanted: int) -> None:
    """Proves: MP-10."""
    step = plan(found, wanted)

    assert not {member.name for member in step.delete} - {member.name for member in alive(found)}
    assert len(step.delete) == len(set(step.delete))
    left = len(alive(found)) - len(step.delete) + step.create
    replaced = [member for member in step.delete if member.outdated and not member.unhealthy]
    assert left == wanted or (replaced and left == wanted - len(replaced)) or _unhealthy(found)


def _unhealthy(found: list[PoolMember]) -> bool:
    return any(member.unhealthy for member in alive(found))


@given(members(), st.integers(0, 15), st.randoms())
def test_the_order_of_the_machines_means_nothing(
    found: list[PoolMember], wanted: int, random: Random
) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)
    assert plan(shuffled, wanted) == plan(found, wanted)


@given(members())
def test_without_a_number_nothing_is_touched(found: list[PoolMember]) -> None:
    """Proves: MP-17."""
    step = plan(found, None)
    assert (step.create, step.delete) == (0, ())


@given(members(), st.integers(0, 15))
def test_marked_machines_are_deleted_first(found: list[PoolMember], wanted: int) -> None:
    """Proves: MP-10."""
    healthy = [replace(member, unhealthy=False) for member in found]
    surplus = len(alive(healthy)) - wanted
    if surplus <= 0:
        return
    gone = plan(healthy, wanted).delete
    delete_requested = sum(member.delete_requested for member in alive(healthy))
    assert len(gone) == surplus
    assert sum(member.delete_requested for member in gone) == min(delete_requested, surplus)


@given(members(), st.integers(1, 15))
def test_at_most_one_machine_with_a_node_is_replaced(found: list[PoolMember], wanted: int) -> None:
    healthy = [replace(member, unhealthy=False) for member in found]
    if len(alive(healthy)) != wanted:
        return
    gone = plan(healthy, wanted).delete
    has_node = [member for member in gone if member.has_node]
    assert all(member.outdated for member in gone)
    assert len(has_node) <= 1
    if has_node:
        assert all(member.has_node for member in alive(healthy))
        assert len(alive(healthy)) == len(healthy)


@given(members(8), st.integers(0, 10))
def test_a_pool_settles_in_the_desired_state(found: list[PoolMember], wanted: int) -> None:
    """What core and the infrastructure do between the steps is played: Nodes join, machines go."""
    pool, number = list(found), 1000
    for _ in range(STEPS):
        step = plan(pool, wanted)
        if not step.create and not step.delete and not _moving(pool):
            break
        gone = {member.name for member in step.delete}
        pool = [replace(member, deleting=member.deleting or member.name in gone) for member in pool]
        for domain in assign_failure_domains(DOMAINS[1:], pool, step.create):
            number += 1
            pool.append(PoolMember(name=f"p-{number}", number=number, failure_domain=domain))
        assert len(alive(pool)) >= wanted - max(1, len(gone))
        pool = _moved(pool)
    assert len(pool) == wanted
    assert all(member.has_node and not member.outdated and not member.unhealthy for member in pool)


def _moving(pool: list[PoolMember]) -> bool:
    return any(member.deleting or not member.has_node for member in pool)


def _moved(pool: list[PoolMember]) -> list[PoolMember]:
    """One thing happens at a time: a machine that has to go is gone, or a Node joins."""
    for index, member in enumerate(pool):
        if member.deleting:
            return pool[:index] + pool[index + 1 :]
        if not member.has_node:
            return [*pool[:index], replace(member, has_node=True), *pool[index + 1 :]]
    return pool


ROLLOUTS = st.builds(Rollout, st.integers(0, 4), st.integers(0, 4)).filter(
    lambda rollout: rollout.surge + rollout.unavailable > 0
)


@given(st.integers(1, 10), ROLLOUTS, st.randoms())
def test_a_rollout_stays_within_its_limits(wanted: int, rollout: Rollout, random: Random) -> None:
    """Never more machines nor fewer Nodes than allowed, and in the end all are up to date."""
    pool = [
        PoolMember(name=f"p-{number}", number=number, outdated=True, has_node=True)
        for number in range(wanted)
    ]
    most = wanted
    for _ in range(STEPS):
        step = plan(pool, wanted, rollout)
        if not step.create and not step.delete and not _moving(pool):
            break
        gone = {member.name for member in step.delete}
        pool = [replace(member, deleting=member.deleting or member.name in gone) for member in pool]
        first = 1 + max((member.number for member in pool), default=wanted)
        pool += [
            PoolMember(name=f"p-{number}", number=number)
            for number in range(first, first + step.create)
        ]
        most = max(most, len(alive(pool)))
        assert sum(member.has_node for member in alive(pool)) >= wanted - rollout.unavailable
        random.shuffle(pool)
        pool = _moved(pool)
    assert len(pool) == wanted
    assert not any(member.outdated for member in pool)
    assert most == wanted + min(rollout.surge, wanted)


def test_several_machines_are_replaced_at_a_time_where_the_author_allows_it() -> None:
    pool = [
        PoolMember(name=f"p-{number}", number=number, outdated=True, has_node=True)
        for number in range(10)
    ]
    assert len(plan(pool, 10).delete) == 1
    assert len(plan(pool, 10, Rollout(0, 3)).delete) == 3
    assert plan(pool, 10, Rollout(4, 0)) == Plan(create=4)


@pytest.mark.parametrize(
    ("surge", "unavailable", "expected"),
    [
        (0, 1, Rollout(0, 1)),
        (0, 0, Rollout(0, 1)),
        ("10%", "10%", Rollout(2, 1)),
        ("100%", "0%", Rollout(15, 0)),
        ("3", 0, Rollout(3, 0)),
    ],
)
def test_shares_are_rounded_as_core_rounds_them(
    surge: int | str, unavailable: int | str, expected: Rollout
) -> None:
    assert Rollout.of(surge, unavailable, 15) == expected


@pytest.mark.parametrize("limit", [-1, "ten", "1.5", "%", "٣"])
def test_another_limit_is_refused(limit: int | str) -> None:
    with pytest.raises(ValueError, match="neither a number of machines nor a percentage"):
        Rollout.of(limit, 0, 15)


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=9), st.integers(0, 9))
def test_new_machines_even_out_the_failure_domains(before: list[str], count: int) -> None:
    pool = [
        PoolMember(name=f"p-{number}", number=number, failure_domain=domain)
        for number, domain in enumerate(before)
    ]
    chosen = assign_failure_domains(["a", "b", "c"], pool, count)
    load = {name: before.count(name) + chosen.count(name) for name in "abc"}
    assert len(chosen) == count
    for name in chosen:
        # The failure domains differ by at most one machine.
        assert load[name] - min(load.values()) <= 1


def test_without_failure_domains_machines_may_be_anywhere() -> None:
    assert assign_failure_domains([], [], 2) == ["", ""]


def test_surplus_machines_leave_the_failure_domains_even() -> None:
    pool = [
        PoolMember(name=f"p-{number}", number=number, has_node=True, failure_domain=domain)
        for number, domain in enumerate("aaaabb")
    ]
    assert [member.name for member in plan(pool, 3).delete] == ["p-3", "p-2", "p-5"]


@given(st.from_regex(r"\A[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z"), st.integers(0, 9_999_999))
def test_names_fit_and_contain_their_number(pool: str, number: int) -> None:
    name = format_machine_name(pool, number)
    assert len(name) <= 63
    assert parse_machine_number(pool, name) == number


def test_long_names_stay_apart() -> None:
    first, second = "a" * 60 + "-first", "a" * 60 + "-other"
    assert format_machine_name(first, 1) != format_machine_name(second, 1)
    assert parse_machine_number(first, format_machine_name(second, 1)) == -1


@pytest.mark.parametrize("name", ["p", "p-", "p-x", "q-1", "p-1-x", "p--1"])
def test_other_names_have_no_number(name: str) -> None:
    assert parse_machine_number("p", name) == -1


@pytest.mark.parametrize(
    ("name", "owners", "is_lost"),
    [
        ("p-1", [], True),
        ("p-1", ["Machine"], True),
        ("p-1", ["OtherPool"], False),
        ("mine", [], False),
        ("p-x", [], False),
    ],
)
def test_a_machine_of_another_name_is_not_adopted(
    name: str, owners: list[str], is_lost: bool
) -> None:
    """Labels that a user copies from a pool do not make a machine one of the pool."""
    pool = {"metadata": {"name": "p", "namespace": "n", "ownerReferences": [OWNER]}}
    labels = pool_labels(pool, "workers")
    references = [{"kind": kind, "name": "a", "uid": "u"} for kind in owners]
    machine = {"metadata": {"name": name, "labels": labels, "ownerReferences": references}}
    assert has_lost_owner(machine, pool) == is_lost
