"""Roles as they are guessed, on kinds that exist."""

from __future__ import annotations

import pytest

from capsmith.manifests.crds import guess_role

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
