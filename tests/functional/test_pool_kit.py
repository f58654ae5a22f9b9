"""The kit of pools fails when the author of a pool breaks the contract."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.golden.cases import EXAMPLES, Case, generated
from tests.repositories import run_module

POOL = "controllers/tidal_machine_pool.py"
GROUPS = "server_groups.py"

BROKEN = {
    "never deletes a server": (
        GROUPS,
        "for server in servers[size:]:",
        "for server in servers[:0]:",
    ),
    "creates another group at each call": (
        POOL,
        "pool.external_id, pool.name,",
        "f'{pool.external_id}{id(pool)}', pool.name,",
    ),
    "replaces all servers when the size changes": (
        GROUPS,
        "servers = self.servers(external_id)\n            # An earlier",
        "servers = self.servers(external_id)\n"
        "            if len(servers) != size:\n"
        "                for old in servers:\n"
        "                    self._cloud.delete_server(old.id)\n"
        "                servers = []\n            # An earlier",
    ),
    "does not look at the size": (POOL, "size = pool.replicas\n", "size = 1\n"),
    "returns one provider id for all": (
        POOL,
        "provider_id=server.provider_id",
        "provider_id='tidal://one'",
    ),
    "forgets to delete the group": (POOL, "self._groups.delete(pool.external_id)", "None"),
    "identifies the group by a name that is used again": (
        POOL,
        "if self._groups.delete(pool.external_id)",
        "if pool.machine_pool and self._groups.delete(pool.external_id)",
    ),
    "returns nothing": (POOL, "return InfraMachinePoolState(", "return None and str("),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit") / "repository"
    generated(Case("pools", EXAMPLES / "pools" / "provider.yaml"), folder)
    # A pool that replaces its machines for ever is busy until the limit.
    (folder / "tests" / "conftest.py").write_text(
        "from capsmith_runtime.testing.limits import set_limits\n\nset_limits(wait_seconds=40)\n"
    )
    return folder


def _kit(repository: Path) -> subprocess.CompletedProcess[str]:
    options = ("-x", "-q", "-p", "no:cacheprovider", "-k", "Pool")
    return run_module(repository, "pytest", *options, "tests/test_conformance.py")


@pytest.mark.slow
def test_the_scaffold_passes(repository: Path) -> None:
    done = _kit(repository)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("mistake", BROKEN)
def test_a_mistake_is_found(repository: Path, mistake: str) -> None:
    name, right, wrong = BROKEN[mistake]
    (path,) = repository.glob(f"src/*/{name}")
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    try:
        done = _kit(repository)
    finally:
        path.write_text(text, encoding="utf-8")
    assert done.returncode == 1, done.stdout
