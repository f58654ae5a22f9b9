"""These tests need root, libvirt and many minutes: they are collected with CAPSMITH_VM=1 only."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import Etcd
from tests.conftest import REPORT
from tests.e2e.harness.report import Report
from tests.e2e.scenario import Scenario, one_scenario
from tests.e2e.tools.required import required_toolbox
from tests.vm.components import MODULES
from tests.vm.hypervisor import CONTAINERS, Hypervisor
from tests.vm.image.build import Image, cached_image
from tests.vm.lab import Lab

collect_ignore_glob = [] if os.environ.get("CAPSMITH_VM") else ["test_*.py"]


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Report:
    return request.config.stash[REPORT]


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    folder = tmp_path_factory.mktemp("vm")
    tools = required_toolbox("tests with virtual machines", MODULES)
    etcd = Etcd(tools, folder)
    etcd.start()
    yield Base(tools, Pki(folder / "pki"), etcd, folder)
    etcd.stop()


@pytest.fixture(scope="session")
def image() -> Image:
    return cached_image()


@pytest.fixture(scope="module")
def hypervisor(base: Base) -> Iterator[Hypervisor]:
    """Virtual machines; a module has them or containers, since both use libvirt's folders."""
    host = Hypervisor(base.folder / "libvirt")
    host.start()
    yield host
    host.stop()


@pytest.fixture(scope="module")
def containers(base: Base) -> Iterator[Hypervisor]:
    """System containers."""
    host = Hypervisor(base.folder / "libvirt-containers", CONTAINERS)
    host.start()
    yield host
    host.stop()


@pytest.fixture
def scenario(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Scenario]:
    """A cluster for one test, in the lab of its module."""
    with one_scenario(lab.stack, lab.site, request.node.originalname) as made:
        yield made
