"""Kinds that implement Resource: scope, move labels, permissions and slices of the runtime."""

from __future__ import annotations

import pytest

from capsmith.commands.library import runtime_library
from capsmith.provider.crd import custom_resource_definition
from capsmith.provider.model import Component, Provider, Role
from capsmith.provider.rbac import Permission, editor_permissions, manager_permissions
from capsmith.provider.resolve import resolve
from capsmith.provider.runtime import runtime_of
from capsmith.provider_yaml.parse import parse
from tests.invalid.cases import CONTRACTS
from tests.unit.provider.build import provider as plain_provider

SPEC = """
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeImage: {implements: Resource, scope: Cluster}
  AcmeNetwork:
    implements: Resource
    shortNames: [acmenet]
    spec: {cidr: string!}
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine: {implements: InfraMachine}
"""


@pytest.fixture
def made() -> Provider:
    parsed = parse(SPEC, "provider.yaml")
    assert parsed.spec is not None
    assert parsed.document is not None
    found = resolve(parsed.spec, parsed.document, CONTRACTS).provider
    assert found is not None
    return found


def manager(provider: Provider) -> tuple[Permission, ...]:
    (component,) = provider.components
    return manager_permissions(provider, component, runtime_library().permissions)


def component_of(provider: Provider) -> Component:
    (component,) = provider.components
    return component


def test_scope_and_move_label_go_together(made: Provider) -> None:
    """What a cluster-scoped object owns must not stay at the source of a move.

    Proves: MV-02.
    """
    component = component_of(made)
    found = {}
    for resource in component.role(Role.RESOURCE):
        crd = custom_resource_definition(resource, component)
        prefix = "clusterctl.cluster.x-k8s.io/"
        labels = [key for key in crd["metadata"]["labels"] if key.startswith(prefix)]
        found[resource.kind] = (crd["spec"]["scope"], [key.removeprefix(prefix) for key in labels])
    assert found == {
        "AcmeImage": ("Cluster", ["move"]),
        "AcmeNetwork": ("Namespaced", ["move-hierarchy"]),
    }


def test_they_have_a_status_and_no_template(made: Provider) -> None:
    component = component_of(made)
    assert "AcmeNetworkTemplate" not in {resource.kind for resource in component.resources}
    (network,) = (each for each in component.resources if each.kind == "AcmeNetwork")
    (version,) = custom_resource_definition(network, component)["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    assert set(schema["spec"]["properties"]) == {"cidr"}, "without credentials no identityRef"
    assert set(schema["status"]["properties"]) == {"conditions"}
    names = [column["name"] for column in version["additionalPrinterColumns"]]
    assert names == ["Cluster", "Ready", "Reason", "Paused", "Age"]


def test_the_manager_may_create_them_and_own_them(made: Provider) -> None:
    """Proves: RB-04, RB-06."""
    granted = {
        (resource, verb)
        for each in manager(made)
        for resource in each.resources
        for verb in each.verbs
    }
    for verb in ("create", "delete", "get", "list", "patch", "watch"):
        assert {("acmeimages", verb), ("acmenetworks", verb)} <= granted
    for kind in ("acmeclusters", "acmemachines", "acmenetworks", "acmeimages"):
        assert (f"{kind}/finalizers", "update") in granted
    assert ("acmeclusters", "create") not in granted


def test_users_may_edit_them(made: Provider) -> None:
    first, *_ = editor_permissions(component_of(made))
    assert {"acmeimages", "acmenetworks"} <= set(first.resources)


def test_a_provider_without_them_has_neither_permissions_nor_the_slice(made: Provider) -> None:
    library = runtime_library()
    assert runtime_of(made, library).slices == ("infrastructure", "resource")
    other = plain_provider()
    assert runtime_of(other, library).slices == ("infrastructure",)
    assert not any("finalizers" in name for each in manager(other) for name in each.resources)
