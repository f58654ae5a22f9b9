"""The API server refuses the mistakes in its own objects that ``verify`` reports."""

from __future__ import annotations

from types import ModuleType

import pytest

from capsmith.clusters.processes.kube import ApiError, KubeClient
from tests import admission_objects, built_in_objects
from tests.core_objects import JSON, Mistake


def _find_refusal(api: KubeClient, document: JSON) -> str:
    """Return why the API server refuses an object; empty if it takes it."""
    kind = api.resolve(document["apiVersion"], document["kind"])
    group = "apis" if "/" in document["apiVersion"] else "api"
    namespace = "namespaces/default/" if kind.namespaced else ""
    path = f"/{group}/{document['apiVersion']}/{namespace}{kind.plural}"
    try:
        api.request("POST", path, body=document, query={"dryRun": "All"})
    except ApiError as error:
        return error.message or str(error)
    return ""


@pytest.mark.parametrize(
    "module", [admission_objects, built_in_objects], ids=lambda it: it.__name__
)
def test_objects_without_a_mistake_are_taken(api: KubeClient, module: ModuleType) -> None:
    found = {kind: _find_refusal(api, each) for kind, each in module.build_objects().items()}
    assert set(found.values()) == {""}, found


@pytest.mark.parametrize("mistake", admission_objects.MISTAKES, ids=str)
def test_a_mistake_in_a_policy_is_refused(api: KubeClient, mistake: Mistake) -> None:
    """Proves: CC-81."""
    assert _find_refusal(api, mistake.applied(admission_objects.build_objects()[mistake.kind]))


@pytest.mark.parametrize("mistake", built_in_objects.MISTAKES, ids=str)
def test_a_mistake_is_refused(api: KubeClient, mistake: Mistake) -> None:
    """Proves: CC-81."""
    assert _find_refusal(api, mistake.applied(built_in_objects.build_objects()[mistake.kind]))


@pytest.mark.parametrize(
    "module", [admission_objects, built_in_objects], ids=lambda it: it.__name__
)
def test_changes_are_taken(api: KubeClient, module: ModuleType) -> None:
    for change in module.ACCEPTED:
        document = change.applied(module.build_objects()[change.kind])
        assert (str(change), _find_refusal(api, document)) == (str(change), "")
