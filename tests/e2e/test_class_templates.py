"""Core's webhook and verify refuse the same patches of a ClusterClass."""

from __future__ import annotations

import pytest

from capsmith import resources
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.contract.load import load_rules
from capsmith.judge.checks.cluster_classes import find_refused_operations
from capsmith.manifests.go_template import TemplateError, parse_template
from capsmith.manifests.parse import Manifest
from tests.class_operations import REFUSED as REFUSED_OPERATIONS
from tests.class_operations import TAKEN as TAKEN_OPERATIONS
from tests.class_templates import REFUSED, TAKEN
from tests.e2e.stack import Site, Stack

_KIND = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AcmeClusterTemplate"}
_RULE = load_rules(resources.schemas())["TP-24"]
assert _RULE.check is not None
_BUILTINS = {f"builtin.{each}" for each in _RULE.check.params["builtins"]}
_CONTROL_PLANE = {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "AcmeTemplate"}


@pytest.mark.parametrize("text", [*TAKEN, *REFUSED])
def test_template_is_judged_as_by_core(stack: Stack, site: Site, text: str) -> None:
    """Proves: TP-23."""
    client = site.management.client
    version = client.preferred_version("cluster.x-k8s.io")
    path = f"/apis/{version}/namespaces/default/clusterclasses"
    in_value, in_condition = _patch({"template": text}), _patch({"variable": "region"})
    for patch in (in_value, {**in_condition, "enabledIf": text}):
        refusal = _refusal(client, path, _class(version, patch))
        assert ("template can not be parsed" in refusal) is _is_refused(text)
        assert bool(refusal) is _is_refused(text)


@pytest.mark.parametrize("operation", [*TAKEN_OPERATIONS, *REFUSED_OPERATIONS], ids=str)
def test_operation_is_judged_as_by_core(stack: Stack, site: Site, operation: JSON) -> None:
    """Proves: TP-24."""
    client = site.management.client
    version = client.preferred_version("cluster.x-k8s.io")
    path = f"/apis/{version}/namespaces/default/clusterclasses"
    body = _class(version, _in_patch(operation))
    refusal = _refusal(client, path, body)
    assert bool(refusal) is (operation in REFUSED_OPERATIONS), refusal
    assert bool(list(find_refused_operations(Manifest("class.yaml", 1, body), _BUILTINS))) is bool(
        refusal
    ), refusal


def _refusal(client: KubeClient, path: str, body: JSON) -> str:
    """Return why core refuses a ClusterClass; empty if it does not."""
    try:
        client.request("POST", path, body=body, query={"dryRun": "All"})
    except ApiError as error:
        return error.message
    return ""


def _is_refused(text: str) -> bool:
    try:
        parse_template(text)
    except TemplateError:
        return True
    return False


def _class(version: str, patch: JSON) -> JSON:
    key = "ref" if version.endswith("v1beta1") else "templateRef"
    schema = {"openAPIV3Schema": {"type": "string"}}
    return {
        "apiVersion": version,
        "kind": "ClusterClass",
        "metadata": {"name": "templates", "namespace": "default"},
        "spec": {
            "infrastructure": {key: {**_KIND, "name": "acme"}},
            "controlPlane": {key: {**_CONTROL_PLANE, "name": "acme"}},
            "variables": [{"name": "region", "required": True, "schema": schema}],
            "patches": [patch],
        },
    }


def _patch(value: JSON) -> JSON:
    return _in_patch({"op": "add", "path": "/spec/template/spec/region", "valueFrom": value})


def _in_patch(operation: JSON) -> JSON:
    selector = {**_KIND, "matchResources": {"infrastructureCluster": True}}
    return {
        "name": "patch",
        "definitions": [{"selector": selector, "jsonPatches": [operation]}],
    }
