"""Merge patches: minimal, and they do what they are for; then the same on the real server."""

from __future__ import annotations

import asyncio
import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capsmith_runtime.errors import ConflictError
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.patch import (
    build_status_patch,
    merge_patch,
    needs_lock,
    remove_absent_fields,
    write,
)
from tests.runtime.support.faults import Request
from tests.runtime.support.following import WIDGET, connected
from tests.runtime.support.proxy import FaultProxy
from tests.runtime.support.server import API, Api

LEAVES = st.integers(2, 5) | st.sampled_from(["a", "b", ""]) | st.booleans() | st.none()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES)


def apply(target: Any, patch: Any) -> Any:
    """Apply a merge patch exactly as RFC 7386 defines it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = apply(result.get(name), value)
    return result


def without_empty(value: Any) -> Any:
    """Return a value without empty optional fields, which Kubernetes treats as absent."""
    if not isinstance(value, dict):
        return value
    inner = {name: without_empty(each) for name, each in value.items()}
    return {name: each for name, each in inner.items() if each not in ({}, [], None)}


def sent_values(patch: JSON) -> list[Any]:
    """Return everything that a patch sets, including nested objects but not list items."""
    found: list[Any] = []
    for value in patch.values():
        found.append(value)
        if isinstance(value, dict):
            found += sent_values(value)
    return found


def leaves(patch: JSON, *path: str) -> list[tuple[str, ...]]:
    found = []
    for name, value in patch.items():
        inner = isinstance(value, dict)
        found += leaves(value, *path, name) if inner else [(*path, name)]
    return found


@given(old=OBJECTS, new=OBJECTS)
@settings(max_examples=500, deadline=None)
def test_patch_turns_old_into_new(old: JSON, new: JSON) -> None:
    before = json.dumps([old, new])
    patch = merge_patch(old, new)
    assert without_empty(apply(old, patch)) == without_empty(new)
    assert json.dumps([old, new]) == before, "inputs are shared, and not to be changed"


@given(old=OBJECTS, new=OBJECTS)
@settings(max_examples=500, deadline=None)
def test_nothing_empty_is_sent(old: JSON, new: JSON) -> None:
    """Proves: GEN-15."""
    assert not [value for value in sent_values(merge_patch(old, new)) if value in ({}, [])]


@given(old=OBJECTS, new=OBJECTS)
@settings(max_examples=300, deadline=None)
def test_patch_is_minimal(old: JSON, new: JSON) -> None:
    """Without any one of its leaves it would not do; and nothing is patched twice."""
    patch = merge_patch(old, new)
    assert merge_patch(apply(old, patch), new) == {}
    for *parents, last in leaves(patch):
        smaller = copy.deepcopy(patch)
        part = smaller
        for name in parents:
            part = part[name]
        del part[last]
        assert without_empty(apply(old, smaller)) != without_empty(new)


@given(obj=OBJECTS)
def test_no_difference_no_patch(obj: JSON) -> None:
    assert merge_patch(obj, copy.deepcopy(obj)) == {}
    assert merge_patch({}, {"a": {}, "b": [], "c": None, "d": {"e": {}}}) == {}


def test_what_is_false_is_not_empty() -> None:
    new = {"a": False, "b": 0, "c": ""}
    assert merge_patch({}, new) == new


def test_required_fields_of_a_status_keep_zero_values() -> None:
    required = (("ready", "boolean"), ("phase", "string"), ("items", "array"))
    widget = replace(WIDGET, required_status=required)
    first = build_status_patch(widget, {}, {"conditions": [1]})
    assert first == {"conditions": [1], "ready": False, "phase": "", "items": []}
    # What the manager no longer writes goes back to zero, and nothing is sent twice.
    assert build_status_patch(widget, {**first, "ready": True}, {"conditions": [1]}) == {
        "ready": False
    }
    assert build_status_patch(widget, first, {"conditions": [1]}) == {}
    assert build_status_patch(widget, {}, {}) == {}


def test_required_objects_of_a_status_have_the_fields_that_they_require() -> None:
    required = (("ref", "object"), ("ref.name", "string"), ("ref.at", "object"), ("bare", "object"))
    widget = replace(WIDGET, required_status=required)
    first = build_status_patch(widget, {}, {"phase": "New"})
    assert first == {"phase": "New", "ref": {"name": "", "at": {}}, "bare": {}}
    given = {"phase": "New", "ref": {"name": "a"}}
    assert build_status_patch(widget, {}, given) == {**given, "bare": {}}
    assert build_status_patch(widget, {**first, "ref": {"name": "a"}}, {"phase": "New"}) == {
        "ref": {"name": ""}
    }


@pytest.mark.parametrize(
    ("patch", "locked"),
    [
        ({"metadata": {"finalizers": ["x"]}}, True),
        ({"metadata": {"ownerReferences": None}}, True),
        ({"status": {"conditions": []}}, True),
        ({"metadata": {"labels": {"a": "b"}}, "spec": {"finalizers": []}}, False),
        ({"status": None}, False),
    ],
)
def test_patches_of_shared_lists_need_a_lock(patch: JSON, locked: bool) -> None:
    assert needs_lock({}, patch) is locked


def patches(proxy: FaultProxy) -> list[Request]:
    return [request for request in proxy.requests if request.method == "PATCH"]


def bodies(proxy: FaultProxy) -> list[JSON]:
    return [json.loads(request.body) for request in patches(proxy)]


async def changed(kubeconfig: Path, old: JSON, new: JSON) -> tuple[JSON, list[JSON]]:
    remembered: list[JSON] = []
    async with connected(kubeconfig) as client:
        answer = await write(client, WIDGET, old, new, remembered.append)
    return answer, remembered


async def test_only_what_changed_is_sent(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    old = api.create(namespace, "a", size=1, color="red")
    new = copy.deepcopy(old)
    new["spec"]["size"] = 2
    new["status"] = {"phase": "Running", "empty": {}, "list": []}
    answer, remembered = await changed(kubeconfig, old, new)
    assert bodies(proxy) == [{"spec": {"size": 2}}, {"status": {"phase": "Running"}}]
    assert answer == remembered[-1]
    assert len(remembered) == 2
    found = api.get(namespace, "a")
    assert found["spec"] == {"size": 2, "color": "red"}
    assert found["status"] == {"phase": "Running"}
    proxy.requests.clear()
    await changed(kubeconfig, found, copy.deepcopy(found))
    assert patches(proxy) == []


async def test_fields_of_others_are_kept(api: Api, kubeconfig: Path, namespace: str) -> None:
    """Proves: ST-10."""
    old = api.create(namespace, "a", size=1)
    api.change(namespace, "a", color="blue")
    new = copy.deepcopy(old)
    new["spec"]["size"] = 2
    await changed(kubeconfig, old, new)
    assert api.get(namespace, "a")["spec"] == {"size": 2, "color": "blue"}


@pytest.mark.parametrize("part", ["finalizers", "conditions"])
async def test_shared_lists_are_not_overwritten(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str, part: str
) -> None:
    """Another writer has changed the object: the whole write fails, including status."""
    old = api.create(namespace, "a", size=1)
    new = copy.deepcopy(old)
    new["spec"]["size"] = 2
    if part == "finalizers":
        new["metadata"]["finalizers"] = ["test.capsmith/x"]
    else:
        new["status"] = {"conditions": [{"type": "Ready"}]}
    api.change(namespace, "a", color="blue")
    with pytest.raises(ConflictError):
        await changed(kubeconfig, old, new)
    found = api.get(namespace, "a")
    assert found["spec"] == {"size": 1, "color": "blue"}
    assert "status" not in found
    new["metadata"] = {**found["metadata"], "finalizers": new["metadata"].get("finalizers")}
    answer, _ = await changed(kubeconfig, found, {**new, "spec": found["spec"]})
    assert answer["metadata"].get("finalizers") or answer["status"]["conditions"]


async def test_the_last_finalizer_is_the_last_write(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    old = api.create(namespace, "a", size=1)
    old["metadata"]["finalizers"] = ["test.capsmith/x"]
    old = api.client.apply({**_bare(old), "metadata": _bare(old)["metadata"]})
    api.delete(namespace, "a")
    old = api.get(namespace, "a")
    new = copy.deepcopy(old)
    new["metadata"]["finalizers"] = []
    new["status"] = {"phase": "Gone"}
    await changed(kubeconfig, old, new)
    assert len(patches(proxy)) == 1
    assert api.client.find(API, "Widget", "a", namespace) is None


async def test_concurrent_writers_lose_nothing(api: Api, kubeconfig: Path, namespace: str) -> None:
    """Each adds its own finalizer and retries on Conflict, as a controller does."""
    api.create(namespace, "a")
    async with connected(kubeconfig) as client:

        async def add(name: str) -> None:
            while True:
                old = await client.get(WIDGET, NamespacedName(namespace, "a"))
                new = copy.deepcopy(old)
                new["metadata"].setdefault("finalizers", []).append(name)
                try:
                    await write(client, WIDGET, old, new, lambda obj: None)
                except ConflictError:
                    continue
                return

        names = [f"test.capsmith/{number}" for number in range(10)]
        await asyncio.gather(*map(add, names))
    assert sorted(api.get(namespace, "a")["metadata"]["finalizers"]) == names


def _bare(obj: JSON) -> JSON:
    kept = ("name", "namespace", "finalizers")
    metadata = {name: obj["metadata"][name] for name in kept}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


def test_the_reason_replaces_an_empty_message_where_the_crd_refuses_it() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
    waiting = {"type": "Paused", "status": "False", "reason": "NotPaused", "message": "not paused"}
    new = {"conditions": [ready, waiting]}
    assert build_status_patch(WIDGET, {}, new) == new
    strict = replace(WIDGET, needs_messages=True)
    written = {"conditions": [{**ready, "message": "Ready"}, waiting]}
    assert build_status_patch(strict, {}, new) == written
    assert build_status_patch(strict, written, new) == {}


def test_required_fields_of_conditions_are_written_even_if_they_are_empty() -> None:
    ready = {"type": "Ready", "status": "True"}
    strict = replace(WIDGET, required_in_conditions=("reason", "message"))
    written = {"conditions": [{**ready, "reason": "Ready", "message": ""}]}
    assert build_status_patch(strict, {}, {"conditions": [ready]}) == written
    assert build_status_patch(strict, written, {"conditions": [ready]}) == {}
    # What the manager has to say stays as it is.
    said = {"conditions": [{**ready, "reason": "Made", "message": "it is there"}]}
    assert build_status_patch(strict, {}, said) == said


def test_fields_that_the_crd_lacks_are_not_written() -> None:
    obj = {
        "spec": {"zone": "a", "size": 1},
        "status": {"ready": True, "conditions": [{"type": "Ready", "severity": "Info"}]},
    }
    paths = ("spec.zone", "status.conditions.severity", "status.other.deep")
    assert remove_absent_fields(replace(WIDGET, absent_fields=paths), obj) == {
        "spec": {"size": 1},
        "status": {"ready": True, "conditions": [{"type": "Ready"}]},
    }
    assert obj["spec"] == {"zone": "a", "size": 1}
    assert remove_absent_fields(WIDGET, obj) is obj


def test_an_object_of_which_the_crd_lacks_all_fields_is_not_written() -> None:
    """The CRD may require another field of it, which the manager does not know."""
    status = {"addresses": {"total": 4, "used": 1}, "ready": True}
    lacking = replace(WIDGET, absent_fields=("status.addresses.total", "status.addresses.used"))
    assert remove_absent_fields(lacking, {"status": status}) == {"status": {"ready": True}}
    all_fields = replace(lacking, absent_fields=(*lacking.absent_fields, "status.ready"))
    assert remove_absent_fields(all_fields, {"status": status}) == {"status": {}}
