"""Your tests of TidalNodePool: no API server is needed."""

from __future__ import annotations

from cluster_api_provider_tidal._generated import machine_pool_testing as testing
from cluster_api_provider_tidal._generated.api.tidal_node_pool import TidalNodePoolSpec
from cluster_api_provider_tidal._generated.testing import spec_from
from cluster_api_provider_tidal.controllers.tidal_node_pool import TidalNodePoolReconciler

SPEC = spec_from(TidalNodePoolSpec, {"size": "example", "image": "example"})


def test_an_autoscaler_elsewhere_is_left_alone() -> None:
    pool = testing.infra_machine_pool(SPEC, replicas=3, replicas_managed_elsewhere=True)
    assert TidalNodePoolReconciler().replicas(pool) is None
