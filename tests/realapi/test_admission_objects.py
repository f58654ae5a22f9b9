"""The API server refuses the mistakes in policies and Services that ``verify`` reports."""

from __future__ import annotations

import pytest

from capsmith.clusters.processes.kube import ApiError, KubeClient
from tests.admission_objects import ACCEPTED, MISTAKES, build_objects
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


@pytest.mark.parametrize("kind", build_objects())
def test_objects_without_a_mistake_are_taken(api: KubeClient, kind: str) -> None:
    assert _find_refusal(api, build_objects()[kind]) == ""


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_a_mistake_is_refused(api: KubeClient, mistake: Mistake) -> None:
    """Proves: CC-81."""
    assert _find_refusal(api, mistake.applied(build_objects()[mistake.kind]))


@pytest.mark.parametrize("change", ACCEPTED, ids=str)
def test_a_change_is_taken(api: KubeClient, change: Mistake) -> None:
    assert _find_refusal(api, change.applied(build_objects()[change.kind])) == ""
