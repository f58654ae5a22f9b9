"""Kinds that implement Resource: scope, move labels, permissions and slices of the runtime."""

from __future__ import annotations

import pytest

from capsmith.commands.build import load_runtime_library
from capsmith.output.crd import build_crd
from capsmith.output.rbac import Permission, list_editor_permissions, list_manager_permissions
from capsmith.output.runtime import select_runtime
from capsmith.provider.model import Component, Provider, Role
from capsmith.provider_yaml.parse import parse
from capsmith.resolving.resolve import resolve
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
    return resolved(SPEC)


def resolved(text: str) -> Provider:
    parsed = parse(text, "provider.yaml")
    assert parsed.spec is not None
    assert parsed.document is not None
    found = resolve(parsed.spec, parsed.document, CONTRACTS).provider
    assert found is not None
    return found


def manager(provider: Provider) -> tuple[Permission, ...]:
    (component,) = provider.components
    return list_manager_permissions(provider, component, load_runtime_library().permissions)


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
        crd = build_crd(resource, component)
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
    (version,) = build_crd(network, component)["spec"]["versions"]
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
    first, *_ = list_editor_permissions(component_of(made))
    assert {"acmeimages", "acmenetworks"} <= set(first.resources)


def test_a_provider_without_them_has_neither_permissions_nor_the_slice(made: Provider) -> None:
    library = load_runtime_library()
    assert select_runtime(made, library).slices == ("identity", "infrastructure", "resource")
    other = plain_provider()
    assert select_runtime(other, library).slices == ("identity", "infrastructure")
    assert not any("finalizers" in name for each in manager(other) for name in each.resources)


SECTIONS = """
capsmith: 1
name: keel
repository: https://github.com/keel/cluster-api-provider-keel
contracts: [v1beta2]
releases: {v0.1: v1beta2}
bootstrap:
  KeelConfig: {implements: BootstrapConfig}
  KeelImage: {implements: Resource}
controlPlane:
  KeelControlPlane: {implements: ControlPlane}
  KeelCertificate: {implements: Resource, scope: Cluster}
ipam:
  KeelPool: {implements: IPPool}
  KeelRange: {implements: Resource, group: net.keel.io, plural: keelrangez}
addon:
  KeelRelease: {implements: Resource}
"""


def test_each_section_may_have_them() -> None:
    """A section may have no other kind, and control planes do not take them for configurations."""
    made = resolved(SECTIONS)
    found = {
        component.type: [str(each.crd_name) for each in component.role(Role.RESOURCE)]
        for component in made.components
    }
    assert found == {
        "bootstrap": ["keelimages.bootstrap.cluster.x-k8s.io"],
        "control-plane": ["keelcertificates.controlplane.cluster.x-k8s.io"],
        "ipam": ["keelrangez.net.keel.io"],
        "addon": ["keelreleases.addons.cluster.x-k8s.io"],
    }
    (control_plane,) = (each for each in made.resources if each.kind == "KeelControlPlane")
    assert control_plane.bootstrap is not None
    assert control_plane.bootstrap.kind == "KeelConfig"
    assert "resource" in select_runtime(made, load_runtime_library()).slices


@pytest.mark.parametrize("type_", ["bootstrap", "control-plane", "ipam", "addon"])
def test_a_manager_without_infrastructure_follows_their_clusters(type_: str) -> None:
    """Proves: RB-07."""
    made = resolved(SECTIONS)
    component = made.component(type_)
    assert component is not None
    granted = {
        (resource, verb)
        for each in list_manager_permissions(made, component, load_runtime_library().permissions)
        if "cluster.x-k8s.io" in each.groups
        for resource in each.resources
        for verb in each.verbs
    }
    for name in ("clusters", "machines"):
        assert {(name, "list"), (name, "watch")} <= granted


def test_only_the_manager_of_the_infrastructure_has_identities() -> None:
    """The others cannot read them, so their kinds refer to none."""
    apart = f"{SPEC}bootstrap:\n  AcmeFile: {{implements: Resource}}\ncredentials: AcmeIdentity\n"
    together = f"{apart}components: {{infrastructure: [infrastructure, bootstrap]}}\n"
    for text, has_identity in ((apart, False), (together, True)):
        kinds = {str(each.kind): each for each in resolved(text).resources}
        assert "credentials" in kinds["AcmeNetwork"].features
        assert ("credentials" in kinds["AcmeFile"].features) is has_identity


def test_a_finalizer_over_63_characters_has_its_group_before_a_slash() -> None:
    """Proves: IC-21."""
    kind = "AcmeBareMetalRemediationStrategyTemplate"
    text = SPEC + f"  {kind}: {{implements: Resource}}\n"
    finalizers = {str(each.kind): str(each.finalizer) for each in resolved(text).resources}
    group = "infrastructure.cluster.x-k8s.io"
    assert finalizers[kind] == f"{group}/{kind.lower()}"
    assert finalizers["AcmeNetwork"] == f"acmenetwork.{group}"


def test_pools_may_be_called_as_their_role() -> None:
    made = resolved(SPEC + "ipam:\n  IPPool: {implements: IPPool}\n")
    assert "IPPool" in {str(each.kind) for each in made.resources}
