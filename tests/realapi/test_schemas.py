"""What capsmith calls a valid schema, the API server takes; the examples' CRDs too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.findings import Severity, has_errors
from capsmith.output.crd import build_crd
from capsmith.provider.model import Component, Provider, Resource, Role
from capsmith.provider_yaml.parse import parse
from capsmith.resolving.resolve import resolve
from tests.invalid.cases import CONTRACTS, EXAMPLES, judge

DRY_RUN = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
BASE = json.dumps(
    {
        "capsmith": 1,
        "name": "acme",
        "repository": "https://github.com/acme/cluster-api-provider-acme",
        "contracts": ["v1beta2"],
        "releases": {"v0.1": "v1beta2"},
        "infrastructure": {
            "AcmeCluster": {"implements": "InfraCluster"},
            "AcmeMachine": {
                "implements": "InfraMachine",
                "objectValidations": [{"rule": "size(self.metadata.name) < 40 && has(self.spec)"}],
                "objectName": {"maxLength": 40, "pattern": "^[a-z]"},
                "spec": {"field": "FIELD"},
            },
        },
    }
)
TEXT = st.sampled_from(["a", "b", "ab", "10.0.0.0/8", "x y", ""])
SMALL = st.integers(-1, 5)
SCALAR = TEXT | SMALL | st.booleans() | st.sampled_from([1.5, None])
PATTERNS = st.sampled_from(["^a", "[a-z]+", "(a|b){2,3}", "a++", "(?i)x", "(", r"\d", "(?=a)"])
RULES = st.sampled_from(
    [
        {"rule": "self == self"},
        {"rule": "self == oldSelf", "message": "no"},
        {"rule": "oldSelf.hasValue() || true", "optionalOldSelf": True},
        {"rule": "true", "reason": "FieldValueInvalid", "messageExpression": "'a'"},
        {"rule": "(true"},
    ]
)
COMMON = {
    "immutable": st.booleans(),
    "nullable": st.booleans(),
    "required": st.booleans(),
    "default": SCALAR,
    "enum": st.lists(SCALAR, min_size=1, max_size=3),
    "description": TEXT,
    "x-kubernetes-validations": st.lists(RULES, min_size=1, max_size=2),
}
NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "minimum": SMALL,
    "maximum": SMALL,
    "exclusiveMinimum": st.booleans(),
    "exclusiveMaximum": st.booleans(),
    "multipleOf": SMALL,
}
LISTS = {
    "minItems": SMALL,
    "maxItems": SMALL,
    "x-kubernetes-list-type": st.sampled_from(["atomic", "set", "map"]),
    "x-kubernetes-list-map-keys": st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2),
    "default": st.lists(SCALAR, max_size=2),
}
OBJECTS: dict[str, st.SearchStrategy[Any]] = {
    "minProperties": SMALL,
    "maxProperties": SMALL,
    "x-kubernetes-map-type": st.sampled_from(["atomic", "granular"]),
    "x-kubernetes-preserve-unknown-fields": st.just(True),
    "required": st.booleans() | st.lists(st.sampled_from(["a", "b"]), max_size=2),
    "default": st.dictionaries(st.sampled_from(["a", "b"]), SCALAR, max_size=2),
}
TEXTS: dict[str, st.SearchStrategy[Any]] = {
    "minLength": SMALL,
    "maxLength": SMALL,
    "pattern": PATTERNS,
    "format": TEXT,
}


def of(type: str | None, *optional: dict[str, Any], **needed: Any) -> st.SearchStrategy[Any]:
    """Return schemas of one type, with all needed and some of the optional keywords."""
    keywords: dict[str, Any] = {}
    for part in optional:
        keywords |= part
    fixed = {"type": st.just(type), **needed} if type else needed
    chosen = st.sets(st.sampled_from(sorted(keywords)), max_size=3)
    return chosen.flatmap(
        lambda names: st.fixed_dictionaries({**fixed, **{name: keywords[name] for name in names}})
    )


def properties(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(st.sampled_from(["a", "b", "C-d", "e_F"]), inner, min_size=1, max_size=2)


LIMITS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "minLength": st.integers(0, 3),
            "pattern": PATTERNS,
            "minimum": SMALL,
            "maximum": SMALL,
            "enum": st.lists(TEXT | SMALL, min_size=1, max_size=2),
            "required": st.lists(st.sampled_from(["a", "b"]), max_size=2),
            "properties": st.dictionaries(
                st.sampled_from(["a", "b"]), st.just({"minLength": 1}), max_size=2
            ),
            "type": st.just("string"),
            "not": st.just({"minLength": 2}),
        },
    ),
    min_size=1,
    max_size=2,
)
JUNCTORS = dict.fromkeys(("allOf", "anyOf", "oneOf"), LIMITS)
SCALARS = (
    st.sampled_from(["string", "string!", "int32", "boolean[]", "number"])
    | of("string", COMMON, TEXTS, JUNCTORS)
    | of("integer", COMMON, NUMBERS, {"format": st.sampled_from(["int32", "int64"])})
    | of("number", COMMON, NUMBERS, JUNCTORS)
    | of("boolean", COMMON)
    | of(None, COMMON, **{"x-kubernetes-int-or-string": st.just(True)})
)
FIELDS = st.recursive(
    SCALARS,
    lambda inner: (
        of("array", COMMON, LISTS, items=inner)
        | of("object", COMMON, OBJECTS, JUNCTORS, properties=properties(inner))
        | of("object", COMMON, OBJECTS, JUNCTORS, additionalProperties=inner)
    ),
    max_leaves=4,
)


def machine(text: str) -> tuple[Resource, Component]:
    component = understood(text).components[0]
    return component.role(Role.INFRA_MACHINE)[0], component


def understood(text: str) -> Provider:
    parsed = parse(text, "provider.yaml")
    assert parsed.spec is not None
    assert parsed.document is not None
    provider = resolve(parsed.spec, parsed.document, CONTRACTS).provider
    assert provider is not None
    return provider


def refusals(api: KubeClient, text: str) -> list[str]:
    """Return the API server's errors about the CRDs of a valid description."""
    found = []
    for component in understood(text).components:
        for resource in component.resources:
            try:
                api.request("POST", DRY_RUN, body=build_crd(resource, component))
            except ApiError as error:
                found.append(error.message)
    return found


@pytest.mark.parametrize("name", sorted(p.parent.name for p in EXAMPLES.glob("*/provider.yaml")))
def test_examples_are_taken(api: KubeClient, name: str) -> None:
    assert refusals(api, (EXAMPLES / name / "provider.yaml").read_text(encoding="utf-8")) == []


def test_the_server_does_look(api: KubeClient) -> None:
    """The comparison means something: what is wrong is refused in a dry run too."""
    text = (EXAMPLES / "acme" / "provider.yaml").read_text(encoding="utf-8")
    wrong = text.replace("image: string!", "image: {type: string, default: x, pattern: ^y}")
    assert has_errors(judge(wrong))
    document = build_crd(*machine(text))
    versions = document["spec"]["versions"]
    spec = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["image"] = {"type": "string", "default": "x", "pattern": "^y"}
    with pytest.raises(ApiError, match="should match"):
        api.request("POST", DRY_RUN, body=document)


@given(field=FIELDS)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_schemas_without_findings_are_taken(api: KubeClient, field: Any) -> None:
    text = BASE.replace('"FIELD"', json.dumps(field))
    findings = judge(text)
    if has_errors(findings) or any(f.id == "schema-unbounded-rule" for f in findings):
        return
    assert refusals(api, text) == []


def _each(**field: object) -> dict[str, Any]:
    """A map without limit of values that ``field`` describes."""
    return {"type": "object", "additionalProperties": field}


def _rule(rule: str) -> dict[str, Any]:
    return _each(type="string", **{"x-kubernetes-validations": [{"rule": rule}]})


_COSTLY = [
    _each(type="string", immutable=True),
    _each(type="string", immutable=True, format="ipv4"),
    _each(type="array", items="string", immutable=True),
    _each(type="object", properties={"a": {"type": "string", "immutable": True}}),
    _each(**{"x-kubernetes-int-or-string": True, "immutable": True}),
    *map(_rule, ["self == oldSelf", "self.contains('x')", "self.matches('x')"]),
]
_CHEAP = [
    _each(type="string", immutable=True, maxLength=10),
    _each(type="string", immutable=True, enum=["a", "b"]),
    _each(type="string", immutable=True, format="date"),
    _each(type="integer", immutable=True),
    _each(type="array", items="string", maxItems=3, immutable=True),
    _each(type="object", properties={"a": "string"}, immutable=True),
    *map(_rule, ["self != 'x'", "size(self) > 3", "self != 'self == oldSelf'"]),
]


@pytest.mark.parametrize("field", _COSTLY)
def test_rules_that_certainly_cost_too_much_are_errors(api: KubeClient, field: Any) -> None:
    text = BASE.replace('"FIELD"', json.dumps(field))
    assert {f.id for f in judge(text) if f.severity is Severity.ERROR} == {"schema-unbounded-rule"}
    bounded = BASE.replace('"FIELD"', json.dumps({**field, "maxProperties": 2}))
    document = build_crd(*machine(bounded))
    spec = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["field"]["maxProperties"]
    with pytest.raises(ApiError, match="more than 100x"):
        api.request("POST", DRY_RUN, body=document)


@pytest.mark.parametrize("field", _CHEAP)
def test_rules_that_the_server_takes_are_no_errors(api: KubeClient, field: Any) -> None:
    text = BASE.replace('"FIELD"', json.dumps(field))
    assert not has_errors(judge(text))
    assert refusals(api, text) == []
