"""The requests that the declared permissions allow."""

from __future__ import annotations

import pytest

from capsmith_runtime.errors import InvalidRequestError, NotDeclaredError
from capsmith_runtime.kube.client import NamespacedName, ResourceType
from capsmith_runtime.reconcile.permissions import Permissions, PolicyRule, create_key

CONFIG_MAPS = PolicyRule(("",), ("configmaps",), ("get", "create"))
ANY = PolicyRule(("*",), ("*",), ("*",))


@pytest.mark.parametrize(
    ("api_version", "kind", "plural"),
    [
        ("v1", "ConfigMap", "configmaps"),
        ("v1", "Endpoints", "endpoints"),
        ("networking.k8s.io/v1", "Ingress", "ingresses"),
        ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
        ("gateway.networking.k8s.io/v1", "Gateway", "gateways"),
        ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "network-attachment-definitions"),
    ],
)
def test_a_kind_is_found_among_the_declared_resources(
    api_version: str, kind: str, plural: str
) -> None:
    group = api_version.rpartition("/")[0]
    permissions = Permissions([ANY, PolicyRule((group,), ("pods", plural), ("get",))])

    assert permissions.resource(api_version, kind).plural == plural


def test_a_known_kind_has_its_plural_and_scope() -> None:
    known = ResourceType("acme.io", "v1", "Medium", "media", namespaced=False)

    assert Permissions(kinds=[known]).resource("acme.io/v1", "Medium") == known


def test_a_kind_that_no_rule_names_has_the_usual_plural() -> None:
    assert Permissions().resource("acme.io/v1", "Proxy").plural == "proxies"


@pytest.mark.parametrize(
    ("rules", "verb", "name"),
    [
        ([], "get", "a"),
        ([CONFIG_MAPS], "delete", "a"),
        ([PolicyRule(("apps",), ("configmaps",), ("get",))], "get", "a"),
        ([PolicyRule(("",), ("secrets",), ("get",))], "get", "a"),
        ([PolicyRule(("",), ("configmaps/status",), ("get",))], "get", "a"),
        ([PolicyRule(("",), ("configmaps",), ("get",), ("b",))], "get", "a"),
        ([PolicyRule(("",), ("configmaps",), ("list",), ("a",))], "list", ""),
        ([PolicyRule(("",), ("configmaps",), ("create",), ("a",))], "create", "a"),
    ],
)
def test_what_no_rule_allows_is_refused(rules: list[PolicyRule], verb: str, name: str) -> None:
    permissions = Permissions(rules)
    resource = permissions.resource("v1", "ConfigMap")

    with pytest.raises(NotDeclaredError) as caught:
        permissions.check(resource, name, verb)

    assert caught.value.reason == "PermissionNotDeclared"
    rule = f'{{apiGroups: [""], resources: [configmaps], verbs: [{verb}]}}'
    assert f"add {rule} to rbac" in caught.value.message


@pytest.mark.parametrize(
    "rule",
    [
        ANY,
        PolicyRule(("",), ("configmaps",), ("get",)),
        PolicyRule(("",), ("configmaps",), ("get",), ("a", "b")),
    ],
)
def test_what_a_rule_allows_passes(rule: PolicyRule) -> None:
    permissions = Permissions([rule])

    permissions.check(permissions.resource("v1", "ConfigMap"), "a", "get")


def test_each_verb_of_a_request_is_needed() -> None:
    permissions = Permissions([CONFIG_MAPS])

    with pytest.raises(NotDeclaredError, match="declare patch configmaps"):
        permissions.check(permissions.resource("v1", "ConfigMap"), "a", "patch", "create")


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("", "Pod"), ("v1/", "Pod"), ("../v1", "Pod"), ("a/b/v1", "Pod"), ("v1", "pods"), ("v1", "")],
)
def test_texts_that_are_no_kind_are_refused(api_version: str, kind: str) -> None:
    with pytest.raises(InvalidRequestError):
        Permissions([ANY]).resource(api_version, kind)


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("a", "../../secrets/b"),
        ("a/../b", "c"),
        ("a", ".."),
        ("a", "b?c"),
        ("a", "b%2fc"),
        ("a", "b\n"),
    ],
)
def test_a_name_cannot_lead_to_another_path(namespace: str, name: str) -> None:
    with pytest.raises(InvalidRequestError):
        create_key(Permissions([ANY]).resource("v1", "Secret"), namespace, name)


def test_a_kind_without_namespace_has_a_key_without_it() -> None:
    nodes = ResourceType("", "v1", "Node", "nodes", namespaced=False)

    assert create_key(nodes, "default", "n:1") == NamespacedName("", "n:1")
