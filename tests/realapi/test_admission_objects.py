"""The API server refuses the mistakes in its own objects that ``verify`` reports."""

from __future__ import annotations

from types import ModuleType

import pytest

from capsmith import resources
from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.clusters.processes.tools.catalogue import kubernetes_version
from capsmith.clusters.processes.wait import eventually
from tests import admission_objects, built_in_objects
from tests.core_kinds import render
from tests.core_objects import JSON, Mistake
from tests.e2e.releases import KUBERNETES
from tests.kubernetes_kinds import FILE, URL, reduce_definitions


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


@pytest.fixture(autouse=True, scope="module")
def account(api: KubeClient) -> None:
    """Create the ServiceAccount without which no Pod is taken."""
    metadata = {"name": "default", "namespace": "default"}
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})


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


def test_the_types_are_those_of_the_api_server(api: KubeClient) -> None:
    """``python -m tests.kubernetes_kinds`` writes them."""
    default = kubernetes_version("")
    if default != KUBERNETES:
        pytest.skip(f"the types are those of {default}, and {KUBERNETES} runs")
    written = (resources.schemas() / "core" / FILE).read_text(encoding="utf-8")
    assert written == render(reduce_definitions(api.request("GET", URL)))


@pytest.mark.parametrize("expression", admission_objects.FAILING)
def test_a_patch_with_another_type_fails(api: KubeClient, expression: str) -> None:
    """Proves: CC-81."""
    policy = admission_objects.build_patch(expression)
    binding = admission_objects.build_binding()
    assert _find_refusal(api, policy) == ""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "patched"}}
    try:
        for each in (policy, binding):
            api.create(each)
        message = eventually(lambda: _find_refusal(api, config), timeout=30)
    finally:
        for each in (binding, policy):
            api.delete(each)
    assert "unexpected type name" in message
    eventually(lambda: not _find_refusal(api, config), timeout=30)
