"""The cache compared with a model of a server: it never returns to an older state."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from capsmith_runtime.kube.client import JSON, NamespacedName, is_gone, key_of, version_of
from capsmith_runtime.kube.encoded_objects import EncodedObjects
from capsmith_runtime.kube.store import MAX_VALUES, Cache
from tests.runtime.support.following import Follower

NAMES = st.sampled_from(["a", "b"])


def widget(name: str, version: int, *, uid: str = "1", **metadata: Any) -> JSON:
    common = {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": {**common, **metadata}, "spec": {"version": version}}


def elsewhere(name: str, version: int) -> JSON:
    """Return a widget in another namespace."""
    return widget(name, version, namespace="other")


def listed(objects: Iterable[JSON]) -> EncodedObjects:
    """Return objects as a list provides them."""
    found = EncodedObjects()
    for obj in objects:
        found.put(key_of(obj), obj)
    return found


def gone(name: str, version: int) -> JSON:
    return widget(name, version, deletionTimestamp="2026-01-01T00:00:00Z")


def test_own_write_is_read_and_its_watch_event_is_ignored() -> None:
    cache = Cache()
    assert cache.observe(widget("a", 1)) is not None
    assert cache.update_from_write(widget("a", 2)) is not None
    assert cache.get(NamespacedName("ns", "a")) == widget("a", 2)
    assert cache.observe(widget("a", 2)) is None
    assert cache.observe(widget("a", 3)) is not None


def test_a_change_of_another_client_before_an_own_write_is_delivered() -> None:
    """The response to the write contained the change, but no reconcile has seen it."""
    cache = Cache()
    cache.observe(widget("a", 1))
    cache.update_from_write(widget("a", 3))
    change = cache.observe(widget("a", 2))
    assert change is not None
    assert change.new == widget("a", 3)


def test_a_list_reports_what_an_own_write_may_hide() -> None:
    """The response to the write had another client's change; the watch ended before its event."""
    cache = Cache()
    cache.replace(listed([widget("a", 100), widget("b", 101)]), 101)
    cache.update_from_write(widget("a", 105))
    changes = cache.replace(listed([widget("a", 105), widget("b", 101)]), 106)
    assert [(change.key.name, change.old, change.new) for change in changes] == [
        ("a", widget("a", 105), widget("a", 105))
    ]
    assert cache.replace(listed([widget("a", 105), widget("b", 101)]), 107) == []


def test_a_list_reports_the_deletion_of_an_object_that_was_created_again() -> None:
    """Handlers that compare old and new states would find no difference."""
    cache = Cache()
    cache.replace(listed([widget("a", 100)]), 100)
    changes = cache.replace(listed([widget("a", 103, uid="2")]), 105)
    assert changes == [(widget("a", 100), None), (None, widget("a", 103, uid="2"))]


def test_a_list_that_is_older_than_an_own_write_reports_it_later() -> None:
    cache = Cache()
    cache.replace(listed([widget("a", 100)]), 100)
    cache.update_from_write(widget("a", 105))
    assert cache.replace(listed([widget("a", 100)]), 102) == []
    assert [change.key.name for change in cache.replace(listed([widget("a", 105)]), 106)] == ["a"]


def test_an_object_that_an_own_write_removed_does_not_reappear() -> None:
    """The last finalizer went at version 3; the watch still tells of version 2."""
    cache = Cache()
    cache.observe(widget("a", 1, finalizers=["x"]))
    assert cache.update_from_write(gone("a", 3)) is not None
    cache.observe(widget("a", 2, finalizers=["x"]))
    assert cache.get(NamespacedName("ns", "a")) is None
    assert cache.observe_deleted(gone("a", 3)) is None
    cache.observe(widget("a", 5, uid="2"))
    assert cache.get(NamespacedName("ns", "a")) is not None


def test_an_own_write_to_an_object_that_is_being_deleted_keeps_it() -> None:
    """Its other finalizers keep it on the server, too."""
    cache = Cache()
    cache.observe(widget("a", 1, finalizers=["x", "y"]))
    written = {**gone("a", 3)["metadata"], "finalizers": ["y"]}
    cache.update_from_write({**gone("a", 3), "metadata": written})
    assert cache.get(NamespacedName("ns", "a")) is not None


def test_nor_by_a_list_that_is_older() -> None:
    cache = Cache()
    cache.observe(widget("a", 1, finalizers=["x"]))
    cache.update_from_write(gone("a", 3))
    assert cache.replace(listed([widget("a", 2, finalizers=["x"])]), 2) == []
    assert cache.get(NamespacedName("ns", "a")) is None


def test_a_write_to_what_has_left_the_selection_is_not_kept() -> None:
    """The watch has said DELETED and will say nothing more about this object."""
    cache = Cache()
    cache.observe(widget("a", 1))
    cache.observe_deleted(widget("a", 2))
    assert cache.update_from_write(widget("a", 3)) is None
    assert cache.get(NamespacedName("ns", "a")) is None


def test_an_object_that_cannot_be_indexed_is_cached_like_the_others() -> None:
    """A tenant's object must not end the manager."""
    indexes = {"ids": lambda obj: obj["spec"]["ids"], "name": lambda obj: [obj["metadata"]["name"]]}
    cache = Cache(indexes=indexes)
    states: tuple[Any, ...] = (["x"], None, [{}], 1, ["x", "y"])
    for version, ids in enumerate(states, 1):
        cache.observe({**widget("a", version), "spec": {"ids": ids}})
        assert cache.get(NamespacedName("ns", "a")) is not None
        assert len(cache.by_index("name", "a")) == 1
        assert len(cache.by_index("ids", "x")) == (isinstance(ids, list) and "x" in ids)
    assert cache.observe_deleted(widget("a", 9)) is not None
    assert not cache.by_index("name", "a")
    assert not cache.by_index("ids", "y")


def test_an_index_has_a_limited_number_of_values_of_an_object() -> None:
    cache = Cache(indexes={"ids": lambda obj: map(str, range(obj["spec"]["version"]))})
    cache.observe(widget("a", MAX_VALUES + 1))
    assert len(cache.by_index("ids", str(MAX_VALUES - 1))) == 1
    assert not cache.by_index("ids", str(MAX_VALUES))
    cache.observe_deleted(widget("a", MAX_VALUES + 2))
    assert not cache.by_index("ids", "0")


def test_a_restored_server_is_believed() -> None:
    """Its versions are lower than what is cached: its list is the truth all the same."""
    cache = Cache()
    cache.observe(widget("b", 9))
    cache.observe(widget("a", 10))
    cache.update_from_write(widget("b", 12))
    changes = cache.replace(listed([widget("a", 5)]), 6)
    assert [version_of(obj) for obj in cache.items()] == [5]
    assert [change.new and version_of(change.new) for change in changes] == [None, 5, None]


def test_a_restored_server_gives_another_state_the_same_version() -> None:
    cache, found = Cache(), EncodedObjects()
    cache.observe(widget("a", 5))
    cache.observe(widget("b", 10))
    other = {**widget("a", 5), "spec": {"version": "another"}}
    cache.add_listed(found, other, 6)
    assert [change.new for change in cache.replace(found, 6)] == [None, other, None]
    assert list(cache.items()) == [other]


def test_watches_of_namespaces_advance_separately() -> None:
    """What one watch has delivered says nothing about the objects of another."""
    cache = Cache(namespaces=("ns", "other"))
    cache.replace(listed([widget("a", 1)]), 5, "ns")
    cache.replace(listed([elsewhere("a", 2)]), 6, "other")
    cache.advance("ns", 20)
    assert (cache.seen, cache.seen_in("ns")) == (6, 20)

    # The watch of its namespace has not delivered this write; the other one has passed its version.
    assert cache.update_from_write(elsewhere("a", 9)) is not None
    assert cache.update_from_write(widget("a", 9)) is None
    cached = [cache.get(NamespacedName(name, "a")) for name in ("ns", "other")]
    assert cached == [widget("a", 1), elsewhere("a", 9)]


def test_a_list_of_one_namespace_keeps_the_objects_of_others() -> None:
    """Objects that a list of their namespace lacks are removed, and no others."""
    cache = Cache(namespaces=("ns", "other"))
    cache.replace(listed([widget("a", 1), widget("b", 2)]), 5, "ns")
    cache.replace(listed([elsewhere("a", 3)]), 5, "other")
    cache.update_from_write(elsewhere("a", 7))

    changes = cache.replace(listed([widget("a", 1)]), 8, "ns")

    assert [(change.key.name, change.new) for change in changes] == [("b", None)]
    assert cache.get(NamespacedName("other", "a")) == elsewhere("a", 7)
    assert cache.observe(elsewhere("a", 7)) is None, "the event of this process's own write"


@dataclass
class Server:
    """Objects and their history, as a watch reports it."""

    version: int = 0
    objects: dict[str, JSON] = field(default_factory=dict)
    history: list[tuple[str, JSON]] = field(default_factory=list)

    def put(self, name: str, **changes: Any) -> JSON:
        self.version += 1
        old = self.objects.get(name)
        uid = old["metadata"]["uid"] if old else f"uid-{self.version}"
        kept = {} if old is None else _lasting(old)
        obj = widget(name, self.version, uid=uid, **{**kept, **changes})
        if is_gone(obj):
            self.objects.pop(name)
            self.history.append(("DELETED", obj))
        else:
            self.objects[name] = obj
            self.history.append(("MODIFIED" if old else "ADDED", obj))
        return copy.deepcopy(obj)

    def remove(self, name: str) -> None:
        if self.objects[name]["metadata"].get("finalizers"):
            self.put(name, deletionTimestamp="2026-01-01T00:00:00Z")
            return
        self.version += 1
        obj = copy.deepcopy(self.objects.pop(name))
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.history.append(("DELETED", obj))


def _lasting(obj: JSON) -> JSON:
    names = ("finalizers", "deletionTimestamp")
    return {name: obj["metadata"][name] for name in names if name in obj["metadata"]}


class Consistency(RuleBasedStateMachine):
    """Own and foreign writes, with their responses and events in any possible order."""

    def __init__(self) -> None:
        super().__init__()
        self.server, self.cache, self.follower = Server(), Cache(), Follower()
        self.told = 0
        self.answers: list[JSON] = []
        self.newest: dict[str, int] = {}

    @initialize()
    def all_is_known(self) -> None:
        for name in ("a", "b"):
            self.server.put(name, finalizers=["x"])
        self.the_watch_tells(2)

    def _take(self, change: Any) -> None:
        if change is not None:
            self.follower(change)

    @rule(name=NAMES, finalizers=st.sampled_from([[], ["x"]]))
    def somebody_writes(self, name: str, finalizers: list[str]) -> None:
        self.server.put(name, finalizers=finalizers)

    @rule(name=NAMES)
    def somebody_deletes(self, name: str) -> None:
        if name in self.server.objects:
            self.server.remove(name)

    @rule(name=NAMES, finalizers=st.sampled_from([[], ["x"]]))
    def we_write(self, name: str, finalizers: list[str]) -> None:
        if self.cache.get(NamespacedName("ns", name)) is not None and name in self.server.objects:
            self.answers.append(self.server.put(name, finalizers=finalizers))

    @rule(name=NAMES, finalizers=st.sampled_from([[], ["x"]]))
    def we_write_and_hear_at_once(self, name: str, finalizers: list[str]) -> None:
        self.we_write(name, finalizers)
        self.an_answer_arrives(len(self.answers) - 1)

    @rule(number=st.integers(0, 3))
    def an_answer_arrives(self, number: int) -> None:
        """Answers to different requests may overtake each other."""
        if self.answers:
            answer = self.answers.pop(number % len(self.answers))
            self._take(self.cache.update_from_write(answer))
            self._not_older(answer)
            self._note_the_end(answer)

    @rule(count=st.integers(1, 3))
    def the_watch_tells(self, count: int) -> None:
        for kind, obj in self.server.history[self.told : self.told + count]:
            event = copy.deepcopy(obj)
            take = self.cache.observe_deleted if kind == "DELETED" else self.cache.observe
            self._take(take(event))
            self._note_the_end(obj)
        self.told = min(self.told + count, len(self.server.history))

    @rule()
    def the_watch_is_lost_and_all_is_listed(self) -> None:
        objects = copy.deepcopy(list(self.server.objects.values()))
        for change in self.cache.replace(listed(objects), self.server.version):
            self._take(change)
        self.told = len(self.server.history)

    @rule(back=st.integers(0, 3))
    def a_list_from_the_server_s_cache_is_older(self, back: int) -> None:
        """Not older than the watch, but older than the last own writes."""
        until = max(self.told, len(self.server.history) - back)
        objects: dict[str, JSON] = {}
        for kind, obj in self.server.history[:until]:
            objects.pop(obj["metadata"]["name"], None)
            if kind != "DELETED":
                objects[obj["metadata"]["name"]] = copy.deepcopy(obj)
        for change in self.cache.replace(listed(objects.values()), until):
            self._take(change)
        self.told = until

    def _note_the_end(self, obj: JSON) -> None:
        """From now on, whatever is here under this name is a successor."""
        name = obj["metadata"]["name"]
        if self.cache.get(key_of(obj)) is None:
            self.newest[name] = max(self.newest.get(name, 0), version_of(obj))

    def _not_older(self, answer: JSON) -> None:
        """The next read after an own write sees it, or something newer."""
        cached = self.cache.get(key_of(answer))
        told = [obj for _, obj in self.server.history[: self.told]]
        known = [version_of(obj) for obj in told if key_of(obj) == key_of(answer)]
        if cached is None:
            assert is_gone(answer) or max(known, default=0) > 0
        else:
            assert version_of(cached) >= version_of(answer) or is_gone(answer)

    @invariant()
    def never_back_in_time(self) -> None:
        assert self.follower.faults == []
        for obj in self.cache.items():
            name, version = obj["metadata"]["name"], version_of(obj)
            assert version >= self.newest.get(name, 0)
            self.newest[name] = version

    def teardown(self) -> None:
        """After all events, the cache and the handlers' state equal the server."""
        for answer in self.answers:
            self._take(self.cache.update_from_write(answer))
        self.the_watch_tells(len(self.server.history))
        assert {key_of(obj): obj for obj in self.cache.items()} == {
            key_of(obj): obj for obj in self.server.objects.values()
        }
        assert self.follower.objects.keys() == {key_of(obj) for obj in self.cache.items()}


TestConsistency = Consistency.TestCase
TestConsistency.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
