"""Validation rules of any provider's CRDs: verify and the API server refuse the same ones."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.judge.checks.validations import find_rule_faults, find_rule_places
from tests.realapi.test_rules import BAD, CRD, FIELDS, GOOD

FOREIGN = """
isPrime(self.count)
self.text.isPrime()
math.greatest(1, 2) == 2
cel.bind(x, 1, x == 1)
self.text.reverse() == 'a'
self.text.size(1) == 1
quantity('1').sign() == 1
authorizer.group('').resource('pods').check('get').allowed()
"""
"""Of BAD: calls that functions of another release of Kubernetes may allow."""
EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
KEYED = {
    "type": "array",
    "maxItems": 9,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "maxLength": 9}},
    },
}
SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {**FIELDS, "object": EMBEDDED, "keyed": KEYED, "a.b": {"type": "string"}},
}


class Case(NamedTuple):
    """A rule and its place: a path of properties, with ``[]`` for the items of a list."""

    rule: dict[str, Any]
    place: str = "spec"


TAKEN = [
    Case({"rule": "self.metadata.name.size() < 9 && self.kind == 'Rule'"}, ""),
    Case({"rule": "has(self.metadata.generateName) || has(self.spec)", "fieldPath": ".spec"}, ""),
    Case({"rule": "self.metadata.name == 'a' && self.apiVersion == 'v1'"}, "spec.object"),
    Case({"rule": "self == oldSelf"}, "spec.keyed.[]"),
    Case({"rule": "self.name == oldSelf.name"}, "spec.keyed.[]"),
    Case({"rule": "self.all(name, name in oldSelf)"}, "spec.names"),
    Case({"rule": "self == oldSelf"}, "spec.zones.{}"),
    Case({"rule": "self == oldSelf.orValue(self)", "optionalOldSelf": True}, "spec.text"),
    Case({"rule": "self.size() > 1", "messageExpression": "'is ' + self"}, "spec.text"),
    Case({"rule": "self.size() > 1\n  && self != 'a'", "message": "no"}, "spec.text"),
    Case({"rule": "self.count > 1", "fieldPath": ".count", "reason": "FieldValueInvalid"}),
    Case({"rule": "self.count > 1", "fieldPath": "['a.b']"}),
    Case({"rule": "self.count > 1", "fieldPath": ".tags.a"}),
    Case({"rule": "self.a__dot__b == 'a'"}),
    Case({"rule": "self.size() > 1"}, "spec.rows.[]"),
    Case({"rule": "self == 'oldSelf'"}, "spec.names.[]"),
]
REFUSED = [
    Case({"rule": "self.metadata.labels.size() == 0"}, ""),
    Case({"rule": "self.metadata.namespace == 'a'"}, ""),
    Case({"rule": "has(self.spec)", "fieldPath": ".metadata"}, ""),
    Case({"rule": "self.metadata.labels.size() == 0"}, "spec.object"),
    Case({"rule": "self == oldSelf"}, "spec.names.[]"),
    Case({"rule": "self == oldSelf"}, "spec.disks.[]"),
    Case({"rule": "self == oldSelf"}, "spec.disks.[].size"),
    Case({"rule": "self == oldSelf", "optionalOldSelf": True}, "spec.disks.[]"),
    Case({"rule": "self == oldSelf.orValue('a')", "optionalOldSelf": True}, "spec.count"),
    Case({"rule": "self.size() > 1", "optionalOldSelf": True}, "spec.text"),
    Case({"rule": "self.size() > 1", "messageExpression": "self.size()"}, "spec.text"),
    Case({"rule": "self.size() > 1", "messageExpression": "selves"}, "spec.text"),
    Case({"rule": "self.size() > 1", "messageExpression": " "}, "spec.text"),
    Case({"rule": "self.size() > 1", "message": " "}, "spec.text"),
    Case({"rule": "self.size() > 1", "message": "a\nb"}, "spec.text"),
    Case({"rule": "self.size() > 1\n  && self != 'a'"}, "spec.text"),
    Case({"rule": "self.size() > 1\n  && self != 'a'", "messageExpression": "'no'"}, "spec.text"),
    Case({"rule": " "}, "spec.text"),
    Case({"message": "no rule"}, "spec.text"),
    Case({"rule": True}, "spec.text"),
    Case({"rule": "self.count > 1", "fieldPath": "count"}),
    Case({"rule": "self.count > 1", "fieldPath": ".counts"}),
    Case({"rule": "self.count > 1", "fieldPath": " "}),
    Case({"rule": "self.count > 1", "fieldPath": ".a.b"}),
    Case({"rule": "self.count > 1", "reason": "Invalid"}),
    Case({"rule": "self.name == 'a'"}, "spec.keyed.[].name"),
    Case({"rule": "self == 1"}, "spec.any"),
]


def test_every_foreign_expression_is_a_bad_one() -> None:
    assert set(FOREIGN.strip().splitlines()) < set(BAD.strip().splitlines())


@pytest.mark.parametrize("rule", GOOD.strip().splitlines())
def test_expression_that_is_taken_has_no_fault(rule: str) -> None:
    """`test_rules` shows what the API server takes and what it refuses."""
    assert found(Case({"rule": rule, "message": "no"})) == []


@pytest.mark.parametrize("rule", BAD.strip().splitlines())
def test_expression_that_is_refused_has_a_fault(rule: str) -> None:
    is_foreign = rule in FOREIGN.strip().splitlines()
    assert (found(Case({"rule": rule, "message": "no"})) == []) is is_foreign


@pytest.mark.parametrize("case", TAKEN, ids=str)
def test_rule_that_is_taken_has_no_fault(api: KubeClient, case: Case) -> None:
    assert refusal(api, case) == ""
    assert found(case) == []


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_rule_that_is_refused_has_a_fault(api: KubeClient, case: Case) -> None:
    """Proves: CRD-23."""
    assert refusal(api, case) != ""
    assert found(case) != []


def found(case: Case) -> list[str]:
    return [
        fault.message
        for place in find_rule_places(schema_of(case))
        for rule in place.rules
        for fault in find_rule_faults(rule, place)
    ]


def schema_of(case: Case) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": copy.deepcopy(SPEC)}}
    place: Any = schema
    for step in steps(case.place):
        place = place[step]
    place["x-kubernetes-validations"] = [case.rule]
    return schema


def steps(place: str) -> Iterator[str]:
    for name in place.split(".") if place else ():
        keys = {"[]": ["items"], "{}": ["additionalProperties"]}
        yield from keys.get(name, ["properties", name])


def refusal(api: KubeClient, case: Case) -> str:
    """Return why the API server refuses a CRD with the rule."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema_of(case)},
    }
    names = {"plural": "rules", "singular": "rule", "kind": "Rule", "listKind": "RuleList"}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rules.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
    try:
        api.request("POST", CRD, body=body)
    except ApiError as error:
        return error.message
    return ""
