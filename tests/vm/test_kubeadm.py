"""Clusters that kubeadm boots: machines are system containers, providers for kubeadm upstream's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capsmith.clusters.processes.cluster import Base
from tests.e2e.harness.report import Report
from tests.e2e.scenario import Scenario, build_health_check
from tests.e2e.whole import CONTROL_PLANE, members
from tests.vm.hypervisor import Hypervisor
from tests.vm.image.build import Image
from tests.vm.kubeadm import (
    create_cluster,
    open_kubeadm_lab,
    wait_available,
    wait_deleted,
    wait_pods,
)
from tests.vm.lab import MACHINE_SECONDS, Lab
from tests.vm.pods import check_pods

_UNHEALTHY = {"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 60}
"""A new machine waits for its address, and must not count as unhealthy meanwhile."""

pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


@pytest.fixture(scope="module")
def lab(base: Base, containers: Hypervisor, image: Image, report: Report) -> Iterator[Lab]:
    with open_kubeadm_lab("vm-kubeadm", base, containers, image, report) as made:
        yield made


def test_two_machines(scenario: Scenario, lab: Lab) -> None:
    report, timeline = lab.stack.report, lab.timeline
    with report.phase("vm", "kubeadm: control plane and worker"):
        create_cluster(scenario, lab, control_planes=1)
        wait_pods(scenario, lab)
    lab.note_memory()
    with report.phase("vm", "kubeadm: Pods of two machines"):
        check_pods(scenario, lab)
    with report.phase("vm", "kubeadm: delete"):
        timeline.note("the Cluster is deleted")
        scenario.delete(timeout=MACHINE_SECONDS)
        lab.wait_gone()


def test_a_lost_control_plane_machine_is_replaced(scenario: Scenario, lab: Lab) -> None:
    """One of three is destroyed: etcd loses its member, and a new machine takes its place."""
    report, timeline = lab.stack.report, lab.timeline
    with report.phase("vm", "kubeadm: three control plane machines"):
        create_cluster(scenario, lab, control_planes=3)
        wait_available(scenario, lab, 3)
    lab.note_memory()
    before = {each["metadata"]["name"]: each for each in members(scenario)}
    checks = {"checks": {"unhealthyMachineConditions": [_UNHEALTHY]}}
    health = build_health_check(scenario, {CONTROL_PLANE: ""}, checks)
    with report.phase("vm", "kubeadm: replace a control plane machine"):
        scenario.client.apply(health)
        lost = sorted(before)[0]
        domain = scenario.infrastructure_of(before[lost])["status"]["domain"]
        lab.hypervisor.virsh("destroy", domain)
        lab.hypervisor.virsh("undefine", domain)
        timeline.note(f"{lost}: the domain is destroyed")
        wait_deleted(scenario, lab, lost)
        lab.wait_running(scenario, 4)
        wait_available(scenario, lab, 3)
    assert before.keys() - _names(scenario) == {lost}
    with report.phase("vm", "kubeadm: delete three control plane machines"):
        timeline.note("the Cluster of three control plane machines is deleted")
        scenario.delete(timeout=MACHINE_SECONDS)
        lab.wait_gone()


def _names(scenario: Scenario) -> set[str]:
    """Return the names of the control plane's Machines."""
    return {str(each["metadata"]["name"]) for each in members(scenario)}
