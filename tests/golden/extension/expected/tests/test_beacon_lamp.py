"""Unit tests of BeaconLampReconciler; they need no API server."""

from __future__ import annotations

from capsmith_runtime.addon import AddonState, Deleted, Waiting
from capsmith_runtime.testing import addon as testing

from cluster_api_provider_beacon._generated.api.beacon_lamp import BeaconLampSpec
from cluster_api_provider_beacon.controllers.beacon_lamp import NAMESPACE, BeaconLampReconciler

SPEC = testing.spec_from(
    BeaconLampSpec,
    {
        "clusterSelector": {"matchLabels": {"environment": "production"}},
        "message": "example",
        "identityRef": {"kind": "BeaconIdentity", "name": "beacon"},
    },
)


def test_add_on_is_installed_and_keeps_fields_of_others() -> None:
    objects = testing.WorkloadObjects()
    addon, cluster = testing.addon(SPEC, session="me"), testing.core_cluster()
    metadata = {"namespace": NAMESPACE, "name": addon.name, "labels": {"of": "others"}}
    objects.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    for _ in range(2):
        result = BeaconLampReconciler().reconcile_normal(addon, cluster, testing.workload(objects))
        assert result == AddonState()
    found = objects.find("ConfigMap", addon.name, NAMESPACE)

    assert found is not None
    assert found["data"]["cluster"] == f"{cluster.namespace}/{cluster.name}"
    assert found["data"]["account"] == "me"
    assert found["metadata"]["labels"] == {"of": "others"}


def test_add_on_is_deleted() -> None:
    objects = testing.WorkloadObjects()
    reconciler, cluster = BeaconLampReconciler(), testing.core_cluster()
    workload = testing.workload(objects)
    reconciler.reconcile_normal(testing.addon(SPEC, session="me"), cluster, workload)

    scope = testing.addon_deletion(SPEC)
    results = [reconciler.reconcile_delete(scope, cluster, workload) for _ in range(2)]

    assert isinstance(results[0], Waiting)
    assert results[1] == Deleted()
    assert objects.find("ConfigMap", scope.name, NAMESPACE) is None
