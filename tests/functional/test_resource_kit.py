"""The conformance kit fails when the author of a kind that implements Resource breaks its rules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from capsmith.commands.generate import generate
from tests.repositories import run_module

DESCRIPTION = """
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine: {implements: InfraMachine}
  AcmeNetwork: {implements: Resource, spec: {cidr: string!}}
"""
CONTROLLER = "src/cluster_api_provider_acme/controllers/acme_network.py"
BROKEN = {
    "creates a network at each call": (
        "self._cloud.create_resource(resource.external_id, resource.name)",
        "self._cloud.create_resource(f'{resource.external_id}-{id(object())}', resource.name)",
    ),
    "identifies networks by the owners, which a network need not have": (
        "self._cloud.find_resource(resource.external_id)",
        "self._cloud.find_resource(resource.owners[0].uid)",
    ),
    "needs the Cluster": (
        "return ResourceState()",
        "return ResourceState(message=resource.cluster.name)",
    ),
    "forgets to delete the network": (
        "self._cloud.delete_resource(resource.external_id)",
        "None",
    ),
    "returns nothing": ("return ResourceState()", "return None"),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resource-kit")
    (folder / "provider.yaml").write_text(DESCRIPTION)
    assert generate(folder / "provider.yaml", folder / "repository").exit_code == 0
    return folder / "repository"


@pytest.mark.parametrize("mistake", BROKEN)
def test_the_kit_fails(repository: Path, mistake: str) -> None:
    former, latter = BROKEN[mistake]
    controller = repository / CONTROLLER
    text = controller.read_text()
    assert former in text
    controller.write_text(text.replace(former, latter))
    try:
        done = _kit(repository)
    finally:
        controller.write_text(text)
    assert done.returncode == 1, done.stdout
    assert "FAILED tests/test_conformance.py::TestResource" in done.stdout


def _kit(repository: Path) -> subprocess.CompletedProcess[str]:
    """Run the scenarios of resources until the first one fails."""
    options = ("-x", "-q", "-p", "no:cacheprovider", "-k", "Resource")
    return run_module(repository, "pytest", *options, "tests/test_conformance.py")
