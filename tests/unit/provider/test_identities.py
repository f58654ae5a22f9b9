"""Kinds of identities: cluster-scoped or namespaced, with or without a Secret, own fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from capsmith.output.crd import build_crd
from capsmith.output.explain import explain_resolution
from capsmith.output.python_types import generate_module
from capsmith.output.samples import name_credentials, sample_spec
from capsmith.provider.model import Provider, Resource
from tests.unit.provider.permissions import manager_permissions, namespace_permissions
from tests.unit.provider.test_ipam import provider

TEXT = """
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine: {implements: InfraMachine}
credentials:
"""
SHARED = "- AcmeIdentity\n"
TENANT = (
    "- {kind: AcmeTenant, namespaced: true, keys: [user, password], spec: {project: string!}}\n"
)
ROLE = "- {kind: AcmeRole, secret: false, spec: {role: string!}}\n"
ASSUMED = "- {kind: AcmeAssumed, secret: false, sources: [AcmeAssumed, AcmeIdentity]}\n"


def described(*identities: str) -> Provider:
    return provider(TEXT + "".join(identities))


def resource(made: Provider, kind: str) -> Resource:
    return next(each for each in made.resources if each.kind == kind)


def spec_of(made: Provider, kind: str) -> Mapping[str, Any]:
    crd = build_crd(resource(made, kind), made.components[0])
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    found: Mapping[str, Any] = schema["properties"]["spec"]
    return found


@pytest.mark.parametrize(
    ("kind", "scope", "fields", "required"),
    [
        ("AcmeIdentity", "Cluster", {"secretRef", "allowedNamespaces"}, ["secretRef"]),
        ("AcmeTenant", "Namespaced", {"secretRef", "project"}, ["project", "secretRef"]),
        ("AcmeRole", "Cluster", {"allowedNamespaces", "role"}, ["role"]),
        ("AcmeAssumed", "Cluster", {"allowedNamespaces", "sourceIdentityRef"}, []),
    ],
)
def test_fields_follow_from_scope_and_secret(
    kind: str, scope: str, fields: set[str], required: list[str]
) -> None:
    """Proves: MV-02."""
    made = described(SHARED, TENANT, ROLE, ASSUMED)
    crd = build_crd(resource(made, kind), made.components[0])

    assert crd["spec"]["scope"] == scope
    assert "clusterctl.cluster.x-k8s.io/move-hierarchy" in crd["metadata"]["labels"]
    assert set(spec_of(made, kind)["properties"]) == fields
    assert sorted(spec_of(made, kind).get("required", ())) == required


def test_one_kind_alone_is_as_before() -> None:
    alone = provider(TEXT.replace("credentials:", "credentials: AcmeIdentity"))

    assert alone == described(SHARED)


def test_samples_have_secrets_of_their_own() -> None:
    made = described(SHARED, TENANT, ROLE)
    names = [
        name_credentials(resource(made, kind), made) for kind in ("AcmeIdentity", "AcmeTenant")
    ]

    assert names == ["acme-credentials", "acmetenant-credentials"]
    assert sample_spec(resource(made, "AcmeRole"), made) == {
        "allowedNamespaces": {"list": ["default"]},
        "role": "example",
    }
    reference = sample_spec(resource(made, "AcmeCluster"), made)["identityRef"]
    assert reference == {"kind": "AcmeIdentity", "name": "acme"}


def test_samples_refer_to_a_source_of_another_kind() -> None:
    made = described(SHARED, ASSUMED)
    alone = described("- {kind: AcmeAssumed, secret: false, sources: [AcmeAssumed]}\n")

    assert sample_spec(resource(made, "AcmeAssumed"), made) == {
        "allowedNamespaces": {"list": ["default"]},
        "sourceIdentityRef": {"kind": "AcmeIdentity", "name": "acme"},
    }
    assert "sourceIdentityRef" not in sample_spec(resource(alone, "AcmeAssumed"), alone)


def test_own_fields_have_a_python_type() -> None:
    (spec,) = generate_module(resource(described(TENANT), "AcmeTenant")).classes

    assert (spec.name, [field.attribute for field in spec.fields]) == (
        "AcmeTenantSpec",
        ["project"],
    )


@pytest.mark.parametrize(
    ("identities", "everywhere", "in_own_namespace", "namespaces"),
    [
        ((SHARED,), {"get"}, True, True),
        ((TENANT,), {"get", "list", "patch", "watch"}, False, False),
        ((ROLE,), {"get"}, False, True),
        ((SHARED, TENANT), {"get", "list", "patch", "watch"}, True, True),
    ],
)
def test_secrets_are_read_where_they_are(
    identities: tuple[str, ...], everywhere: set[str], in_own_namespace: bool, namespaces: bool
) -> None:
    made = described(*identities)
    own = namespace_permissions(made, made.components[0])
    found = manager_permissions(made, made.components[0])

    verbs = {verb for each in found if "secrets" in each.resources for verb in each.verbs}
    assert verbs == everywhere
    assert any("secrets" in each.resources for each in own) is in_own_namespace
    assert any("namespaces" in each.resources for each in found) is namespaces


def test_the_explanation_lists_all_kinds() -> None:
    found = explain_resolution(described(SHARED, ROLE, ASSUMED))["credentials"]

    assert found == [
        {"kind": "AcmeIdentity", "keys": ["token"], "secret": True},
        {"kind": "AcmeRole", "keys": [], "secret": False},
        {
            "kind": "AcmeAssumed",
            "keys": [],
            "secret": False,
            "sources": ["AcmeAssumed", "AcmeIdentity"],
        },
    ]
