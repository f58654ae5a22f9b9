"""A real etcd and kube-apiserver for the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness.components import ApiServer, Etcd
from tests.e2e.harness.kube import KubeClient
from tests.e2e.harness.pki import Pki
from tests.e2e.tools.required import required_toolbox


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.realapi)


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeClient]:
    """A client of the API server."""
    tools = required_toolbox("the tests on a real API server", ["k8s"])
    folder = tmp_path_factory.mktemp("realapi")
    pki = Pki(folder / "pki")
    etcd = Etcd(tools, folder)
    server = ApiServer(tools, pki, etcd, folder, "realapi")
    etcd.start()
    try:
        server.start()
        yield server.client
    finally:
        server.stop()
        etcd.stop()
