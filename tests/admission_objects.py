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


def build_patch(expression: str) -> JSON:
    """Return a policy that patches each ConfigMap which is created with the name ``patched``."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    named = {"name": "named", "expression": "object.metadata.name == 'patched'"}
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["configmaps"]}]},
        "matchConditions": [named],
        "mutations": [mutation],
    }
    return _object("MutatingAdmissionPolicy", spec)


def build_binding() -> JSON:
    """Return the binding of that policy."""
    return _object("MutatingAdmissionPolicyBinding", {"policyName": "sample"})


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
_RESOURCES = f"{_CONSTRAINTS}.resourceRules.0.resources"
_IN = {"matchExpressions": [{"key": "a", "operator": "In"}]}
_AUDITED = "spec.auditAnnotations"
_PATCH = "spec.mutations.0.applyConfiguration.expression"


def _audit(expression: str, key: str = "a") -> list[JSON]:
    return [{"key": key, "valueExpression": expression}]


def _json_patch(expression: str) -> list[JSON]:
    return [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]


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
        ("webhooks.0.namespaceSelector", {"matchLabels": {"a b": "c"}}),
        (
            "webhooks.0.matchConditions",
            [{"name": f"a{number}", "expression": "true"} for number in range(65)],
        ),
        ("webhooks.0.rules.0.resources", ["acmemachines/*", "acmemachines/status"]),
        ("webhooks.0.rules.0.resources", [""]),
        ("webhooks.0.rules.0.apiVersions", [""]),
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
        (_RESOURCES, ["*/status", "acmemachines/status"]),
        (f"{_CONSTRAINTS}.excludeResourceRules", [{**_RULE, "apiGroups": ["*", "a"]}]),
        *(
            (_AUDITED, _audit(expression))
            for expression in (
                *("1 + 1", "true", "[1]", "object.", "object.spec.size", "variables.isNamed"),
                *("variables.absent", "dyn('a')", "request.options", "request.userInfo.groups"),
                *("has(object.a) ? object.a : 'b'", "object.?a.orValue('')", "object.list[0]"),
            )
        ),
        (_AUDITED, _audit("'a'", "a/b")),
        (_AUDITED, [*_audit("'a'"), *_audit("'b'")]),
        (_AUDITED, [each for number in range(21) for each in _audit("'a'", f"a{number}")]),
        (_AUDITED, _audit(f"'{'a' * 5120}'")),
        *(
            (f"{_VALIDATION}.messageExpression", expression)
            for expression in (
                *("null", "object.spec.size", "variables.size", "variables.isNamed"),
                "authorizer.group('').resource('pods').check('get').reason()",
            )
        ),
        (f"{_VALIDATION}.message", " "),
        ("spec.variables.0.name", "namespace"),
        ("spec.paramKind", {"apiVersion": "a/b/c", "kind": "A"}),
        ("spec.paramKind", {"apiVersion": "v1/", "kind": "A"}),
    ),
    *_mistakes(
        "ValidatingAdmissionPolicyBinding",
        ("spec.validationActions", []),
        ("spec.validationActions", ["Block"]),
        ("spec.validationActions", ["Deny", "Deny"]),
        ("spec.validationActions", ["Deny", "Warn"]),
        ("spec.policyName", "A_B"),
        ("spec.matchResources", {"resourceRules": [{**_RULE, "resources": ["*", "a"]}]}),
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
        *(
            (_PATCH, expression)
            for expression in (
                *("Object{spec: ", "Object{spec: Object.spec{a: objet.x}}", "Objec{}", "object"),
                *("{'a': 1}", "null", "Object{a: variables.absent}", "Object{a: request.nam}"),
                *("Object.spec{a: 1}", "[Object{}]", "JSONPatch{op: 'add'}"),
                *("Object{a: 1 + 'a'}", "Object{a: Object.a{b: size(1)}}"),
                "Object{a: object.l.map(x, Object.a{b: string(x) + 2})}",
            )
        ),
        *(
            ("spec.mutations", _json_patch(expression))
            for expression in (
                *("[JSONPatch{", "[]", "object.list", "[1]", "[JSONPatch{op: absent}]"),
                *("[JSONPatch{}] + [1]", "[JSONPatch{}] + JSONPatch{}", "[[JSONPatch{}]]"),
                *("[JSONPatch{}][0]", "[JSONPatch{}].size()", "[JSONPatch{}].exists(p, true)"),
                *("has(object.a) ? [JSONPatch{}] : [1]", "[JSONPatch{}].filter(p, p.op == 1)"),
                *("[JSONPatch{}].filter(p, p.x == 'a')", "object.l.map(x, [JSONPatch{}])"),
            )
        ),
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

FAILING = (
    "Object{metadata: Object.meta{name: 'a'}}",
    "Object{metadata: Object.metadata{labels: Object.labels{a: 'b'}}}",
    "Object{data: {'a': Object.a{b: 'c'}}}",
    "has(object.data) ? Object{} : Object{data: Object.metadata{a: 'b'}}",
    "Object{data: ['a'].map(x, Object.x{a: x})}",
)
"""Patches that the API server takes, and that fail for a ConfigMap without data."""

ACCEPTED = (
    *_mistakes(
        "ValidatingAdmissionPolicy",
        *(
            (_AUDITED, _audit(expression))
            for expression in (
                *("'a'", "null", "string(object.spec.size)", "'a' + object.spec.size"),
                *("request.name", "namespaceObject.metadata.name", "['a'].map(x, x)[0]"),
                *("has(object.a) ? 'a' : 'b'", "request.userInfo.extra['a'][0]"),
                "authorizer.group('').resource('pods').check('get').reason()",
            )
        ),
        (f"{_VALIDATION}.message", "a\n"),
        (f"{_VALIDATION}.messageExpression", "'authorizer' + request.name"),
        (_RESOURCES, ["*", "*/status"]),
        (_RESOURCES, ["acmemachines/*", "acmemachines", "*/scale"]),
        ("spec.paramKind", {"apiVersion": "example.com/v1", "kind": "A"}),
    ),
    *_mistakes("ValidatingAdmissionPolicyBinding", ("spec.validationActions", ["Warn", "Audit"])),
    *_mistakes(
        "MutatingAdmissionPolicy",
        (_PATCH, "has(object.a) ? Object{} : null"),
        (_PATCH, "Object{spec: Object.spec{list: object.l.map(x, Object.spec.list{a: x.a + 1})}}"),
        ("spec.mutations", _json_patch("[JSONPatch{op: 'add', path: '/a', value: Object{}}]")),
        (
            "spec.mutations",
            _json_patch("[JSONPatch{op: 'remove', path: '/' + jsonpatch.escapeKey('a/b')}]"),
        ),
        ("spec.mutations", _json_patch("has(object.a) ? [JSONPatch{path: '/a'}] : []")),
        ("spec.mutations", _json_patch("[JSONPatch{}] + object.l.map(x, JSONPatch{op: x})")),
        ("spec.mutations", _json_patch("[JSONPatch{value: Object.a{b: Object.a.b{}}}]")),
        ("spec.mutations", _json_patch("[JSONPatch{op: 'add'}].filter(p, p.op == 'add')")),
        ("spec.mutations", _json_patch("[?optional.of(JSONPatch{op: 'add', path: '/a'})]")),
        *(
            (_PATCH, expression)
            for expression in (
                "Object{spec: Object.spec{map: {'a': Object.spec.map{b: 1}}}}",
                "Object{spec: has(object.a) ? Object.spec{a: 1} : Object.spec{b: '}'}}",
                "Object{spec: Object . spec { ?a: optional.of(1) } } // {",
                "has(object.a) ? Object{} : Object{spec: {'a': 1}}",
                "object.a != 'b' && object.c >= 1 || object.d == 'e' ? Object{} : Object{a: 1}",
            )
        ),
    ),
)
"""Changes of objects that the API server takes."""
