"""Objects of cluster templates: the validation rules of their CRDs, and their names."""

from __future__ import annotations

import pytest

from capsmith.judge.checks.evaluate import evaluate_manifests
from capsmith.manifests.parse import parse_manifests
from tests.rules.cases import contract

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: acmemachines.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: AcmeMachine, plural: acmemachines}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "has(self.size) != has(self.flavor)", message: set size or flavor}
            - {rule: "self.size == oldSelf.size"}
            properties:
              size: {type: integer}
              flavor: {type: string}
              zones:
                type: array
                items: {type: string, x-kubernetes-validations: [{rule: "self != 'none'"}]}
"""
WEBHOOK = """\
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: defaults}
webhooks:
- name: defaults.acme.example.com
  rules: [{apiGroups: [infrastructure.cluster.x-k8s.io], resources: [acmemachines]}]
"""
OBJECT = """\
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AcmeMachine
metadata: {name: %s}
spec: %s
"""


def find(spec: str, name: str = "a", crds: str = CRD) -> list[str]:
    """Return what is found in a cluster template with an object, with the ids of the rules."""
    files = {"infrastructure-components.yaml": crds, "cluster-template.yaml": OBJECT % (name, spec)}
    manifests = [each for file in files for each in parse_manifests(files[file], file)[0]]
    findings = evaluate_manifests(manifests, contract("v1beta2"))
    found = [each for each in findings if each.location.file == "cluster-template.yaml"]
    return [f"{each.id} {each.message}" for each in found if each.id != "CC-72"]


@pytest.mark.parametrize("spec", ["{size: 1}", "{flavor: a, zones: [b]}", '{flavor: "${A}"}'])
def test_objects_that_keep_the_rules_are_accepted(spec: str) -> None:
    assert find(spec) == []


@pytest.mark.parametrize("spec", ["{size: 1, flavor: b}", "{zones: [a]}"])
def test_a_broken_rule_is_found(spec: str) -> None:
    assert find(spec) == ["CC-80 AcmeMachine a: spec violates a rule: set size or flavor"]


def test_a_broken_rule_of_an_item_is_found() -> None:
    (message,) = find("{size: 1, zones: [none]}")
    assert "spec.zones.0 violates a rule: `self != 'none'`" in message


@pytest.mark.parametrize("spec", ['{size: 1, flavor: "${A}"}', '{size: 1, "${A}": "${B}"}'])
def test_rules_of_values_with_variables_are_not_judged(spec: str) -> None:
    assert find(spec) == []


def test_a_webhook_may_change_what_breaks_a_rule() -> None:
    assert find("{zones: [a]}", crds=CRD + WEBHOOK) == []


@pytest.mark.parametrize("name", ["Workers", "a_b", "-a"])
def test_a_name_that_no_object_has_is_found(name: str) -> None:
    (message,) = find("{size: 1}", name)
    assert message.startswith("CC-81")
    assert "is not a valid name" in message


def test_a_name_with_a_variable_may_be_valid() -> None:
    assert find("{size: 1}", '"${CLUSTER_NAME}-a"') == []


NULLS = CRD.replace(
    "            properties:\n              size",
    "            required: [image, note]\n"
    "            properties:\n"
    "              image: {type: string}\n"
    "              note: {type: string, nullable: true}\n"
    "              tags: {type: object, additionalProperties: {type: string}}\n"
    "              size",
)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{size: 1, image: null, note: a}", "spec.image is required"),
        ("{size: 1, image: a, note: a, zones: [null]}", "spec.zones.0 is null; expected string"),
    ],
)
def test_a_null_is_no_value(spec: str, message: str) -> None:
    assert find(spec, crds=NULLS) == [f"CC-80 AcmeMachine a: {message}"]


@pytest.mark.parametrize("more", ["", ", tags: {a: null}", ", zones: null"])
def test_a_null_that_the_api_server_drops_or_keeps_is_accepted(more: str) -> None:
    assert find(f"{{size: 1, image: a, note: null{more}}}", crds=NULLS) == []


@pytest.mark.parametrize(
    "metadata",
    [
        "{name: 5}",
        "{name: a, labels: [a]}",
        "{name: a, annotations: b}",
        "{name: a, finalizers: b}",
    ],
)
def test_metadata_of_another_type_is_found(metadata: str) -> None:
    text = OBJECT.replace("{name: %s}", metadata) % "{size: 1}"
    files = {"infrastructure-components.yaml": CRD, "cluster-template.yaml": text}
    manifests = [each for file in files for each in parse_manifests(files[file], file)[0]]
    found = evaluate_manifests(manifests, contract("v1beta2"))
    assert [each.id for each in found if "metadata" in each.message and "expected" in each.message]
