"""When the caches are good enough for the next plan of a pool."""

from __future__ import annotations

import pytest

from capsmith_runtime.infrastructure.machine_pool.create import EXPIRY_SECONDS, PoolExpectations
from capsmith_runtime.infrastructure.machine_pool.pool_machines import PoolMachines
from capsmith_runtime.kube.client import JSON, NamespacedName


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def obj(name: str, **metadata: str) -> JSON:
    return {"metadata": {"namespace": "ns", "name": name, "uid": f"uid-{name}", **metadata}}


def cached(*names: str, deleting: tuple[str, ...] = ()) -> PoolMachines:
    found = {
        name: obj(name, **({"deletionTimestamp": "now"} if name in deleting else {}))
        for name in names
    }
    return PoolMachines(found, {})


POOL = obj("pool")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def expectations(clock: Clock) -> PoolExpectations:
    made = PoolExpectations(clock)
    made.begin(POOL)
    return made


def test_the_first_plan_is_made_from_the_server(clock: Clock) -> None:
    expectations = PoolExpectations(clock)
    assert expectations.needs_live(POOL)
    expectations.begin(POOL)
    assert not expectations.needs_live(POOL)
    assert expectations.needs_live(obj("pool", uid="another"))


def test_creations_are_waited_for(expectations: PoolExpectations) -> None:
    expectations.expect(POOL, created=["a", "b"])
    assert expectations.seconds_left(POOL, cached("a")) == EXPIRY_SECONDS
    # It was seen: that it is gone by now is no reason to wait.
    assert expectations.seconds_left(POOL, cached("b")) == 0


def test_deletions_are_waited_for(expectations: PoolExpectations) -> None:
    expectations.expect(POOL, deleted=["uid-a", "uid-b"])
    assert expectations.seconds_left(POOL, cached("a", "b", deleting=("b",))) == EXPIRY_SECONDS
    assert expectations.seconds_left(POOL, cached("a", "b", deleting=("a", "b"))) == 0


def test_what_never_appears_is_looked_up(expectations: PoolExpectations, clock: Clock) -> None:
    expectations.expect(POOL, created=["a"])
    clock.now += EXPIRY_SECONDS - 1
    assert expectations.seconds_left(POOL, cached()) == 1
    assert not expectations.needs_live(POOL)
    clock.now += 1
    assert expectations.seconds_left(POOL, cached()) == 0
    assert expectations.needs_live(POOL)


def test_a_pool_that_is_gone_is_forgotten(expectations: PoolExpectations) -> None:
    expectations.expect(POOL, created=["a"])
    expectations.forget(NamespacedName("ns", "pool"))
    assert expectations.needs_live(POOL)
