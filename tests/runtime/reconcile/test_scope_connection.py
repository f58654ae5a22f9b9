"""What the clients of scopes add to objects that they create."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from capsmith_runtime.kube.client import JSON
from capsmith_runtime.reconcile.author_step import connect_scope
from capsmith_runtime.reconcile.permissions import Anything
from capsmith_runtime.testing import infrastructure as testing
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests

GROUP = "infrastructure.acme.example.com"
FILTER = "cluster.x-k8s.io/watch-filter"


def _created(api_version: str, own: JSON, labels: JSON, method: str) -> JSON:
    """Return the labels of an object that the scope of a labelled object creates."""

    async def create() -> JSON:
        scope = testing.infra_cluster(None)
        api = FakeApi("v1beta2", Manifests(()))
        to: Any = SimpleNamespace(
            client=api, events=None, label="infrastructure-acme", permissions=Anything()
        )
        reconciled = {"apiVersion": f"{GROUP}/v1", "kind": "AcmeCluster", "metadata": own}
        new = {"apiVersion": api_version, "kind": "New", "metadata": {"name": "a", **labels}}
        with connect_scope(scope, to, reconciled):
            found: JSON = await getattr(scope.client, method)(new)
        return found["metadata"].get("labels") or {}

    return asyncio.run(create())


@pytest.mark.parametrize("method", ["create_async", "apply_async"])
@pytest.mark.parametrize(
    ("api_version", "own", "labels", "expected"),
    [
        (f"{GROUP}/v1", {FILTER: "mine", "a": "b"}, {}, {FILTER: "mine"}),
        (f"{GROUP}/v1", {FILTER: "mine"}, {"c": "d"}, {FILTER: "mine", "c": "d"}),
        (f"{GROUP}/v1", {FILTER: "mine"}, {FILTER: "other"}, {FILTER: "other"}),
        (f"{GROUP}/v1", {"a": "b"}, {}, {}),
        ("v1", {FILTER: "mine"}, {"c": "d"}, {"c": "d"}),
    ],
)
def test_objects_of_the_provider_inherit_the_watch_filter(
    method: str, api_version: str, own: JSON, labels: JSON, expected: JSON
) -> None:
    """Proves: MG-01."""
    assert _created(api_version, {"labels": own}, {"labels": labels}, method) == expected
