"""The conformance kit of a generated repository fails when its author breaks the contract."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.golden.cases import EXAMPLES, Case, generated
from tests.repositories import run_module

MACHINE = "controllers/acme_machine.py"
CLUSTER = "controllers/acme_cluster.py"

BROKEN = {
    "creates a server at each call": (
        MACHINE,
        "server = self._cloud.find_server(machine.external_id)",
        "server = self._cloud.create_server(str(id(object())), 'x', 'y', None)",
    ),
    "creates before it looks, after a crash": (
        MACHINE,
        "if server is None and provider_id is None:",
        "if machine.provider_id is None:\n"
        "            import uuid\n"
        "            server = self._cloud.create_server(str(uuid.uuid4()), 'x', 'y', None)\n"
        "        elif server is None:",
    ),
    "identifies servers by a uid that a move changes": (
        MACHINE,
        "machine.external_id",
        "machine.machine.uid if hasattr(machine, 'spec') and machine.machine else 'x'",
    ),
    "creates a server again after it disappeared": (
        MACHINE,
        "if server is None and machine.is_provisioned:",
        "if server is None:\n"
        "            self._cloud.create_server(machine.external_id, 'x', 'y', None)\n"
        "        if server is None and machine.is_provisioned:",
    ),
    "changes the provider id": (
        MACHINE,
        "provider_id=server.provider_id",
        "provider_id=f'{server.provider_id}/{self._cloud._count(server.id)}/{id(machine)}'",
    ),
    "gives all machines one provider id": (
        MACHINE,
        "provider_id=server.provider_id",
        "provider_id='acme://one'",
    ),
    "forgets to delete the server": (
        MACHINE,
        "self._cloud.delete_server(machine.external_id)",
        "None",
    ),
    "forgets to delete what machines share": (
        CLUSTER,
        "self._cloud.delete_cluster(cluster.external_id)",
        "None",
    ),
    "needs the Machine to delete": (
        MACHINE,
        "if self._cloud.delete_server(machine.external_id):",
        "if machine.machine.name and self._cloud.delete_server(machine.external_id):",
    ),
    "does not delete a server that is not listed yet": (
        MACHINE,
        "if self._cloud.delete_server(machine.external_id):",
        "if self._cloud.find_server(machine.external_id):\n"
        "            self._cloud.delete_server(machine.external_id)",
    ),
    "considers a server that is not listed yet as lost": (
        MACHINE,
        "machine.is_provisioned:",
        "machine.provider_id:",
    ),
    "returns nothing": (MACHINE, "return InfraMachineState(", "return None and InfraMachineState("),
    "supplies no endpoint": (
        CLUSTER,
        "cluster.control_plane_endpoint or Endpoint(host, port)",
        "None",
    ),
    "raises": (MACHINE, "server = self._cloud", "raise OSError; server = self._cloud"),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit") / "repository"
    generated(Case("acme", EXAMPLES / "acme" / "provider.yaml"), folder)
    return folder


def _kit(repository: Path) -> subprocess.CompletedProcess[str]:
    options = ("-x", "-q", "-p", "no:cacheprovider")
    return run_module(repository, "pytest", *options, "tests/test_conformance.py")


@pytest.mark.parametrize("mistake", BROKEN)
def test_the_kit_reports_a_reconciler_that(repository: Path, mistake: str) -> None:
    name, right, wrong = BROKEN[mistake]
    (file,) = repository.glob(f"src/*/{name}")
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong))
    try:
        done = _kit(repository)
    finally:
        file.write_text(text)

    assert done.returncode == 1, done.stdout
    assert "FAILED tests/test_conformance.py::Test" in done.stdout
