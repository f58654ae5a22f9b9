"""A cluster whose machines are virtual ones: they boot, join, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.wait import eventually
from tests.e2e.harness.report import Report
from tests.e2e.releases import NEWEST
from tests.e2e.scenario import Scenario
from tests.e2e.stack import Combination, Stack
from tests.vm.hypervisor import Hypervisor, Machines
from tests.vm.image.build import Image
from tests.vm.lab import MACHINE_SECONDS, SENTINEL, Lab, open_lab
from tests.vm.provider import build_libvirt_provider

COMBINATION = Combination(NEWEST, "v1beta2", "libvirt", "vm")


@pytest.fixture(scope="module")
def lab(base: Base, hypervisor: Hypervisor, image: Image, report: Report) -> Iterator[Lab]:
    hypervisor.add_images(image.folder)
    folder = base.folder / str(COMBINATION)
    with report.phase("vm", "build the provider"):
        provider = build_libvirt_provider(folder, with_helpers=True)
    cloud = Machines(folder / "cloud", hypervisor)
    stack = Stack(base, None, COMBINATION, provider, report, None, cloud)
    with open_lab(stack, hypervisor, image) as made:
        yield made


def test_boots(scenario: Scenario, lab: Lab) -> None:
    documents = [lab.place(each, 1536, 768) for each in scenario.render(1, 0)]
    report, timeline = lab.stack.report, lab.timeline
    with report.phase("vm", "control plane, its manager killed when the domain exists"):
        timeline.note("the Cluster is applied")
        scenario.create(documents)
        eventually(lab.hypervisor.domains, what="a domain", timeout=MACHINE_SECONDS)
        timeline.note("the domain exists; the manager of the infrastructure is killed")
        lab.site.controllers.kill()
        lab.site.controllers.start()
        lab.wait_running(scenario, 1)
    with report.phase("vm", "a worker"):
        scenario.scale_workers(1)
        lab.wait_running(scenario, 2)
    lab.note_memory()
    for name in lab.hypervisor.domains():
        assert SENTINEL in lab.console(name)
    with report.phase("vm", "delete, the manager killed meanwhile"):
        timeline.note("the Cluster is deleted")
        scenario.client.delete(scenario.cluster())
        eventually(lambda: len(lab.hypervisor.domains()) < 2, what="a domain less", timeout=600.0)
        timeline.note("a domain is gone; the manager of the infrastructure is killed")
        lab.site.controllers.kill()
        lab.site.controllers.start()
        scenario.delete(timeout=MACHINE_SECONDS)
        lab.wait_gone()
