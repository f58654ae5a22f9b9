"""A management cluster that moves into machines that its own provider has made.

The spec is Cluster API's.  cert-manager, core, the providers for kubeadm and the provider for
libvirt run as Pods in these machines, from images that their disks have.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from capsmith.clusters.node.components import add_releases
from capsmith.clusters.node.tools import build_node_tools
from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.repository import ClusterctlRepository
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.harness.report import Report
from tests.e2e.releases import NEWEST
from tests.vm.components import RELEASES, build_components
from tests.vm.controllers import cached_controllers
from tests.vm.hypervisor import Hypervisor
from tests.vm.image.build import Image, container_image, import_images
from tests.vm.suite import Suite, build_provider_with_specs, open_suite

_NAME: Final = "vm-self-hosted"
_TITLE: Final = "Moving the management cluster into its own machines"
_ADDED_MIB: Final = 1536
"""For the images of the controllers."""

pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


@pytest.fixture(scope="module")
def provider(base: Base, report: Report) -> ProviderUnderTest:
    with report.phase("vm", "build the provider"):
        return build_provider_with_specs(base.folder / _NAME)


@pytest.fixture(scope="module")
def suite(
    base: Base,
    containers: Hypervisor,
    image: Image,
    provider: ProviderUnderTest,
    report: Report,
) -> Iterator[Suite]:
    folder = base.folder / _NAME
    with report.phase("vm", "add the images of controllers to disks"):
        disks = _add_images(image, folder / "disks", cached_controllers())
    with open_suite(_NAME, base, containers, disks, provider, report) as made:
        yield made


def test_the_management_cluster_moves(
    suite: Suite, base: Base, provider: ProviderUnderTest, report: Report
) -> None:
    repository = ClusterctlRepository(base.folder / _NAME / "releases")
    add_releases(repository, base.tools, build_node_tools(), NEWEST)
    for part in provider.parts:
        files = {path.name: path.read_text() for path in provider.out.iterdir() if path.is_file()}
        repository.add(part.label, provider.version, part.file, files)
    with report.phase("vm", "self-hosted"):
        suite.run(_TITLE, repository.config)


def _add_images(image: Image, target: Path, archives: list[Path]) -> Image:
    """Return copies of the disks of system containers that have the images of the archives."""
    target.mkdir()
    containerd = build_components().containerd
    for release in RELEASES:
        disk = target / container_image(release)
        shutil.copy(image.folder / disk.name, disk)
        _run("truncate", f"--size=+{_ADDED_MIB}M", disk)
        _run("resize2fs", disk)
        with _mounted(disk, target.parent / "root") as root:
            scratch = target.parent / f"import-{release.version}"
            scratch.mkdir()
            import_images(scratch, root, containerd, archives)
    return Image(target)


@contextmanager
def _mounted(disk: Path, place: Path) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    _run("mount", "-o", "loop", disk, place)
    try:
        yield place
    finally:
        _run("umount", place)


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
