"""Admission policies and Services that the API server takes, and mistakes that it refuses."""

from __future__ import annotations

from typing import Any

from tests.core_objects import JSON, Mistake

_VERSION = "admissionregistration.k8s.io/v1"
_RULE = {
    "apiGroups": ["infrastructure.cluster.x-k8s.io"],
    "apiVersions": ["v1beta2"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["acmemachines"],
}
_LABELS = "'a' in object.metadata.labels"


def _object(kind: str, spec: JSON, version: str = _VERSION) -> JSON:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "sample"}, "spec": spec}


def build_objects() -> dict[str, JSON]:
    """Return an object of each kind, by its kind."""
    condition = {"name": "users", "expression": "request.userInfo.username != 'a'"}
    client = {"service": {"name": "a", "namespace": "b"}}
    hook = {
        "name": "acmemachines.acme.example.com",
        "clientConfig": client,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [_RULE],
        "matchConditions": [
            condition,
            {"name": "labels", "expression": f"!has(object.metadata.labels) || {_LABELS}"},
            {"name": "sizes", "expression": "oldObject == null || object.spec.size > 3"},
            {
                "name": "pods",
                "expression": "authorizer.group('').resource('pods').check('get').allowed()",
            },
        ],
    }
    policy = {
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [_RULE]},
        "matchConditions": [condition],
        "variables": [
            {"name": "size", "expression": "object.spec.size"},
            {"name": "isNamed", "expression": "has(object.metadata.name)"},
            {"name": "isLarge", "expression": "variables.size > int(params.data.largest)"},
        ],
        "validations": [
            {
                "expression": "!variables.isLarge",
                "messageExpression": "'not ' + string(variables.size)",
            },
            {"expression": "variables.isNamed"},
            {"expression": "object.spec.kind != 'a'", "message": "no", "reason": "Invalid"},
        ],
    }
    binding = {"policyName": "sample", "validationActions": ["Deny"]}
    mutation = {"expression": 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'}
    mutating = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [_RULE]},
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": mutation}],
    }
    port = {"port": 443, "targetPort": "webhook", "appProtocol": "kubernetes.io/h2c"}
    webhooks = {
        "apiVersion": _VERSION,
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "sample"},
        "webhooks": [hook],
    }
    found = [
        webhooks,
        _object("ValidatingAdmissionPolicy", policy),
        _object("ValidatingAdmissionPolicyBinding", binding),
        _object("MutatingAdmissionPolicy", mutating),
        _object("Service", {"ports": [port], "selector": {"app": "acme"}}, "v1"),
    ]
    return {each["kind"]: each for each in found}


def _mistakes(kind: str, *mistakes: tuple[str, Any]) -> tuple[Mistake, ...]:
    return tuple(
        Mistake(
            kind, tuple(int(step) if step.isdigit() else step for step in path.split(".")), value
        )
        for path, value in mistakes
    )


_CONDITION = "webhooks.0.matchConditions.0"
_VALIDATION = "spec.validations.0"
_CONSTRAINTS = "spec.matchConstraints"
_PORT = "spec.ports.0"
_IN = {"matchExpressions": [{"key": "a", "operator": "In"}]}

MISTAKES = (
    *_mistakes(
        "ValidatingWebhookConfiguration",
        (f"{_CONDITION}.expression", "object.spec.size >"),
        (f"{_CONDITION}.expression", "object.metadata.name"),
        (f"{_CONDITION}.expression", "'a'"),
        (f"{_CONDITION}.expression", "object == oldObjects"),
        (f"{_CONDITION}.expression", "request.user.username != 'a'"),
        (f"{_CONDITION}.expression", "variables.size == 1"),
        (f"{_CONDITION}.expression", "params.data.a == 'b'"),
        (f"{_CONDITION}.expression", "size(object.metadata.name) == 'a'"),
        (f"{_CONDITION}.expression", " "),
        (f"{_CONDITION}.name", "a b"),
        ("webhooks.0.objectSelector", {"matchLabels": {"a": "b c"}}),
    ),
    *_mistakes(
        "ValidatingAdmissionPolicy",
        (f"{_VALIDATION}.expression", "variables.large"),
        (f"{_VALIDATION}.expression", "1 + 1"),
        (f"{_VALIDATION}.expression", "object.spec.isLarge"),
        (f"{_VALIDATION}.messageExpression", "1 + 1"),
        (f"{_VALIDATION}.messageExpression", "object."),
        (f"{_VALIDATION}.message", "a\nb"),
        (f"{_VALIDATION}.reason", "Wrong"),
        ("spec.validations", []),
        ("spec.variables.0.expression", "variables.isLarge"),
        ("spec.variables.0.name", "a b"),
        ("spec.matchConditions.0.expression", "variables.isLarge"),
        ("spec.paramKind", {"kind": "ConfigMap"}),
        ("spec.failurePolicy", "Deny"),
        (_CONSTRAINTS, {}),
        (f"{_CONSTRAINTS}.matchPolicy", "All"),
        (f"{_CONSTRAINTS}.namespaceSelector", _IN),
        (f"{_CONSTRAINTS}.resourceRules.0.operations", ["PATCH"]),
        (f"{_CONSTRAINTS}.resourceRules.0.resources", ["*", "acmemachines"]),
        (f"{_CONSTRAINTS}.resourceRules.0.scope", "All"),
    ),
    *_mistakes(
        "ValidatingAdmissionPolicyBinding",
        ("spec.validationActions", []),
        ("spec.validationActions", ["Block"]),
        ("spec.validationActions", ["Deny", "Deny"]),
        ("spec.policyName", ""),
        ("spec.paramRef", {"name": "a"}),
        ("spec.paramRef", {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"}),
    ),
    *_mistakes(
        "MutatingAdmissionPolicy",
        ("spec.reinvocationPolicy", "Always"),
        ("spec.mutations", []),
        ("spec.mutations.0.patchType", "Merge"),
        ("spec.mutations.0.jsonPatch", {"expression": "[JSONPatch{op: 'remove', path: '/a'}]"}),
    ),
    *_mistakes(
        "Service",
        (f"{_PORT}.appProtocol", "my proto"),
        (f"{_PORT}.appProtocol", 5),
        (f"{_PORT}.nodePort", 30443),
        ("spec.clusterIP", "192.0.2.300"),
        ("spec.externalIPs", ["router"]),
        ("spec.externalTrafficPolicy", "Local"),
        ("spec.internalTrafficPolicy", "Node"),
        ("spec.ipFamilies", ["IPv4", "IPv4"]),
        ("spec.ipFamilyPolicy", "Dual"),
        ("spec.loadBalancerClass", "example.com/acme"),
        ("spec.publishNotReadyAddresses", "yes"),
        ("spec.selector", {"a b": "c"}),
        ("spec.trafficDistribution", "Near"),
    ),
)
"""What the rule on objects of Kubernetes finds."""
