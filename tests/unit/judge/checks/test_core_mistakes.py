"""What core and kubeadm refuse is found; tests with their webhooks show that they refuse it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import yaml

from capsmith.judge.checks.evaluate import evaluate_manifests, find_violations
from capsmith.judge.checks.name_templates import explain_name
from capsmith.manifests.bundle import Bundle
from capsmith.manifests.parse import parse_manifests
from tests.core_mistakes import ACCEPTED as ACCEPTED_CHANGES
from tests.core_mistakes import OF_CLASSES, OF_OBJECTS
from tests.core_objects import JSON, VERSIONS, Mistake, build_objects, list_mistakes
from tests.name_templates import ACCEPTED, REFUSED, build_deployment
from tests.rules.cases import contract

_RULES = ("CC-80", "TP-26")


@cache
def _contract(version: str):  # type: ignore[no-untyped-def]
    whole = contract(version)
    return replace(whole, rules={id: whole.rules[id] for id in _RULES})


def find(document: JSON, version: str = "v1beta2") -> set[str]:
    """Return the rules that refuse a cluster template with one object."""
    manifests, _ = parse_manifests(yaml.safe_dump(document), "cluster-template.yaml")
    return {finding.id for finding in evaluate_manifests(manifests, _contract(version))}


@pytest.mark.parametrize("version", VERSIONS)
def test_objects_without_a_mistake_are_accepted(version: str) -> None:
    found = {name: find(document) for name, document in build_objects(version).items()}
    assert {name: ids for name, ids in found.items() if ids} == {}


@pytest.mark.parametrize(("version", "mistake"), list_mistakes(OF_OBJECTS), ids=str)
def test_mistakes_in_objects_are_found(version: str, mistake: Mistake) -> None:
    assert "CC-80" in find(mistake.applied(build_objects(version)[mistake.kind]))


@pytest.mark.parametrize(("version", "mistake"), list_mistakes(OF_CLASSES), ids=str)
def test_mistakes_in_classes_are_found(version: str, mistake: Mistake) -> None:
    assert "TP-26" in find(mistake.applied(build_objects(version)[mistake.kind]))


@pytest.mark.parametrize(("version", "change"), list_mistakes(ACCEPTED_CHANGES), ids=str)
def test_changes_are_accepted(version: str, change: Mistake) -> None:
    assert find(change.applied(build_objects(version)[change.kind])) == set()


@pytest.mark.parametrize("text", ACCEPTED)
def test_templates_of_names_are_accepted(text: str) -> None:
    assert "CC-80" not in find(build_deployment(text))


@pytest.mark.parametrize("text", REFUSED)
def test_templates_that_render_no_name_are_found(text: str) -> None:
    assert "CC-80" in find(build_deployment(text))


def test_a_template_that_doubles_a_text_is_not_executed_to_its_end() -> None:
    text = "{{ $x := `a` }}" + "{{ $x = print $x $x }}" * 60 + "{{ $x }}-{{ .random }}"
    assert explain_name(text, {}) == ""


@pytest.mark.parametrize(
    "text", [f'{{{{ printf "%.{"9" * 5_000}s" .random }}}}', "{{ .random }}" * 1_000], ids=len
)
def test_long_templates_are_not_executed(text: str) -> None:
    assert explain_name(text, {}) == ""


def test_a_negative_number_of_replicas_is_found_for_kinds_of_the_release() -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
        "subresources": {"scale": {"specReplicasPath": ".spec.size"}},
    }
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "acmes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Acme", "plural": "acmes"},
            "versions": [version],
        },
    }
    components, _ = parse_manifests(yaml.safe_dump(crd), "infrastructure-components.yaml")
    document = {"apiVersion": "example.com/v1", "kind": "Acme", "metadata": {"name": "a"}}
    for size in (0, -1):
        text = yaml.safe_dump({**document, "spec": {"size": size}})
        manifests, _ = parse_manifests(text, "cluster-template.yaml")
        found = evaluate_manifests((*components, *manifests), _contract("v1beta2"))
        assert ["CC-80" for _ in range(-size)] == [finding.id for finding in found]


@pytest.mark.parametrize("kind", ["KubeadmConfigTemplate", "KubeadmControlPlaneTemplate"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_template_without_a_spec_breaks_when_it_is_used(version: str, kind: str) -> None:
    """The API server takes it, but core creates no object from it."""
    document = {**build_objects(version)[kind], "spec": None}
    manifests, _ = parse_manifests(yaml.safe_dump(document), "cluster-template.yaml")
    known = _contract(version)
    found = list(find_violations(known.rules["CC-80"], Bundle(tuple(manifests), {}), known))
    assert [each.when for each in found] == ["an object is created from the template"]
