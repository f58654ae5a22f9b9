"""Session fixtures, from the tools up to a running provider; see README.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer, Etcd
from capsmith.clusters.processes.tools import Toolbox
from capsmith.clusters.processes.tools.catalogue import default_modules, list_all_modules
from tests.conftest import REPORT
from tests.distribution import group_of
from tests.e2e.extended import EXTENDED, extended_stack
from tests.e2e.harness.report import Report
from tests.e2e.provider import build_provider
from tests.e2e.scenario import Scenario, one_scenario
from tests.e2e.stack import COMBINATIONS, Combination, Site, Stack
from tests.e2e.tools.required import required_toolbox
from tests.resting import shared_servers

_ENDS = pytest.StashKey[ExitStack]()
"""What ends with the group of tests that is running."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.e2e)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop a stack after the last module that uses it.

    Otherwise it would run until the session ends, and even idle processes take processor time.
    """
    try:
        yield
    finally:
        if nextitem is None or group_of(item.nodeid) != group_of(nextitem.nodeid):
            item.config.stash.setdefault(_ENDS, ExitStack()).close()


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Report:
    return request.config.stash[REPORT]


@pytest.fixture(scope="session")
def tools(request: pytest.FixtureRequest) -> Toolbox:
    names = list_all_modules() if request.config.getoption("--exhaustive") else default_modules()
    return required_toolbox(
        "the end-to-end tests", names, progress=lambda text: print(text, flush=True)
    )


@pytest.fixture(scope="session")
def base(
    request: pytest.FixtureRequest, tools: Toolbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Base]:
    folder = tmp_path_factory.mktemp("e2e")
    etcd = Etcd(tools, folder)
    etcd.start()
    with shared_servers(request, etcd.process, wait_ready=etcd.wait_ready):
        yield Base(tools, Pki(folder / "pki"), etcd, folder)
    etcd.stop()


@pytest.fixture(scope="session")
def workload(request: pytest.FixtureRequest, base: Base) -> Iterator[ApiServer]:
    """Return the API server that holds the Nodes of all workload clusters."""
    server = ApiServer(base.tools, base.pki, base.etcd, base.folder, "workload")
    server.start()
    with shared_servers(request, server.process, wait_ready=server.wait_ready, needs="base"):
        yield server
    server.stop()


@pytest.fixture(scope="session", params=COMBINATIONS, ids=str)
def stack(
    request: pytest.FixtureRequest, base: Base, workload: ApiServer, report: Report
) -> Iterator[Stack]:
    combination: Combination = request.param
    with report.phase(str(combination), "build the provider"):
        folder = base.folder / str(combination)
        provider = build_provider(combination.example, combination.contract, folder)
    made = Stack(base, workload, combination, provider, report)
    ends = request.config.stash.setdefault(_ENDS, ExitStack())
    ends.callback(made.stop)
    yield made
    ends.close()


@pytest.fixture(scope="session")
def site(stack: Stack) -> Site:
    """Return the first management cluster, with the provider's controllers running."""
    return stack.start()


@pytest.fixture
def scenario(request: pytest.FixtureRequest, stack: Stack, site: Site) -> Iterator[Scenario]:
    """Return a scenario with its own cluster name and namespace; remove leftovers at the end."""
    with one_scenario(stack, site, request.node.originalname) as made:
        yield made


@pytest.fixture(scope="session", params=EXTENDED, ids=str)
def extended(
    request: pytest.FixtureRequest, base: Base, workload: ApiServer, report: Report
) -> Iterator[tuple[Stack, Site]]:
    """Return a stack with infrastructure, a runtime extension and an add-on, and its first site."""
    stack = extended_stack(base, workload, request.param, report)
    ends = request.config.stash.setdefault(_ENDS, ExitStack())
    ends.callback(stack.stop)
    yield stack, stack.start()
    ends.close()


@pytest.fixture
def extended_scenario(
    request: pytest.FixtureRequest, extended: tuple[Stack, Site]
) -> Iterator[Scenario]:
    """Return a scenario like `scenario`, with a runtime extension and an add-on."""
    with one_scenario(*extended, request.node.originalname) as made:
        yield made
