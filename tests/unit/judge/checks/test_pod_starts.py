"""Pods that never run because of their number, nodes, memory, or a webhook that they serve."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from capsmith.judge.checks.evaluate import evaluate_manifests
from capsmith.manifests.parse import parse_manifests
from tests.rules.cases import contract

_LABELS = {"app": "acme"}
_PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def find(pod: dict[str, Any] | None = None, spec: Any = None, webhook: Any = None) -> set[str]:
    """Return what CC-39 says of a release with a Deployment and a webhook."""
    metadata = {"name": "acme", "namespace": "acme-system"}
    named = {"spec": {"containers": [{"name": "manager"}], **(pod or {})}}
    template = {"metadata": {"labels": _LABELS}, **named}
    hook = {"name": "a.b.c", "clientConfig": {"service": metadata}, "rules": [_PODS]}
    documents: list[dict[str, Any]] = [
        {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "acme-system"}},
        {
            "kind": "Service",
            "apiVersion": "v1",
            "metadata": metadata,
            "spec": {"selector": _LABELS},
        },
        {
            **{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata},
            "spec": {"selector": {"matchLabels": _LABELS}, "template": template, **(spec or {})},
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            **{"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "acme"}},
            "webhooks": [] if webhook is None else [{**hook, **webhook}],
        },
    ]
    manifests, _ = parse_manifests(yaml.safe_dump_all(documents), "infrastructure-components.yaml")
    found = evaluate_manifests(manifests, contract("v1beta2"))
    return {each.message for each in found if each.id == "CC-39"}


def limit(memory: object) -> dict[str, Any]:
    return {"containers": [{"name": "manager", "resources": {"limits": {"memory": memory}}}]}


@pytest.mark.parametrize(
    "pod",
    [
        {},
        limit("128Mi"),
        limit("1Mi"),
        limit(0),
        limit("a lot"),
        {"nodeSelector": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}},
        {"nodeSelector": {"kubernetes.io/os": "${SYSTEM}", "acme.example.com/os": "Linux"}},
    ],
    ids=str,
)
def test_pods_that_can_run(pod: dict[str, Any]) -> None:
    assert find(pod) == set()


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (limit("128m"), "container manager may use 128m of memory, less than 1Mi"),
        (limit(512), "container manager may use 512 of memory, less than 1Mi"),
        ({"nodeSelector": {"kubernetes.io/os": "Linux"}}, "kubernetes.io/os: Linux"),
        ({"nodeSelector": {"kubernetes.io/arch": "x86_64"}}, "kubernetes.io/arch: x86_64"),
        ({"nodeSelector": {"node-role.kubernetes.io/master": ""}}, "kubernetes.io/master"),
    ],
    ids=str,
)
def test_pods_that_never_run(pod: dict[str, Any], message: str) -> None:
    (found,) = find(pod)
    assert found.endswith(message)


@pytest.mark.parametrize(("replicas", "count"), [(0, 1), (1, 0), ("${REPLICAS}", 0)])
def test_a_deployment_without_replicas(replicas: object, count: int) -> None:
    assert len(find(spec={"replicas": replicas})) == count


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"failurePolicy": "Fail", "rules": [{**_PODS, "operations": ["*"]}]},
        {"rules": [{**_PODS, "apiGroups": ["*"], "resources": ["*"], "scope": "*"}]},
        {"rules": [{**_PODS, "resources": ["pods/*"]}], "namespaceSelector": {}},
    ],
    ids=str,
)
def test_a_webhook_for_the_pods_that_serve_it(rule: dict[str, Any]) -> None:
    (found,) = find(webhook=rule)
    assert found.endswith("webhook a.b.c is called for the Pods that serve it")


@pytest.mark.parametrize(
    "rule",
    [
        {"failurePolicy": "Ignore"},
        {"clientConfig": {"url": "https://acme.example.com"}},
        {"clientConfig": {"service": {"name": "other", "namespace": "acme-system"}}},
        {"namespaceSelector": {"matchLabels": {"a": "b"}}},
        {"objectSelector": {"matchLabels": {"a": "b"}}},
        {"matchConditions": [{"name": "a", "expression": "false"}]},
        {"rules": [{**_PODS, "apiGroups": ["apps"]}]},
        {"rules": [{**_PODS, "apiVersions": ["v1beta1"]}]},
        {"rules": [{**_PODS, "resources": ["pods/eviction", "configmaps"]}]},
        {"rules": [{**_PODS, "operations": ["DELETE"]}]},
        {"rules": [{**_PODS, "scope": "Cluster"}]},
    ],
    ids=str,
)
def test_a_webhook_that_lets_the_pods_start(rule: dict[str, Any]) -> None:
    assert find(webhook=rule) == set()
