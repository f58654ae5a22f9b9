"""Cluster API's own specs, unmodified, with machines that kubeadm boots."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capsmith.clusters.processes.cluster import Base
from tests.e2e.harness.report import Report
from tests.vm.hypervisor import Hypervisor
from tests.vm.image.build import Image
from tests.vm.suite import Suite, build_provider_with_specs, open_suite

_NAME = "vm-upstream"
SPECS = (
    "Quick start",
    "Quick start with a ClusterClass",
    "Scaling a MachineDeployment",
    "Remediating a MachineDeployment",
    "Remediating a control plane",
    "Rolling out a control plane and a MachineDeployment",
    "Rolling out a ClusterClass",
    "Changing a ClusterClass",
    "Upgrading Kubernetes",
    "Upgrading Kubernetes with a ClusterClass",
    "Draining Nodes",
    "Deleting a cluster",
    "Deleting a cluster with a ClusterClass",
    "Adopting a Machine by a control plane",
)

pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


@pytest.fixture(scope="module")
def suite(base: Base, containers: Hypervisor, image: Image, report: Report) -> Iterator[Suite]:
    with report.phase("vm", "build the provider"):
        provider = build_provider_with_specs(base.folder / _NAME)
    with open_suite(_NAME, base, containers, image, provider, report) as made:
        yield made


@pytest.mark.parametrize("title", SPECS)
def test_specs(suite: Suite, title: str, report: Report) -> None:
    with report.phase("vm", title):
        suite.run(title)
