"""Unit tests of HarbourStorageReconciler; they need no API server."""

from __future__ import annotations

from capsmith_runtime.addon import AddonState, Deleted, Waiting
from capsmith_runtime.testing import addon as testing

from cluster_api_provider_harbour._generated.api.harbour_storage import HarbourStorageSpec
from cluster_api_provider_harbour.controllers.harbour_storage import (
    NAMESPACE,
    HarbourStorageReconciler,
)

SPEC = testing.spec_from(
    HarbourStorageSpec,
    {"clusterSelector": {"matchLabels": {"environment": "production"}}, "class": "example"},
)


def test_add_on_is_installed_and_keeps_fields_of_others() -> None:
    objects = testing.WorkloadObjects()
    addon, cluster = testing.addon(SPEC), testing.core_cluster()
    metadata = {"namespace": NAMESPACE, "name": addon.name, "labels": {"of": "others"}}
    objects.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    for _ in range(2):
        result = HarbourStorageReconciler().reconcile_normal(
            addon, cluster, testing.workload(objects)
        )
        assert result == AddonState()
    found = objects.find("ConfigMap", addon.name, NAMESPACE)

    assert found is not None
    assert found["data"]["cluster"] == f"{cluster.namespace}/{cluster.name}"
    assert found["metadata"]["labels"] == {"of": "others"}


def test_add_on_is_deleted() -> None:
    objects = testing.WorkloadObjects()
    reconciler, cluster = HarbourStorageReconciler(), testing.core_cluster()
    workload = testing.workload(objects)
    reconciler.reconcile_normal(testing.addon(SPEC), cluster, workload)

    scope = testing.addon_deletion(SPEC)
    results = [reconciler.reconcile_delete(scope, cluster, workload) for _ in range(2)]

    assert isinstance(results[0], Waiting)
    assert results[1] == Deleted()
    assert objects.find("ConfigMap", scope.name, NAMESPACE) is None
