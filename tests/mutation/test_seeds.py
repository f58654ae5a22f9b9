"""Mistakes in releases of public shape: `verify` finds each by its rule."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.mutation.seeds import Seeded, find, load_mistakes, load_public, seed_all

MINIMUM = 0.98
"""Share of the mistakes that has to be found by its rule."""
WITHOUT_A_PLACE = {
    # Core may use the groups of cluster.x-k8s.io without a role.
    ("roles for core", "kumo"),
    # A provider of managed clusters has no templates of machines.
    ("templates that refuse dry-runs of topology", "sora"),
}


@pytest.fixture(scope="module")
def seeded() -> list[Seeded]:
    return list(seed_all())


def test_each_class_has_three_mistakes_in_each_release(seeded: list[Seeded]) -> None:
    counts = Counter((each.mistake.group, each.release) for each in seeded)
    groups = {mistake.group for mistake in load_mistakes()}
    every = {(group, public.name) for group in groups for public in load_public()}
    assert {each for each in every if counts[each] < 3} == WITHOUT_A_PLACE


def test_each_mistake_has_a_place(seeded: list[Seeded]) -> None:
    placed = {(each.mistake.group, each.mistake.text) for each in seeded}
    assert placed == {(mistake.group, mistake.text) for mistake in load_mistakes()}


def test_one_mistake_of_each_class_is_found_by_its_rule(seeded: list[Seeded]) -> None:
    """The releases take turns; ``python -m tests.mutation.seeds`` judges all mistakes."""
    groups = dict.fromkeys(each.mistake.group for each in seeded)
    for number, group in enumerate(groups):
        of_group = [each for each in seeded if each.mistake.group == group]
        of_group = [each for each in of_group if "missed" not in each.mistake.data]
        found = find(of_group[number * 5 % len(of_group)], every_rule=True)
        assert found.is_right, (found.seeded.name, sorted(found.ids))


@pytest.mark.exhaustive
def test_the_share_that_is_found_by_its_rule(seeded: list[Seeded]) -> None:
    missed = [
        f"{found.seeded.name}: {sorted(found.ids)}"
        for found in (find(each, every_rule=True) for each in seeded)
        if not found.is_right
    ]
    assert len(missed) <= (1 - MINIMUM) * len(seeded), missed
