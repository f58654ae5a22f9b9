"""Machines that are system containers of libvirt: they get an address and their data, and end."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.harness.report import Report
from tests.e2e.releases import NEWEST
from tests.e2e.scenario import Scenario, one_scenario
from tests.e2e.stack import Combination, Site, Stack
from tests.vm.hypervisor import CONTAINERS, Hypervisor, Machines, list_loop_devices, wait_gone
from tests.vm.provider import build_libvirt_provider

COMBINATION = Combination(NEWEST, "v1beta2", "libvirt", "vm-containers")
_IMAGE = "small.raw"
_INIT = Path(__file__).with_name("small-init.sh")
_SECONDS = 300.0


@pytest.fixture(scope="module")
def stack(base: Base, containers: Hypervisor, report: Report) -> Iterator[Stack]:
    folder = base.folder / str(COMBINATION)
    containers.add_images(_build_image(folder / "images"))
    with report.phase("vm", "build the provider"):
        provider = build_libvirt_provider(folder, with_helpers=True)
    cloud = Machines(folder / "cloud", containers)
    made = Stack(base, None, COMBINATION, provider, report, None, cloud)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def site(stack: Stack) -> Site:
    return stack.start()


@pytest.fixture
def scenario(request: pytest.FixtureRequest, stack: Stack, site: Site) -> Iterator[Scenario]:
    with one_scenario(stack, site, request.node.originalname) as made:
        yield made


def test_containers(scenario: Scenario, site: Site, containers: Hypervisor) -> None:
    before = list_loop_devices()
    scenario.create([_place(each) for each in scenario.render(1, 0)])
    eventually(containers.pools, what="a pool", timeout=_SECONDS)
    # Where it is in the copy of the image, which takes the most time.
    eventually(lambda: len(containers.volumes()) > 0, what="a volume", timeout=_SECONDS)
    site.controllers.kill()
    site.controllers.start()
    (machine,) = eventually(lambda: _addressed(scenario), what="an address", timeout=_SECONDS)

    (domain,) = containers.domains()
    secret = machine["spec"]["bootstrap"]["dataSecretName"]
    data = scenario.client.get("v1", "Secret", secret, scenario.namespace)["data"]["value"]
    seen = containers.inside(domain, "/bin/busybox", "cat", "/seen")
    assert seen == base64.b64decode(data).decode()
    addresses = {each["address"] for each in machine["status"]["addresses"]}
    assert containers.inside(domain, "/bin/busybox", "cat", "/address").strip() in addresses

    scenario.delete(timeout=_SECONDS)
    wait_gone(containers)
    assert list_loop_devices() == before


def _place(document: JSON) -> JSON:
    if document["kind"] == "LibvirtCluster":
        document["spec"]["hosts"] = [{"name": "local", "uri": CONTAINERS}]
    if document["kind"] == "LibvirtMachineTemplate":
        spec = {"image": _IMAGE, "domainType": "lxc", "memoryMiB": 128}
        document["spec"]["template"]["spec"] = spec
    return document


def _addressed(scenario: Scenario) -> list[JSON]:
    machines = scenario.machines()
    for each in machines:
        if "addresses" not in each.get("status", {}):
            raise NotYet(f"{each['metadata']['name']}: {each.get('status')}")
    return machines


def _build_image(folder: Path) -> Path:
    """Return a folder with a file system that has busybox, and a first process that is a script."""
    busybox = shutil.which("busybox")
    assert busybox is not None, "busybox-static is missing"
    root = folder / "root"
    for name in ("bin", "dev", "etc", "proc", "run", "sbin", "sys", "var/lib/cloud/seed/nocloud"):
        (root / name).mkdir(parents=True)
    shutil.copy(busybox, root / "bin")
    (root / "bin/sh").symlink_to("busybox")
    shutil.copy(_INIT, root / "sbin/init")
    (root / "sbin/init").chmod(0o755)
    made = folder / "pool"
    made.mkdir()
    options = ("-q", "-t", "ext4", "-d", root)
    subprocess.run(["mke2fs", *options, made / _IMAGE, "32M"], check=True)
    return made
