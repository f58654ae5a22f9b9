"""What different releases of core refuse."""

from __future__ import annotations

import pytest

from capsmith.judge.checks.apiextensions.structural import Keywords
from capsmith.judge.checks.class_definitions import find_class_refusals
from capsmith.judge.checks.core_objects import find_core_mismatches
from capsmith.judge.checks.core_refusals import find_refusals
from capsmith.manifests.parse import Manifest, parse_manifests
from tests.rules.cases import contract

CLASS = """\
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: a}
spec: {variables: [{name: size, schema: {openAPIV3Schema: {type: string}}}]}
"""
DEPLOYMENT = """\
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: a}
spec:
  clusterName: a
  selector: {}
  template:
    spec: {bootstrap: {dataSecretName: a}, infrastructureRef: {kind: A, name: a}}
"""


def read(text: str) -> Manifest:
    (manifest,), _ = parse_manifests(text, "cluster-template.yaml")
    return manifest


@pytest.mark.parametrize(
    ("version", "chosen", "refused"),
    [("v1beta1", "v1beta1", False), ("v1beta1", "v1beta2", True), ("v1beta2", "v1beta1", True)],
)
def test_core_accepts_a_cluster_without_references_up_to_v1_10(
    version: str, chosen: str, refused: bool
) -> None:
    manifest = read(
        f"apiVersion: cluster.x-k8s.io/{version}\nkind: Cluster\nmetadata: {{name: a}}\n"
        "spec: {clusterNetwork: {serviceDomain: example.com}}\n"
    )
    assert bool(list(find_refusals(manifest, chosen))) == refused


@pytest.mark.parametrize(
    ("text", "chosen", "field"),
    [
        (CLASS, "v1beta1", ""),
        (CLASS, "v1beta2", "required"),
        # An empty name is not valid.
        (DEPLOYMENT, "v1beta1", "clusterName"),
        (DEPLOYMENT, "v1beta2", "clusterName"),
    ],
)
def test_core_writes_required_fields_up_to_v1_10(text: str, chosen: str, field: str) -> None:
    found = find_core_mismatches(read(text), contract(chosen).core_kinds)
    refused = [each.path[-1] for each in found if each.only in ("", chosen)]
    assert refused == ([field] if field else [])


def test_a_duration_of_many_digits_is_not_computed() -> None:
    manifest = read(
        "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineHealthCheck\nmetadata: {name: a}\n"
        f"spec: {{selector: {{matchLabels: {{a: b}}}}, nodeStartupTimeout: {'9' * 5000}s}}\n"
    )
    assert not list(find_refusals(manifest, "v1beta1"))


def test_numbers_of_many_digits_are_read() -> None:
    concurrency = f"topology.cluster.x-k8s.io/upgrade-concurrency: '{'0' * 5000}2'"
    manifest = read(
        "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\n"
        f"metadata: {{name: a, annotations: {{{concurrency}}}}}\n"
        "spec: {topology: {classRef: {name: a}, version: v1.35.0}}\n"
    )
    assert not list(find_refusals(manifest, "v1beta2"))
    manifest = read(
        "apiVersion: controlplane.cluster.x-k8s.io/v1beta2\nkind: KubeadmControlPlane\n"
        f"metadata: {{name: a}}\nspec: {{replicas: 3, version: v1.35.{'9' * 5000},\n"
        f"  rollout: {{strategy: {{rollingUpdate: {{maxSurge: '{'0' * 5000}1'}}}}}}}}\n"
    )
    assert [path for path, _ in find_refusals(manifest, "v1beta2")] == [("spec", "version")]


def test_versions_of_many_digits_are_refused() -> None:
    manifest = read(
        "apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata: {name: a}\n"
        f"spec: {{kubernetesVersions: [v1.{'9' * 5000}.0, v1.{'0' * 5000}35.0, v1.36.0]}}\n"
    )
    found = find_class_refusals(manifest, Keywords((), (), (), (), (), ()))
    assert [path for path, _ in found] == [("spec", "kubernetesVersions", 0)]
