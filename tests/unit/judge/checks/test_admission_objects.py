"""What the API server refuses in its own objects is found; other tests ask the API server."""

from __future__ import annotations

import pytest
import yaml

from capsmith.judge.checks.evaluate import evaluate_manifests, find_violations
from capsmith.judge.checks.patch_expressions import read_patch
from capsmith.manifests.bundle import Bundle
from capsmith.manifests.go_yaml import GoDumper
from capsmith.manifests.parse import parse_manifests
from tests import admission_objects, built_in_objects
from tests.core_objects import JSON, Mistake
from tests.rules.cases import contract

MISTAKES = (*admission_objects.MISTAKES, *built_in_objects.MISTAKES)
ACCEPTED = (*admission_objects.ACCEPTED, *built_in_objects.ACCEPTED)


def build_objects() -> dict[str, JSON]:
    return {**built_in_objects.build_objects(), **admission_objects.build_objects()}


def find(document: JSON) -> list[str]:
    """Return what the rule on objects of Kubernetes finds in components with one object."""
    text = yaml.dump(document, Dumper=GoDumper)
    manifests, _ = parse_manifests(text, "infrastructure-components.yaml")
    findings = evaluate_manifests(manifests, contract("v1beta2"))
    return [each.message for each in findings if each.id == "CC-81"]


def _base(change: Mistake, of_policies: tuple[Mistake, ...]) -> JSON:
    """Return the object that a change is about."""
    module = admission_objects if change in of_policies else built_in_objects
    document: JSON = module.build_objects()[change.kind]
    return document


@pytest.mark.parametrize("kind", build_objects())
def test_objects_without_a_mistake_are_accepted(kind: str) -> None:
    assert find(build_objects()[kind]) == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_mistakes_are_found(mistake: Mistake) -> None:
    assert find(mistake.applied(_base(mistake, admission_objects.MISTAKES)))


@pytest.mark.parametrize("change", ACCEPTED, ids=str)
def test_changes_are_accepted(change: Mistake) -> None:
    assert find(change.applied(_base(change, admission_objects.ACCEPTED))) == []


@pytest.mark.parametrize("expression", admission_objects.FAILING)
def test_patches_with_another_type_break_under_a_condition(expression: str) -> None:
    """Proves: CC-81."""
    text = yaml.safe_dump(admission_objects.build_patch(expression))
    manifests, _ = parse_manifests(text, "infrastructure-components.yaml")
    known = contract("v1beta2")
    violations = find_violations(known.rules["CC-81"], Bundle(tuple(manifests), {}), known)
    assert [each.when for each in violations]


def test_expressions_with_variables_are_not_judged() -> None:
    document = build_objects()["ValidatingAdmissionPolicy"]
    document["spec"]["validations"][0]["expression"] = "object.spec.size > ${SIZE}"
    assert find(document) == []


def test_functions_of_other_releases_are_accepted() -> None:
    document = build_objects()["ValidatingAdmissionPolicy"]
    document["spec"]["validations"][0]["expression"] = "object.spec.size.isPrime()"
    assert find(document) == []


@pytest.mark.parametrize("value", [5, True, 1.5, "v1", {"a": "b"}, [{}], [[]], [5]], ids=str)
def test_review_versions_of_another_type_are_found(value: object) -> None:
    document = build_objects()["ValidatingWebhookConfiguration"]
    document["webhooks"][0]["admissionReviewVersions"] = value
    assert find(document)


@pytest.mark.parametrize(
    "amount", ["9" * 5000, f"1.{'0' * 5000}", f"1e{'9' * 5000}", "1e999999999"]
)
def test_amounts_of_many_digits_are_not_computed(amount: str) -> None:
    document = build_objects()["Deployment"]
    container = document["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"memory": amount}, "requests": {"memory": amount}}
    assert find(document) == []


@pytest.mark.parametrize("depth", [150, 5000])
def test_deep_patches_are_not_read(depth: int) -> None:
    text = "Object{a: " * depth + "1" + "}" * depth
    assert not read_patch(text).is_read


@pytest.mark.parametrize(
    "text", ["Object{a", "Object{a:", "Object{a: 1", "Object{", "Object{a 1}", "(", "'", ""]
)
def test_broken_patches_have_no_obvious_result(text: str) -> None:
    assert read_patch(text).result == ""


_CERTIFICATE = {
    "apiVersion": "cert-manager.io/v1",
    "kind": "Certificate",
    "metadata": {"name": "a", "namespace": "b"},
    "spec": {"secretName": "a", "issuerRef": {"name": "a"}, "dnsNames": ["a.b.svc"]},
}
_ISSUER = {
    "apiVersion": "cert-manager.io/v1",
    "kind": "Issuer",
    "metadata": {"name": "a", "namespace": "b"},
    "spec": {"selfSigned": {}},
}
_ACME = {"server": "https://a.example.com", "privateKeySecretRef": {"name": "a"}}


@pytest.mark.parametrize(
    "change",
    [
        {"commonName": "a" * 65},
        {"issuerRef": {"name": "a", "kind": "SelfSigned"}},
        {"ipAddresses": "10.0.0.1"},
        {"uris": [5]},
        {"secretName": None},
        {"encodeUsagesInRequest": "yes"},
        {"privateKey": {"encoding": "PKCS12"}},
        {"subject": {"organizations": "a"}},
        {"secretTemplate": {"labels": {"a": 5}}},
        {"keystores": {"jks": {"passwordSecretRef": {"name": "a"}}}},
        {"keystores": {"pkcs12": {"create": True, "profile": "Modern"}}},
        {"additionalOutputFormats": [{"type": "PEM"}]},
    ],
    ids=str,
)
def test_fields_of_certificates_are_judged(change: JSON) -> None:
    assert find(_CERTIFICATE) == []
    assert find({**_CERTIFICATE, "spec": {**_CERTIFICATE["spec"], **change}})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "spec",
    [
        {"ca": {}},
        {"acme": {"server": "https://a.example.com"}},
        {"acme": {**_ACME, "solvers": {"http01": {}}}},
        {"acme": {**_ACME, "skipTLSVerify": "no"}},
        {"vault": {"server": "https://a.example.com", "path": "a"}},
        {"venafi": {"zone": "a", "tpp": {"url": "https://a.example.com"}}},
        {"selfSigned": {"crlDistributionPoints": "https://a.example.com"}},
        {"selfSigned": None},
    ],
    ids=str,
)
def test_fields_of_issuers_are_judged(spec: JSON) -> None:
    assert find(_ISSUER) == find({**_ISSUER, "spec": {"acme": _ACME}}) == []
    assert find({**_ISSUER, "spec": spec})
