"""Control planes of Machines: the bootstrap configuration inside their spec, and their samples."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from capsmith.commands.build import build
from capsmith.output.crd import build_crd
from capsmith.output.rbac import list_kubeadm_bootstrap_permissions
from capsmith.output.samples import sample_spec
from capsmith.provider.model import Provider, Resource, Role
from capsmith.provider_yaml.parse import parse
from capsmith.resolving.resolve import resolve
from tests.invalid.cases import CONTRACTS as KNOWN
from tests.unit.provider.permissions import manager_permissions

HEAD = """
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [CONTRACT]
releases: {v0.1: CONTRACT}
"""
BOOTSTRAP = """
bootstrap:
  AcmeConfig:
    implements: BootstrapConfig
    spec:
      image: {type: string, required: true, immutable: true}
      packages: {type: array, items: {type: string}}
    validations: [{rule: "size(self.image) > 3", message: too short}]
"""
CONTROL_PLANE = """
controlPlane:
  AcmeControlPlane:
    implements: ControlPlane
"""
FOREIGN = CONTROL_PLANE + "    bootstrap: {group: bootstrap.example.com, kind: OtherConfig}\n"
CONTRACTS = pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])


def _provider(text: str, contract: str = "v1beta2") -> Provider:
    parsed = parse((HEAD + text).replace("CONTRACT", contract), "provider.yaml")
    assert parsed.spec is not None, parsed.findings
    assert parsed.document is not None
    resolved = resolve(parsed.spec, parsed.document, KNOWN)
    assert resolved.provider is not None, resolved.findings
    return resolved.provider


def _kind(provider: Provider, role: Role = Role.CONTROL_PLANE) -> Resource:
    (found,) = (each for each in provider.resources if each.role is role)
    return found


def _spec(provider: Provider, role: Role = Role.CONTROL_PLANE) -> dict[str, Any]:
    component = provider.component("control-plane")
    assert component is not None
    crd = build_crd(_kind(provider, role), component)
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    if role is Role.CONTROL_PLANE_TEMPLATE:
        spec = spec["properties"]["template"]["properties"]["spec"]
    found: dict[str, Any] = spec
    return found


@CONTRACTS
def test_the_repository_s_own_configuration_is_embedded(contract: str) -> None:
    provider = _provider(BOOTSTRAP + CONTROL_PLANE, contract)

    for role in (Role.CONTROL_PLANE, Role.CONTROL_PLANE_TEMPLATE):
        spec = _spec(provider, role)
        embedded = spec["properties"]["bootstrapConfigSpec"]
        assert set(embedded["properties"]) == {"image", "packages"}
        assert embedded["required"] == ["image"]
        assert "bootstrapConfigSpec" in spec["required"]
        rules = embedded["x-kubernetes-validations"]
        assert [each["rule"] for each in rules] == ["size(self.image) > 3"]
        # A change is a rollout, so what cannot change in a configuration can change here.
        assert "x-kubernetes-validations" not in embedded["properties"]["image"]
    bootstrap = _kind(provider).bootstrap
    assert bootstrap is not None
    assert (bootstrap.group, bootstrap.kind) == ("bootstrap.cluster.x-k8s.io", "AcmeConfig")


def test_a_foreign_configuration_may_be_anything() -> None:
    provider = _provider(FOREIGN)

    embedded = _spec(provider)["properties"]["bootstrapConfigSpec"]

    assert embedded["x-kubernetes-preserve-unknown-fields"] is True
    assert "bootstrapConfigSpec" not in _spec(provider)["required"]


def test_permissions_reach_the_group_of_a_foreign_configuration() -> None:
    """Proves: RB-07, RB-08."""
    provider = _provider(FOREIGN)
    component = provider.component("control-plane")
    assert component is not None

    found = manager_permissions(provider, component)

    assert any("bootstrap.example.com" in each.groups and "*" in each.resources for each in found)
    assert any("customresourcedefinitions" in each.resources for each in found)


def test_a_managed_control_plane_has_no_configurations() -> None:
    managed = CONTROL_PLANE + "    features: {externalManagedControlPlane: true}\n"
    provider = _provider(BOOTSTRAP + managed)
    component = provider.component("control-plane")
    assert component is not None

    assert _kind(provider).bootstrap is None
    assert "bootstrapConfigSpec" not in _spec(provider)["properties"]
    reached = {name for each in manager_permissions(provider, component) for name in each.resources}
    assert "customresourcedefinitions" not in reached
    assert "machines/status" not in reached


@CONTRACTS
@pytest.mark.parametrize("features", ["", "    features: {externalManagedControlPlane: true}\n"])
def test_kubeadm_s_bootstrap_manager_reads_control_planes(contract: str, features: str) -> None:
    """Proves: RB-11."""
    provider = _provider(BOOTSTRAP + CONTROL_PLANE + features, contract)
    found = {
        str(each.type): list_kubeadm_bootstrap_permissions(each) for each in provider.components
    }

    assert found["bootstrap"] == ()
    (permission,) = found["control-plane"]
    assert permission.groups == ("controlplane.cluster.x-k8s.io",)
    assert permission.resources == ("acmecontrolplanes",)
    assert permission.verbs == ("get",)


@CONTRACTS
def test_topology_fills_in_what_templates_leave_out(contract: str) -> None:
    """Proves: CP-28."""
    provider = _provider(BOOTSTRAP + CONTROL_PLANE, contract)

    found = yaml.safe_dump(_spec(provider, Role.CONTROL_PLANE_TEMPLATE))

    for name in ("infrastructureRef", "replicas", "version", "after"):
        assert f"{name}:" not in found
    for name in ("metadata", "readinessGates", "certificatesExpiryDays", "maxRetry"):
        assert f"{name}:" in found


@CONTRACTS
def test_a_rollout_without_surge_needs_three_replicas(contract: str) -> None:
    provider = _provider(BOOTSTRAP + CONTROL_PLANE, contract)

    (rule,) = _spec(provider)["x-kubernetes-validations"]
    assert rule["message"] == "maxSurge 0 needs 3 replicas or more"
    template = _spec(provider, Role.CONTROL_PLANE_TEMPLATE)
    # Topology sets the replicas: a template cannot be compared with them.
    assert "x-kubernetes-validations" not in template
    assert "strategy" in template["properties"]["rollout"]["properties"]
    assert "machineNaming" in template["properties"]


def test_a_control_plane_without_replicas_has_no_rule_about_them() -> None:
    features = "    features: {externalManagedControlPlane: true, rolloutAfter: true}\n"

    spec = _spec(_provider(CONTROL_PLANE + features))
    assert "rollout" in spec["properties"]
    assert "x-kubernetes-validations" not in spec


@CONTRACTS
def test_samples_name_a_template(contract: str) -> None:
    """Proves: CP-12, CP-13."""
    infrastructure = """
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine: {implements: InfraMachine}
"""
    own = _provider(infrastructure + BOOTSTRAP + CONTROL_PLANE, contract)
    alone = _provider(BOOTSTRAP + CONTROL_PLANE, contract)

    for provider, kind in ((own, "AcmeMachineTemplate"), (alone, "ExampleMachineTemplate")):
        spec = sample_spec(_kind(provider), provider)
        template = spec["machineTemplate"]
        reference = template.get("spec", template)["infrastructureRef"]
        assert reference["kind"] == kind
        assert ("namespace" in reference) == (contract == "v1beta1")
        assert spec["version"].startswith("v")
        assert "image" in spec["bootstrapConfigSpec"]


def test_the_ids_of_managed_control_planes_are_protected_without_infrastructure() -> None:
    """Neither an infrastructure nor the feature credentials is required for that."""
    managed = CONTROL_PLANE + "    features: {externalManagedControlPlane: true}\n"
    tree = build(_provider(managed))

    policy, _ = yaml.safe_load_all(tree["control-plane/config/admission/ids.yaml"].text)
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert rule["apiGroups"] == ["controlplane.cluster.x-k8s.io"]
    assert rule["resources"] == ["acmecontrolplanes"]
    listed = yaml.safe_load(tree["control-plane/config/admission/kustomization.yaml"].text)[
        "resources"
    ]
    assert "ids.yaml" in listed
    assert (
        "../admission"
        in yaml.safe_load(tree["control-plane/config/default/kustomization.yaml"].text)["resources"]
    )
