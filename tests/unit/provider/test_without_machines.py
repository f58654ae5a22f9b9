"""Providers on whose infrastructure no Machines run: templates, classes, scaffolds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from capsmith.commands.build import build_checked
from capsmith.commands.load import load_text
from capsmith.findings import Severity
from capsmith.output.topology import build_topology
from capsmith.provider.model import Provider
from capsmith.tree import FileTree

_TEXT = """\
capsmith: 1
name: cove
repository: https://github.com/cove/cluster-api-provider-cove
contracts: [{contract}]
releases: {{v0.1: {contract}}}
machines: false
infrastructure:
  CoveCluster:
    implements: InfraCluster
    spec: {{size: string!}}
"""
_CONTROL_PLANE = """\
controlPlane:
  CoveControlPlane:
    implements: ControlPlane
    features: {externalManagedControlPlane: true}
    spec: {tier: string!}
"""


_POOL = """\
  CovePool:
    implements: InfraMachinePool
    spec: {size: string!}
"""


def _load(contract: str, further: str = "") -> Provider:
    loaded = load_text(_TEXT.format(contract=contract) + further, "provider.yaml")
    assert loaded.provider is not None, loaded.findings
    return loaded.provider


def _build(provider: Provider) -> FileTree:
    built, findings = build_checked(provider, None)
    assert [each for each in findings if each.severity is Severity.ERROR] == []
    assert built is not None
    return built


def _read(tree: FileTree, path: str) -> list[dict[str, Any]]:
    (text,) = (file.text for file in tree if str(file.path) == path)
    return list(yaml.safe_load_all(text))


def _files(tree: FileTree) -> set[str]:
    return {str(file.path) for file in tree}


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
def test_the_template_has_the_infrastructure_only(contract: str) -> None:
    provider = _load(contract)
    (component,) = provider.components
    parts = build_topology(component, provider)
    assert (parts.machine, parts.machine_variables) == (None, ())
    assert not parts.control_plane_machines
    tree = _build(provider)
    cluster, infrastructure = _read(tree, "templates/cluster-template.yaml")
    assert "controlPlaneRef" not in cluster["spec"]
    assert cluster["spec"]["infrastructureRef"]["kind"] == infrastructure["kind"] == "CoveCluster"
    # kubeadm's control planes consist of Machines, so no ClusterClass can use the provider.
    assert (provider.flavors, provider.cluster_classes) == ((), ())
    assert not [path for path in _files(tree) if "clusterclass" in path]


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
def test_a_class_has_the_own_control_plane_and_no_workers(contract: str) -> None:
    tree = _build(_load(contract, _CONTROL_PLANE))
    kinds = [each["kind"] for each in _read(tree, "templates/cluster-template.yaml")]
    assert kinds == ["Cluster", "CoveCluster", "CoveControlPlane"]
    cluster_class, *templates = _read(tree, "templates/clusterclass-cove.yaml")
    assert [each["kind"] for each in templates] == [
        "CoveClusterTemplate",
        "CoveControlPlaneTemplate",
    ]
    assert cluster_class["spec"].keys() == {
        "infrastructure",
        "controlPlane",
        "variables",
        "patches",
    }
    (cluster,) = _read(tree, "templates/cluster-template-topology.yaml")
    assert "workers" not in cluster["spec"]["topology"]


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
def test_a_pool_without_machines_is_the_only_worker(contract: str) -> None:
    tree = _build(_load(contract, _POOL + _CONTROL_PLANE))
    kinds = [each["kind"] for each in _read(tree, "templates/cluster-template-machinepool.yaml")]
    assert kinds[:3] == ["Cluster", "CoveCluster", "CoveControlPlane"]
    assert kinds[3:] == ["MachinePool", "CovePool", "KubeadmConfig"]
    cluster_class, *templates = _read(tree, "templates/clusterclass-cove.yaml")
    assert cluster_class["spec"]["workers"].keys() == {"machinePools"}
    assert [each["kind"] for each in templates[2:]] == ["KubeadmConfigTemplate", "CovePoolTemplate"]
    (cluster,) = _read(tree, "templates/cluster-template-topology.yaml")
    assert cluster["spec"]["topology"]["workers"].keys() == {"machinePools"}
    (cloud,) = (each.text for each in tree if str(each.path).endswith("/cloud.py"))
    assert "create_server" in cloud


def test_a_pool_with_machines_needs_a_kind_of_machines() -> None:
    pool = _POOL.replace("    spec:", "    features: {machines: true}\n    spec:")
    loaded = load_text(_TEXT.format(contract="v1beta2") + pool, "provider.yaml")
    assert "machines-excluded" in {each.id for each in loaded.findings}


def test_the_scaffolds_know_no_servers() -> None:
    tree = _build(_load("v1beta2"))
    for path in ("src/cluster_api_provider_cove/cloud.py", "tests/infrastructure.py"):
        (text,) = (file.text for file in tree if str(file.path) == path)
        assert "create_server" not in text
        assert "remove_server" not in text
    (wiring,) = (f.text for f in tree if str(f.path).endswith("wiring/infrastructure.py"))
    assert "InfraMachineKind" not in wiring


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
def test_the_manager_reads_no_machines_and_no_bootstrap_data(contract: str) -> None:
    tree = _build(_load(contract))
    resources = _resources(tree)
    assert "clusters" in resources
    assert not resources & {"machines", "machinepools", "secrets"}
    (wiring,) = (f.text for f in tree if str(f.path).endswith("wiring/infrastructure.py"))
    assert "watches_machines=False" in wiring


def test_a_workload_client_reads_the_kubeconfig() -> None:
    text = _TEXT.format(contract="v1beta2")
    text = text.replace("    spec:", "    features: {workloadClient: true}\n    spec:")
    loaded = load_text(text, "provider.yaml")
    assert loaded.provider is not None, loaded.findings
    resources = _resources(_build(loaded.provider))
    assert "secrets" in resources
    assert "machines" not in resources


def test_a_machine_that_owns_a_resource_is_read() -> None:
    """It may be a Machine of another provider."""
    tree = _build(_load("v1beta2", "  CoveNetwork:\n    implements: Resource\n"))
    assert "machines" in _resources(tree)
    assert "secrets" not in _resources(tree)
    (wiring,) = (f.text for f in tree if str(f.path).endswith("wiring/infrastructure.py"))
    assert "watches_machines" not in wiring


def _resources(tree: FileTree) -> set[str]:
    """Return the resources in the roles of the manager."""
    roles = _read(tree, "config/rbac/role.yaml")
    return {name for role in roles for rule in role["rules"] for name in rule.get("resources", ())}
