"""The admission policies of a generated repository, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from capsmith.clusters.processes.kube import JSON, MERGE_PATCH, ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from tests.golden.cases import EXAMPLES, Case, generated

MANAGED_BY = "cluster.x-k8s.io/managed-by"
DELETE_FOR_MOVE = "clusterctl.cluster.x-k8s.io/delete-for-move"
JSON_PATCH = "application/json-patch+json"


@pytest.fixture(scope="module")
def cluster(api: KubeClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JSON]:
    """Return an externally managed infrastructure cluster, with the policies in force."""
    folder = tmp_path_factory.mktemp("admission") / "repository"
    generated(Case("homelab", EXAMPLES / "homelab" / "provider.yaml"), folder)
    (crd,) = _documents(folder, "config/crd/bases/*_homelabclusters.yaml")
    installed = [crd, *_documents(folder, "config/admission/managed_by.yaml")]
    for document in installed:
        api.create(document)
    (sample,) = _documents(folder, "config/samples/homelab_cluster.yaml")
    sample["metadata"] |= {"namespace": "default", "annotations": {MANAGED_BY: "", "other": ""}}
    eventually(lambda: _quietly(api, sample), timeout=120)
    # Policies are in force a moment after they have been created.
    eventually(lambda: _refused(api, sample, {"metadata": {"annotations": None}}), timeout=120)
    yield sample
    for document in reversed(installed):
        api.delete(document)


def test_managed_by_stays(api: KubeClient, cluster: JSON) -> None:
    """Proves: IC-16."""
    assert _refused(api, cluster, {"metadata": {"annotations": {MANAGED_BY: None}}})
    assert not _refused(api, cluster, {"metadata": {"annotations": {"other": None}}})


def test_clusterctl_may_mark_the_copy_that_a_move_removes(api: KubeClient, cluster: JSON) -> None:
    patch = [{"op": "add", "path": "/metadata/annotations", "value": {DELETE_FOR_MOVE: ""}}]

    assert not _refused(api, cluster, patch, JSON_PATCH)


def _documents(folder: Path, pattern: str) -> list[JSON]:
    (path,) = folder.glob(pattern)
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def _quietly(api: KubeClient, obj: JSON) -> bool:
    try:
        api.create(obj)
    except (ApiError, LookupError):
        return False
    return True


def _refused(api: KubeClient, obj: JSON, patch: Any, kind: str = MERGE_PATCH) -> bool:
    metadata = obj["metadata"]
    path = api.path(obj["apiVersion"], obj["kind"], metadata["name"], metadata["namespace"])
    query = {"dryRun": "All"}
    try:
        api.request("PATCH", path, body=cast(JSON, patch), content_type=kind, query=query)
    except ApiError as error:
        if MANAGED_BY not in error.message:
            raise
        return True
    return False
