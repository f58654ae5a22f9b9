"""Objects that are kept as JSON: what they cost, and when they are decoded."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from capsmith_runtime.kube import encoded_objects
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.encoded_objects import EncodedObjects
from capsmith_runtime.kube.store import Cache


def machine(number: int, version: int = 1, **spec: Any) -> JSON:
    owner = {"apiVersion": "v1", "kind": "Machine", "name": f"m{number}", "uid": f"u{number}"}
    metadata = {"namespace": "ns", "name": f"m{number}", "uid": f"i{number}"}
    return {
        "metadata": {
            **metadata,
            "resourceVersion": str(version),
            "labels": {"cluster": f"c{number % 3}"},
            "ownerReferences": [owner],
            "finalizers": ["example.com/machine"],
        },
        "spec": {"size": "small", **spec},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "addresses": [{}]},
    }


def by_cluster(obj: JSON) -> Iterator[str]:
    yield obj["metadata"]["labels"]["cluster"]


def by_uid(obj: JSON) -> Iterator[str]:
    yield obj["metadata"]["uid"]


def fill(count: int) -> Cache:
    cache = Cache(indexes={"cluster": by_cluster, "uid": by_uid})
    for number in range(count):
        cache.observe(machine(number))
    return cache


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[NamespacedName]:
    """Return the keys of all objects that are decoded from now on."""
    keys: list[NamespacedName] = []
    make = encoded_objects._Decoded

    def note(obj: JSON) -> JSON:
        keys.append(key_of(obj))
        return make(obj)

    monkeypatch.setattr(encoded_objects, "_Decoded", note)
    return keys


def test_the_garbage_collector_visits_no_cached_object() -> None:
    """It visited a dozen containers for each: half a second in which the event loop waited."""

    def visited(count: int) -> int:
        before = len(gc.get_objects())
        cache = fill(count)
        assert len(cache) == count
        return len(gc.get_objects()) - before

    gc.collect()
    few, many = visited(100), visited(1100)
    assert many - few < 50
    untracked = fill(100)
    assert not gc.is_tracked(untracked._objects._entries)
    assert not gc.is_tracked(untracked._indexes["uid"]._ids)


def test_a_cached_object_takes_little_more_memory_than_its_json() -> None:
    entries = EncodedObjects()
    obj = machine(1)
    entries.put(key_of(obj), obj)
    (entry,) = entries._entries.values()
    json_bytes = len(entry.data)
    assert sys.getsizeof(entry) + sys.getsizeof(entry.data) < json_bytes + 100


def test_an_object_in_use_is_decoded_once(decoded: list[NamespacedName]) -> None:
    cache = fill(2)
    key = NamespacedName("ns", "m1")
    used = cache.get(key)
    assert cache.get(key) is used
    assert next(iter(cache.by_index("uid", "i1"))) is used
    assert decoded == [key]
    del used
    assert cache.get(key) == machine(1)
    assert decoded == [key, key]


def test_a_replaced_object_is_not_returned_again() -> None:
    cache = fill(2)
    used = cache.get(NamespacedName("ns", "m1"))
    cache.observe(machine(1, version=2, size="large"))
    assert used == machine(1)
    assert cache.get(NamespacedName("ns", "m1")) == machine(1, version=2, size="large")


def test_a_selection_stays_as_it_was() -> None:
    cache = fill(6)
    found = cache.by_index("cluster", "c1")
    cache.observe(machine(1, version=2, size="large"))
    cache.observe_deleted(machine(4))
    assert list(found) == [machine(1), machine(4)]
    assert list(cache.by_index("cluster", "c1")) == [machine(1, version=2, size="large")]


def test_a_selection_is_read_like_a_list() -> None:
    found = fill(9).by_index("cluster", "c1")
    assert found[0] == machine(1)
    assert list(found[1:]) == [machine(4), machine(7)]


def test_counting_and_comparing_selections_decodes_nothing(decoded: list[NamespacedName]) -> None:
    cache = fill(30)
    before = cache.by_index("cluster", "c1")
    assert len(before) == len(cache.keys_by_index("cluster", "c1")) == 10
    assert before == cache.by_index("cluster", "c1")
    assert decoded == []
    cache.observe(machine(1, version=2))
    assert before != cache.by_index("cluster", "c1")
    assert decoded == [NamespacedName("ns", "m1")], "the former state, for the handlers"


def test_a_list_without_changes_decodes_nothing_and_copies_nothing(
    decoded: list[NamespacedName],
) -> None:
    """All objects of a kind were decoded at the same time."""
    cache = fill(30)
    listed = EncodedObjects()
    for number in range(30):
        cache.add_listed(listed, machine(number, version=1 + (number == 7)), 2)
    cached = cache._objects._entries
    shared = [key for key, entry in listed._entries.items() if entry is cached[key]]
    assert len(shared) == 29
    assert [change.key.name for change in cache.replace(listed, 2)] == ["m7"]
    assert {key.name for key in decoded} == {"m7"}


def test_indexes_forget_objects_one_by_one() -> None:
    cache = fill(9)
    for number in (1, 7, 4):
        assert f"m{number}" in {key.name for key in cache.keys_by_index("cluster", "c1")}
        cache.observe_deleted(machine(number, version=2))
        assert f"m{number}" not in {key.name for key in cache.keys_by_index("cluster", "c1")}
    assert cache._indexes["cluster"].find("c1") == ()
    assert [key.name for key in cache.keys_by_index("cluster", "c0")] == ["m0", "m3", "m6"]
