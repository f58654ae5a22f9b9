"""Pauses of the garbage collector do not grow with the number of cached objects."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from collections.abc import Iterator

import pytest

from capsmith_runtime.kube.process import GcPauseLimiter
from tests.runtime.support.filled_tuple import fill_during_get_objects


@pytest.fixture
def limited() -> Iterator[GcPauseLimiter]:
    """Start a limiter for which each collection is slow; only the test starts collections."""
    gc.disable()
    gc.unfreeze()
    limiter = GcPauseLimiter(0.0)
    limiter.start()
    yield limiter
    limiter.stop()
    # As after the collection of tests: what lasts until the end is not visited again.
    gc.freeze()
    gc.enable()


def test_survivors_of_a_slow_collection_are_not_visited_again(limited: GcPauseLimiter) -> None:
    cached = [{"metadata": {"name": [str(number)]}} for number in range(100_000)]
    gc.collect()
    assert gc.get_freeze_count() > 2 * len(cached)
    assert len(gc.get_objects(generation=2)) < len(cached)


def test_frozen_objects_are_freed_by_their_last_reference(limited: GcPauseLimiter) -> None:
    kept = Node()
    gc.collect()
    reference = weakref.ref(kept)
    del kept
    assert reference() is None


def test_new_cycles_are_freed(limited: GcPauseLimiter) -> None:
    gc.collect()
    node = Node()
    node.other = node
    reference = weakref.ref(node)
    del node
    gc.collect()
    assert reference() is None


def test_clients_of_calls_are_not_kept(limited: GcPauseLimiter) -> None:
    """Clients of SDKs are graphs of cycles: one that is alive in a collection is freed later."""
    alive: deque[list[Node]] = deque(maxlen=10)
    gc.collect()
    for _ in range(20):
        alive.append(_client(5_000))
        gc.collect()
    frozen = gc.get_freeze_count()
    for _ in range(40):
        alive.append(_client(5_000))
        gc.collect()
    assert gc.get_freeze_count() - frozen < 10 * 2 * 5_000, "less than the clients alive"


def test_threads_go_on_after_a_slow_collection(limited: GcPauseLimiter) -> None:
    """A tuple to which the limiter refers cannot be filled by the thread that creates it."""
    with fill_during_get_objects() as filled:
        gc.collect()
    assert filled.error is None


def test_a_quick_collection_freezes_nothing() -> None:
    limiter = GcPauseLimiter(3600.0)
    limiter.start()
    # The first collection of Python 3.12 itself sets immortal objects apart.
    gc.collect()
    before = gc.get_freeze_count()
    gc.collect()
    assert gc.get_freeze_count() == before
    limiter.stop()


class Node:
    """May be part of a cycle."""

    other: Node | None = None


def _client(size: int) -> list[Node]:
    nodes = [Node() for _ in range(size)]
    for node in nodes:
        node.other = node
    return nodes
