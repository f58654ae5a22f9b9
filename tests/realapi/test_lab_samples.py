"""What `capsmith lab demo` does to objects that already exist, on a real API server."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from capsmith.clusters.lab.samples import apply_unless_changed
from capsmith.clusters.processes.kube import JSON, KubeClient

_NUMBERS = itertools.count(1)
_OTHER = "kubectl-edit"
PLACEHOLDER, REAL = "change-me", "5ecret"


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _secret(**values: str) -> JSON:
    metadata = {"name": f"credentials-{next(_NUMBERS)}", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}


def _read(api: KubeClient, obj: JSON) -> JSON:
    metadata = obj["metadata"]
    return api.get(obj["apiVersion"], obj["kind"], metadata["name"], metadata["namespace"])


def _data(api: KubeClient, obj: JSON) -> dict[str, str]:
    data = _read(api, obj).get("data") or {}
    return {key: base64.b64decode(text).decode() for key, text in data.items()}


@pytest.fixture
def sample(api: KubeClient) -> Iterator[JSON]:
    """Return a Secret with placeholders that `lab demo` has created."""
    obj = _secret(token=PLACEHOLDER, user=PLACEHOLDER)
    assert apply_unless_changed(api, obj)
    yield obj
    api.delete(obj)


def test_a_sample_is_created_and_follows_its_file(api: KubeClient, sample: JSON) -> None:
    assert _data(api, sample) == {"token": PLACEHOLDER, "user": PLACEHOLDER}
    version = _read(api, sample)["metadata"]["resourceVersion"]
    assert apply_unless_changed(api, sample)
    assert _read(api, sample)["metadata"]["resourceVersion"] == version
    assert apply_unless_changed(api, {**sample, "stringData": {"token": "a", "user": "b"}})
    assert _data(api, sample) == {"token": "a", "user": "b"}


def _edit(api: KubeClient, obj: JSON) -> None:
    api.patch(obj, {"data": {"token": _encode(REAL)}})


def _edit_text(api: KubeClient, obj: JSON) -> None:
    api.patch(obj, {"stringData": {"token": REAL}})


def _apply(api: KubeClient, obj: JSON) -> None:
    rest = {key: value for key, value in obj.items() if key != "stringData"}
    api.apply({**rest, "data": {"token": _encode(REAL)}}, _OTHER)


def _create_again(api: KubeClient, obj: JSON) -> None:
    api.delete(obj)
    api.create({**obj, "stringData": {"password": REAL}})


def _add(api: KubeClient, obj: JSON) -> None:
    api.patch(obj, {"data": {"user": None, "password": _encode(REAL)}})


def _remove(api: KubeClient, obj: JSON) -> None:
    api.patch(obj, {"data": {"token": None}})


CHANGES: dict[str, Callable[[KubeClient, JSON], None]] = {
    each.__name__.removeprefix("_"): each
    for each in (_edit, _edit_text, _apply, _create_again, _add, _remove)
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_secret_that_others_have_changed_is_kept(
    change: str, api: KubeClient, sample: JSON
) -> None:
    CHANGES[change](api, sample)
    before = _data(api, sample)
    assert before != {"token": PLACEHOLDER, "user": PLACEHOLDER}
    assert not apply_unless_changed(api, sample)
    assert _data(api, sample) == before


def test_others_may_write_the_same(api: KubeClient, sample: JSON) -> None:
    api.apply({**sample, "stringData": {"token": PLACEHOLDER}}, _OTHER)
    assert apply_unless_changed(api, sample)


@pytest.mark.parametrize(
    ("patch", "is_kept"),
    [
        ({"data": {"region": "b"}}, True),
        ({"data": {"zone": "c"}}, True),
        ({"metadata": {"finalizers": ["example.com/in-use"]}}, False),
        ({"metadata": {"labels": {"a": "b"}}}, False),
    ],
)
def test_objects_of_other_kinds_are_kept_too(
    patch: dict[str, Any], is_kept: bool, api: KubeClient
) -> None:
    """What controllers write into metadata is no reason to keep an object."""
    metadata = {"name": f"settings-{next(_NUMBERS)}", "namespace": "default"}
    obj: JSON = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    assert apply_unless_changed(api, {**obj, "data": {"region": "a"}})
    api.patch(obj, patch)
    before = _read(api, obj)["data"]
    assert apply_unless_changed(api, {**obj, "data": {"region": "d"}}) is not is_kept
    assert _read(api, obj)["data"] == (before if is_kept else {"region": "d"})
    api.patch(obj, {"metadata": {"finalizers": None}})
    api.delete(obj)


def test_a_label_that_others_have_changed_is_kept(api: KubeClient, sample: JSON) -> None:
    labelled = {**sample, "metadata": {**sample["metadata"], "labels": {"purpose": "demo"}}}
    assert apply_unless_changed(api, labelled)
    api.patch(sample, {"metadata": {"labels": {"purpose": "real"}}})
    assert not apply_unless_changed(api, labelled)
    assert _read(api, sample)["metadata"]["labels"] == {"purpose": "real"}
