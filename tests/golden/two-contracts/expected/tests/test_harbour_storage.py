"""Your tests of HarbourStorage: no API server is needed."""

from __future__ import annotations

from cluster_api_provider_harbour import AddonState, Gone, Waiting
from cluster_api_provider_harbour._generated import addon_testing, testing
from cluster_api_provider_harbour._generated.api.harbour_storage import HarbourStorageSpec
from cluster_api_provider_harbour.controllers.harbour_storage import (
    NAMESPACE,
    HarbourStorageReconciler,
)

SPEC = testing.spec_from(
    HarbourStorageSpec,
    {"clusterSelector": {"matchLabels": {"environment": "production"}}, "class": "example"},
)


def test_a_cluster_gets_it_and_keeps_what_others_have_set() -> None:
    objects = addon_testing.WorkloadObjects()
    addon, cluster = addon_testing.addon(SPEC), testing.core_cluster()
    metadata = {"namespace": NAMESPACE, "name": addon.name, "labels": {"of": "others"}}
    objects.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    for _ in range(2):
        answer = HarbourStorageReconciler().reconcile_normal(
            addon, cluster, addon_testing.workload(objects)
        )
        assert answer == AddonState()
    found = objects.find("ConfigMap", addon.name, NAMESPACE)

    assert found is not None
    assert found["data"]["cluster"] == f"{cluster.namespace}/{cluster.name}"
    assert found["metadata"]["labels"] == {"of": "others"}


def test_it_goes_away() -> None:
    objects = addon_testing.WorkloadObjects()
    reconciler, cluster = HarbourStorageReconciler(), testing.core_cluster()
    workload = addon_testing.workload(objects)
    reconciler.reconcile_normal(addon_testing.addon(SPEC), cluster, workload)

    going = addon_testing.addon_deletion(SPEC)
    answers = [reconciler.reconcile_delete(going, cluster, workload) for _ in range(2)]

    assert isinstance(answers[0], Waiting)
    assert answers[1] == Gone()
    assert objects.find("ConfigMap", going.name, NAMESPACE) is None
