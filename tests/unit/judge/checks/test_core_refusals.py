"""What webhooks of different releases of core refuse."""

from __future__ import annotations

import pytest

from capsmith.judge.checks.core_refusals import find_refusals
from capsmith.manifests.parse import parse_manifests


@pytest.mark.parametrize(
    ("version", "contract", "refused"),
    [("v1beta1", "v1beta1", False), ("v1beta1", "v1beta2", True), ("v1beta2", "v1beta1", True)],
)
def test_core_accepts_a_cluster_without_references_up_to_v1_10(
    version: str, contract: str, refused: bool
) -> None:
    text = (
        f"apiVersion: cluster.x-k8s.io/{version}\nkind: Cluster\nmetadata: {{name: a}}\n"
        "spec: {clusterNetwork: {serviceDomain: example.com}}\n"
    )
    ((manifest,), _) = parse_manifests(text, "cluster-template.yaml")
    assert bool(list(find_refusals(manifest, contract))) == refused
