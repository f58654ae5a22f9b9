"""What an upgrade does to stored objects, on a real API server and by ``capsmith verify``.

Unlike `test_keyword_losses.py`, objects are stored with the old schema and written with the new
one: since Kubernetes 1.30, the API server accepts most invalid values that a write does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from capsmith import resources
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from capsmith.contract.load import load_keywords
from capsmith.judge.release.schema_changes import find_schema_changes
from tests.realapi.crd_lineage import removed, upgraded
from tests.realapi.upgrade_pairs import APPLY, CREATE, LOST, PAIRS, WRITE, Schema

GROUP, KIND, PLURAL = "pairs.example.com", "Pair", "pairs"
API = f"{GROUP}/v1"
NEW = "new"
"""The default of a field that only the new release has."""
_NAMES = list(PAIRS)
_ADVICE = {"UP-09", "UP-20"}


def _field(name: str) -> str:
    return f"f{_NAMES.index(name)}"


def _definition(schemas: dict[str, Schema], **more: Schema) -> JSON:
    spec = {"type": "object", "properties": schemas}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": spec, **more}},
        },
    }
    names = {"kind": KIND, "listKind": f"{KIND}List", "plural": PLURAL, "singular": "pair"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }


def _object(name: str) -> JSON:
    spec = {_field(name): PAIRS[name].value}
    return {"apiVersion": API, "kind": KIND, "metadata": {"name": _field(name)}, "spec": spec}


@pytest.fixture(scope="module")
def client(api: KubeClient) -> Iterator[KubeClient]:
    """Return a client of a server that has an object for each pair, and the new schemas."""
    old = _definition({_field(name): pair.old for name, pair in PAIRS.items()})
    upgraded(api, old)
    first = _object(_NAMES[0])
    # A kind is served some time after its CRD is there.
    eventually(lambda: _attempt(lambda: api.apply(first, "author")))
    for name in _NAMES:
        api.apply(_object(name), "author")
    marker = {"type": "string", "default": NEW}
    schemas = {_field(name): pair.new for name, pair in PAIRS.items()}
    upgraded(api, _definition(schemas, marker=marker))
    eventually(lambda: api.get(API, KIND, _field(_NAMES[0])).get("marker") == NEW)
    yield api
    removed(api, [old["metadata"]["name"]])


def _attempt(request: Callable[[], Any]) -> bool:
    try:
        request()
    except (ApiError, LookupError):
        return False
    return True


def _label(name: str, manager: str) -> JSON:
    metadata = {"name": _field(name), "labels": {manager: "a"}}
    return {"apiVersion": API, "kind": KIND, "metadata": metadata}


def _find_effects(api: KubeClient, name: str) -> set[str]:
    pair, stored = PAIRS[name], _object(name)
    path = f"/apis/{API}/{PLURAL}"
    new = {**stored, "metadata": {"name": "again"}}
    label = _label(name, "labeller")
    requests: dict[str, Callable[[], Any]] = {
        WRITE: lambda: api.patch(stored, {"metadata": {"labels": {"a": "b"}}}),
        APPLY: lambda: api.apply(label, "labeller"),
        CREATE: lambda: api.request("POST", path, body=new, query={"dryRun": "All"}),
    }
    value = api.get(API, KIND, _field(name))["spec"][_field(name)]
    refused = {effect for effect, request in requests.items() if not _attempt(request)}
    return refused | ({LOST} if value != pair.value else set())


def _find_rules(name: str) -> set[str]:
    pair = PAIRS[name]
    old, new = (
        {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": each}}}}
        for each in (pair.old, pair.new)
    )
    keywords = load_keywords(resources.schemas())
    return {change.rule for change in find_schema_changes(old, new, keywords)} - _ADVICE


@pytest.mark.parametrize("name", _NAMES)
def test_an_upgrade_does_what_verify_says(name: str, client: KubeClient) -> None:
    """Proves: UP-05, UP-06, UP-07, UP-08."""
    pair = PAIRS[name]
    assert (_find_effects(client, name), _find_rules(name)) == (pair.effects, pair.rules)
