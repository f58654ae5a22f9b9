"""Unit tests of TidalNodePoolReconciler; they need no API server."""

from __future__ import annotations

from capsmith_runtime.testing import infrastructure as testing

from cluster_api_provider_tidal._generated.api.tidal_node_pool import TidalNodePoolSpec
from cluster_api_provider_tidal.controllers.tidal_node_pool import TidalNodePoolReconciler

SPEC = testing.spec_from(TidalNodePoolSpec, {"size": "example", "image": "ubuntu-24.04"})


def test_replicas_are_left_to_the_autoscaler_by_default() -> None:
    pool = testing.infra_machine_pool(SPEC, replicas=3, replicas_managed_elsewhere=True)
    assert TidalNodePoolReconciler().replicas(pool) is None
