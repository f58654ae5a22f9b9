"""The index of fields that name other objects."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.kube.client import ResourceType
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import WatchScope
from capsmith_runtime.reconcile.watched_kinds import Watch, WatchedKinds
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests

OWN = ResourceType("acme.io", "v1", "AcmeMachine", "acmemachines")
SECRET = ResourceType("", "v1", "Secret", "secrets")


@pytest.mark.parametrize(
    ("path", "spec", "names"),
    [
        ("spec.key.name", {"key": {"name": "a"}}, ["a"]),
        ("spec.keys.name", {"keys": [{"name": "a"}, {"name": "b"}, {"name": "a"}, {}]}, ["a", "b"]),
        ("spec.keys", {"keys": ["a", "b"]}, ["a", "b"]),
        ("spec.key.name", {"key": {"name": ""}}, []),
        ("spec.key.name", {"key": None}, []),
        ("spec.key.name", {"key": "a"}, []),
        ("spec.key", {"key": {"name": "a"}}, []),
        ("spec.key", {"key": 5}, []),
        ("spec.key.name", {}, []),
    ],
)
def test_a_field_names_objects(path: str, spec: dict[str, Any], names: list[str]) -> None:
    api = FakeApi("v1beta2", Manifests(()))
    own = Informer(api, OWN, Metrics())
    watch = Watch(kind="AcmeMachine", resource=SECRET, path=tuple(path.split(".")))
    WatchedKinds([watch], api, Metrics(), scope=WatchScope(), own=[own])
    metadata = {"name": "m", "namespace": "n", "uid": "1", "resourceVersion": "1"}

    own._cache.observe({"metadata": metadata, "spec": spec})

    found = [name for name in ("a", "b") if own.by_index(path, f"n/{name}")]
    assert found == names
    assert [name for name in ("a", "b") if own.by_index(path, f"/{name}")] == names
    assert not own.by_index(path, "other/a")
