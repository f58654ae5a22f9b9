"""A real etcd and kube-apiserver for the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from capsmith.clusters.processes.kube import KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer, Etcd
from tests.e2e.tools.required import required_toolbox
from tests.resting import shared_servers

# Test modules import generated code at their top, so it has to be there before they are read.

NewServer = Callable[[str, Pki], ApiServer]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.realapi)


@pytest.fixture(scope="session")
def etcd(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Etcd]:
    """Return the session's etcd, in which each API server has the prefix of its own name."""
    tools = required_toolbox("the tests on a real API server", ["k8s"])
    made = Etcd(tools, tmp_path_factory.mktemp("etcd"))
    made.start()
    try:
        with shared_servers(request, made.process, wait_ready=made.wait_ready):
            yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def new_server(etcd: Etcd, tmp_path_factory: pytest.TempPathFactory) -> NewServer:
    """Return a factory of API servers on the session's etcd; the caller starts and stops them."""
    tools = required_toolbox("the tests on a real API server", ["k8s"])
    folder = tmp_path_factory.mktemp("realapi")
    return lambda name, pki: ApiServer(tools, pki, etcd, folder / name, name)


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    """Return the certificates of the session's API server."""
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="session")
def api_server(
    request: pytest.FixtureRequest, new_server: NewServer, pki: Pki
) -> Iterator[ApiServer]:
    """Return the session's API server."""
    server = new_server("realapi", pki)
    try:
        server.start()
        with shared_servers(request, server.process, wait_ready=server.wait_ready, needs="etcd"):
            yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def api(api_server: ApiServer) -> KubeClient:
    """Return a client of the session's API server."""
    return api_server.client
