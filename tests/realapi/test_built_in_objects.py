"""The API server refuses the mistakes in its own objects that ``verify`` reports by CC-81."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.clusters.processes.kube import ApiError, KubeClient
from tests.mutation.seeds import Public, Seeded, load_public, seed_all

RULE = "CC-81"
_FOREIGN = ("cert-manager.io/", "cluster.x-k8s.io/")
"""API groups that only other components serve."""


def _is_served(document: Any) -> bool:
    """Return whether an API server without further components serves the object."""
    if not isinstance(document, dict):
        return False
    api_version = document["apiVersion"]
    is_core = api_version == "v1" or ".k8s.io/" in api_version or api_version == "apps/v1"
    return is_core and not any(group in api_version for group in _FOREIGN)


def _find_changed(seeded: Seeded) -> list[dict[str, Any]]:
    return [
        document
        for file, documents in seeded.files.items()
        for number, document in enumerate(documents)
        if isinstance(document, dict)
        and _is_served(document)
        and document is not seeded.original[file][number]
    ]


def _find_refusal(api: KubeClient, document: dict[str, Any]) -> str:
    """Return why the API server refuses an object, as text; empty if it takes it."""
    kind = api.resolve(document["apiVersion"], document["kind"])
    if kind.namespaced:
        # A dry run stores no Namespace of the release.
        document = {**document, "metadata": {**document["metadata"], "namespace": "default"}}
    try:
        api.apply(document, dry_run=True)
    except ApiError as error:
        return error.message or str(error)
    return ""


def _list_mistakes() -> list[Seeded]:
    return [each for each in seed_all() if RULE in each.mistake.rules and _find_changed(each)]


@pytest.mark.parametrize("seeded", _list_mistakes(), ids=lambda seeded: seeded.name)
def test_a_mistake_is_refused(api: KubeClient, seeded: Seeded) -> None:
    """Proves: CC-81."""
    (changed,) = _find_changed(seeded)
    assert _find_refusal(api, changed)


@pytest.mark.parametrize("public", load_public(), ids=lambda public: public.name)
def test_objects_without_a_mistake_are_taken(api: KubeClient, public: Public) -> None:
    objects = [each for documents in public.files.values() for each in documents]
    refusals = {
        f"{each['kind']} {each['metadata']['name']}": _find_refusal(api, each)
        for each in objects
        if _is_served(each) and each["kind"] != "CustomResourceDefinition"
    }
    assert refusals
    assert set(refusals.values()) == {""}, refusals
