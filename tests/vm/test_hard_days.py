"""What happens to machines that kubeadm boots, and what their objects say meanwhile."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.harness.report import Report
from tests.e2e.scenario import Scenario, condition, one_scenario
from tests.vm.hypervisor import Hypervisor
from tests.vm.image.build import Image
from tests.vm.kubeadm import (
    apply_cluster,
    finish_cluster,
    list_objects,
    note_conditions,
    open_kubeadm_lab,
    wait_pods,
)
from tests.vm.lab import MACHINE_SECONDS, Lab

_AWAY_SECONDS = 120.0
_WORKERS = "cluster.x-k8s.io/deployment-name"

pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


@pytest.fixture(scope="module")
def lab(base: Base, containers: Hypervisor, image: Image, report: Report) -> Iterator[Lab]:
    with open_kubeadm_lab("vm-hard-days", base, containers, image, report) as made:
        yield made


@pytest.fixture(scope="module")
def scenario(lab: Lab) -> Iterator[Scenario]:
    """A cluster with one control plane machine and a worker, to which everything happens."""
    with one_scenario(lab.stack, lab.site, "test_hard_days") as made:
        yield made


def test_the_manager_is_killed_while_a_machine_boots(scenario: Scenario, lab: Lab) -> None:
    apply_cluster(scenario, lab, control_planes=1)
    (domain,) = eventually(lab.hypervisor.domains, what="a domain", timeout=MACHINE_SECONDS)
    lab.site.controllers.kill()
    lab.site.controllers.start()
    lab.timeline.note("the manager was killed while a machine boots, and started again")
    finish_cluster(scenario, lab, 2)
    wait_pods(scenario, lab)
    assert domain in lab.hypervisor.domains()
    assert len(lab.hypervisor.domains()) == 2


def test_libvirt_is_away(scenario: Scenario, lab: Lab) -> None:
    """Machines keep running, none is replaced, and a new one comes when libvirt is back."""
    before = _names(scenario)
    lab.hypervisor.process.stop()
    until = time.monotonic() + _AWAY_SECONDS
    scenario.scale_workers(2)
    eventually(lambda: _is_refused(scenario, before), what="a refusal", timeout=MACHINE_SECONDS)
    while time.monotonic() < until:
        assert before < _names(scenario)
        time.sleep(1.0)
    note_conditions(scenario, lab, f"libvirt has been away for {_AWAY_SECONDS:.0f} s")
    lab.hypervisor.restart()
    lab.wait_running(scenario, 3)
    assert before < _names(scenario)
    scenario.scale_workers(1)
    eventually(lambda: len(scenario.machines()) == 2, what="2 machines", timeout=MACHINE_SECONDS)


def test_all_machines_lose_their_power(scenario: Scenario, lab: Lab) -> None:
    """They are reported as not ready, nothing is replaced, and the cluster comes back with them."""
    before, domains = _names(scenario), lab.hypervisor.domains()
    for each in domains:
        lab.hypervisor.virsh("destroy", each)
    _wait_all(scenario, lab, "power is lost", lambda each: each["status"] == "False")
    for each in domains:
        lab.hypervisor.virsh("start", each)
    lab.timeline.note("power is back")
    _wait_all(scenario, lab, "machines run again", lambda each: each["status"] == "True")
    lab.wait_running(scenario, 2)
    wait_pods(scenario, lab)
    assert _names(scenario) == before
    assert lab.hypervisor.domains() == domains


def test_a_disk_is_full(scenario: Scenario, lab: Lab) -> None:
    worker = _worker(scenario)
    domain = scenario.infrastructure_of(worker)["status"]["domain"]
    lab.hypervisor.inside(domain, "/bin/sh", "-c", "dd if=/dev/zero of=/full bs=1M || true")
    _wait_node(scenario, lab, worker, "DiskPressure", "True")
    note_conditions(scenario, lab, "the worker's disk is full")
    lab.hypervisor.inside(domain, "/bin/rm", "/full")
    _wait_node(scenario, lab, worker, "DiskPressure", "False")
    wait_pods(scenario, lab)
    note_conditions(scenario, lab, "the worker's disk has room again")


def test_a_machine_never_joins(scenario: Scenario, lab: Lab) -> None:
    def fail(documents: list[JSON]) -> None:
        (config,) = (each for each in documents if each["kind"] == "KubeadmConfigTemplate")
        config["spec"]["template"]["spec"]["preKubeadmCommands"] = ["exit 1"]

    name = _add_workers(scenario, "joins", fail)
    machine = eventually(lambda: _machine_of(scenario, name), what="a machine")
    _wait_phase(scenario, machine, "Provisioned")
    time.sleep(60.0)
    note_conditions(scenario, lab, "a machine that never joins")
    _remove_workers(scenario, name)


def test_an_image_is_missing(scenario: Scenario, lab: Lab) -> None:
    def misname(documents: list[JSON]) -> None:
        (template,) = (each for each in documents if each["kind"] == "LibvirtMachineTemplate")
        template["spec"]["template"]["spec"]["image"] = "missing.raw"

    name = _add_workers(scenario, "image", misname)
    machine = eventually(lambda: _machine_of(scenario, name), what="a machine")

    def is_reported() -> bool:
        current = scenario.infrastructure_of(machine)
        found = condition(current, "Ready")
        if found is None or found["reason"] != "ImageNotFound":
            raise NotYet(f"{found}")
        return True

    eventually(is_reported, what="the missing image", timeout=MACHINE_SECONDS)
    note_conditions(scenario, lab, "an image that is missing")
    _remove_workers(scenario, name)


def test_nothing_is_left(scenario: Scenario, lab: Lab) -> None:
    lab.timeline.note("the Cluster is deleted")
    scenario.delete(timeout=MACHINE_SECONDS)
    lab.wait_gone()


def _names(scenario: Scenario) -> set[str]:
    return {str(each["metadata"]["name"]) for each in scenario.machines()}


def _is_refused(scenario: Scenario, before: set[str]) -> bool:
    """Return whether a new machine says why it does not come."""
    for machine in scenario.machines():
        if machine["metadata"]["name"] not in before:
            found = condition(scenario.infrastructure_of(machine), "Ready")
            if found is not None and "libvirt" in str(found.get("message")).lower():
                return True
    raise NotYet("no new machine has tried")


def _worker(scenario: Scenario) -> JSON:
    (found,) = (each for each in scenario.machines() if _WORKERS in each["metadata"]["labels"])
    return found


def _wait_all(scenario: Scenario, lab: Lab, what: str, is_so: Callable[[JSON], bool]) -> None:
    """Wait until the Ready conditions of all infrastructure machines are so, and note all."""

    def are_so() -> bool:
        found = [
            condition(scenario.infrastructure_of(each), "Ready") for each in scenario.machines()
        ]
        if not all(each is not None and is_so(each) for each in found):
            raise NotYet(f"{found}")
        return True

    eventually(are_so, what=what, timeout=MACHINE_SECONDS, interval=1.0)
    note_conditions(scenario, lab, what)


def _wait_node(scenario: Scenario, lab: Lab, machine: JSON, kind: str, status: str) -> None:
    name = machine["status"]["nodeRef"]["name"]

    def is_so() -> bool:
        nodes = list_objects(scenario, lab, "nodes")
        (node,) = (each for each in nodes if each["metadata"]["name"] == name)
        found = condition(node, kind)
        if found is None or found["status"] != status:
            raise NotYet(f"{found}")
        return True

    eventually(is_so, what=f"{name} {kind}", timeout=MACHINE_SECONDS, interval=1.0)


def _add_workers(scenario: Scenario, suffix: str, change: Callable[[list[JSON]], None]) -> str:
    """Add a MachineDeployment with changed templates, and return its name."""
    kinds = ("MachineDeployment", "KubeadmConfigTemplate", "LibvirtMachineTemplate")
    rendered = copy.deepcopy(scenario.render(1, 1, "lxc"))
    documents = [each for each in rendered if each["kind"] in kinds]
    documents = [each for each in documents if each["metadata"]["name"].endswith("-md-0")]
    change(documents)
    for each in documents:
        each["metadata"]["name"] = f"{scenario.name}-{suffix}"
    (deployment,) = (each for each in documents if each["kind"] == "MachineDeployment")
    template = deployment["spec"]["template"]["spec"]
    for reference in (template["bootstrap"]["configRef"], template["infrastructureRef"]):
        reference["name"] = f"{scenario.name}-{suffix}"
    for each in documents:
        scenario.client.apply(each)
    return f"{scenario.name}-{suffix}"


def _machine_of(scenario: Scenario, deployment: str) -> JSON:
    for each in scenario.machines():
        if each["metadata"]["labels"].get(_WORKERS) == deployment:
            return each
    raise NotYet("no machine")


def _wait_phase(scenario: Scenario, machine: JSON, phase: str) -> None:
    def is_so() -> bool:
        current = scenario.client.get(
            scenario.core, "Machine", machine["metadata"]["name"], scenario.namespace
        )
        if current["status"].get("phase") != phase:
            raise NotYet(f"{current['status'].get('phase')}")
        return True

    eventually(is_so, what=phase, timeout=MACHINE_SECONDS, interval=1.0)


def _remove_workers(scenario: Scenario, name: str) -> None:
    deployment = scenario.client.get(scenario.core, "MachineDeployment", name, scenario.namespace)
    scenario.client.delete(deployment)

    def is_gone() -> bool:
        if any(each["metadata"]["labels"].get(_WORKERS) == name for each in scenario.machines()):
            raise NotYet("the machine exists")
        return True

    eventually(is_gone, what="the machine is gone", timeout=MACHINE_SECONDS)
