"""Roles as they are guessed, on kinds that exist."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from capsmith.manifests.crds import guess_role, read_crds
from capsmith.manifests.parse import Manifest

CAPI = "cluster.x-k8s.io"


@pytest.mark.parametrize(
    ("group", "kind", "role"),
    [
        ("infrastructure", "AcmeCluster", "InfraCluster"),
        ("infrastructure", "AcmeClusterTemplate", "InfraClusterTemplate"),
        ("infrastructure", "AcmeMachine", "InfraMachine"),
        ("infrastructure", "AzureMachinePoolMachine", "InfraMachine"),
        ("infrastructure", "AWSManagedMachinePool", "InfraMachinePool"),
        ("infrastructure", "AcmeMachinePoolTemplate", "InfraMachinePoolTemplate"),
        ("infrastructure", "AzureManagedControlPlane", "ControlPlane"),
        ("infrastructure", "OpenStackFloatingIPPool", "IPPool"),
        ("infrastructure", "OpenStackServer", ""),
        ("infrastructure", "ROSARoleConfig", ""),
        ("infrastructure", "AcmeNodePool", ""),
        ("infrastructure", "Metal3DataTemplate", ""),
        ("infrastructure", "Metal3Remediation", "Remediation"),
        ("infrastructure", "Metal3RemediationTemplate", "RemediationTemplate"),
        ("infrastructure", "AWSClusterRoleIdentity", "Identity"),
        ("bootstrap", "KubeadmConfig", "BootstrapConfig"),
        ("bootstrap", "KubeadmConfigTemplate", "BootstrapConfigTemplate"),
        ("bootstrap", "AcmeCluster", ""),
        ("controlplane", "KubeadmControlPlane", "ControlPlane"),
        ("controlplane", "KubeadmControlPlaneTemplate", "ControlPlaneTemplate"),
        ("controlplane", "NestedEtcd", ""),
        ("ipam", "InClusterIPPool", "IPPool"),
        ("ipam", "InClusterPrefixPool", "IPPool"),
        ("ipam", "IPAddress", ""),
        ("ipam", "IPAddressClaim", ""),
        ("addons", "ClusterResourceSet", ""),
        ("runtime", "ExtensionConfig", ""),
        ("clusterctl", "Provider", ""),
    ],
)
def test_kinds_of_groups_that_declare_their_type(group: str, kind: str, role: str) -> None:
    assert guess_role(f"{group}.{CAPI}", kind, "Namespaced", set()) == role


@pytest.mark.parametrize("kind", ["Cluster", "Machine", "MachinePool", "ClusterClass"])
def test_core_has_no_roles(kind: str) -> None:
    assert guess_role(CAPI, kind, "Namespaced", {(CAPI, kind), (CAPI, f"{kind}Template")}) == ""


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("AcmeConfig", "BootstrapConfig"),
        ("AcmeControlPlane", "ControlPlane"),
        ("AcmeMachinePool", "InfraMachinePool"),
        ("AcmeRemediation", "Remediation"),
    ],
)
def test_elsewhere_a_kind_needs_its_template(kind: str, role: str) -> None:
    both = {("example.com", kind), ("example.com", f"{kind}Template")}
    assert guess_role("example.com", kind, "Namespaced", both) == role
    assert guess_role("example.com", f"{kind}Template", "Namespaced", both) == f"{role}Template"
    assert guess_role("example.com", kind, "Namespaced", {("example.com", kind)}) == ""


def test_pools_are_told_apart_by_their_scope() -> None:
    assert guess_role("ipam.example.com", "AcmeIPPool", "Namespaced", set()) == "IPPool"
    assert guess_role("ipam.example.com", "GlobalAcmeIPPool", "Cluster", set()) == "GlobalIPPool"
    assert guess_role("crd.projectcalico.org", "IPPool", "Cluster", set()) == ""
    assert guess_role("ipam.example.com", "AcmeIPPoolTemplate", "Namespaced", set()) == ""


def read_role(group: str, kind: str, spec: Mapping[str, object]) -> str:
    """Return the role of a CRD whose only version has ``spec``."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    document = {
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}],
        },
    }
    (crd,) = read_crds((Manifest("crds.yaml", 1, document),))
    return crd.role


def test_pools_of_any_name_have_a_list_of_ids() -> None:
    ids = {"providerIDList": {"type": "array", "items": {"type": "string"}}}
    template = {"template": {"properties": {"spec": {"type": "object", "properties": ids}}}}
    group = f"infrastructure.{CAPI}"
    assert read_role(group, "AcmeWorkerPool", ids) == "InfraMachinePool"
    assert read_role(group, "AcmeWorkerPoolTemplate", template) == "InfraMachinePoolTemplate"
    assert read_role(group, "AcmeWorkerPool", {"size": {"type": "integer"}}) == ""
    assert read_role(f"bootstrap.{CAPI}", "AcmeWorkerPool", ids) == ""
