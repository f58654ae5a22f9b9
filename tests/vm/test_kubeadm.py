"""Clusters that kubeadm boots: machines are system containers, providers for kubeadm upstream's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.harness.report import Report
from tests.e2e.scenario import Scenario, build_health_check, condition, one_scenario
from tests.e2e.whole import CONTROL_PLANE, control_plane, members
from tests.vm.components import PROBE_IMAGE
from tests.vm.hypervisor import Hypervisor
from tests.vm.image.build import Image
from tests.vm.kubeadm import create_cluster, is_ready, list_objects, open_kubeadm_lab, wait_pods
from tests.vm.lab import MACHINE_SECONDS, Lab

_UNHEALTHY = {"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 60}
"""A new machine waits for its address, and must not count as unhealthy meanwhile."""

pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


@pytest.fixture(scope="module")
def lab(base: Base, containers: Hypervisor, image: Image, report: Report) -> Iterator[Lab]:
    with open_kubeadm_lab("vm-kubeadm", base, containers, image, report) as made:
        yield made


@pytest.fixture
def scenario(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Scenario]:
    with one_scenario(lab.stack, lab.site, request.node.originalname) as made:
        yield made


def test_two_machines(scenario: Scenario, lab: Lab) -> None:
    report, timeline = lab.stack.report, lab.timeline
    with report.phase("vm", "kubeadm: control plane and worker"):
        create_cluster(scenario, lab, control_planes=1)
        wait_pods(scenario, lab)
    lab.note_memory()
    with report.phase("vm", "kubeadm: Pods of two machines"):
        _check_pods(scenario, lab)
    with report.phase("vm", "kubeadm: delete"):
        timeline.note("the Cluster is deleted")
        scenario.delete(timeout=MACHINE_SECONDS)
        lab.wait_gone()


def test_a_lost_control_plane_machine_is_replaced(scenario: Scenario, lab: Lab) -> None:
    """One of three is destroyed: etcd loses its member, and a new machine takes its place."""
    report, timeline = lab.stack.report, lab.timeline
    with report.phase("vm", "kubeadm: three control plane machines"):
        create_cluster(scenario, lab, control_planes=3)
        _wait_available(scenario, lab, 3)
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
        _wait_deleted(scenario, lab, lost)
        lab.wait_running(scenario, 4)
        _wait_available(scenario, lab, 3)
    assert before.keys() - _names(scenario) == {lost}
    with report.phase("vm", "kubeadm: delete three control plane machines"):
        timeline.note("the Cluster of three control plane machines is deleted")
        scenario.delete(timeout=MACHINE_SECONDS)
        lab.wait_gone()


def _names(scenario: Scenario) -> set[str]:
    """Return the names of the control plane's Machines."""
    return {str(each["metadata"]["name"]) for each in members(scenario)}


def _wait_deleted(scenario: Scenario, lab: Lab, lost: str) -> None:
    """Wait until a Machine is gone."""

    def is_gone() -> bool:
        if lost in _names(scenario):
            raise NotYet(f"{lost} exists")
        return True

    eventually(is_gone, what=f"{lost} is gone", timeout=MACHINE_SECONDS, interval=1.0)
    lab.timeline.note(f"{lost}: the Machine is gone")


def _wait_available(scenario: Scenario, lab: Lab, count: int) -> None:
    """Wait until so many members of etcd are ready, and the control plane says that it is well."""

    def is_available() -> bool:
        members = list_objects(scenario, lab, "pods", "--namespace=kube-system", "-lcomponent=etcd")
        ready = [each["metadata"]["name"] for each in members if is_ready(each)]
        if len(ready) != count or len(members) != count:
            raise NotYet(f"members of etcd: {[each['metadata']['name'] for each in members]}")
        obj = control_plane(scenario)
        for kind in ("Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy"):
            found = condition(obj, kind)
            if found is None or found["status"] != "True":
                raise NotYet(f"{kind}: {found}")
        return True

    eventually(is_available, what="the control plane", timeout=MACHINE_SECONDS, interval=1.0)
    lab.timeline.note(f"{count} members of etcd are healthy, the control plane is available")


def _check_pods(scenario: Scenario, lab: Lab) -> None:
    """A Pod reaches one on another machine by the name of its Service, without translation."""
    for node in list_objects(scenario, lab, "nodes"):
        name = node["metadata"]["name"]
        lab.kubectl(scenario, "apply", "--filename", str(_write_probe(lab, name)))
    pods = eventually(lambda: _ready_probes(scenario, lab), what="probes", timeout=MACHINE_SECONDS)
    assert len({each["spec"]["nodeName"] for each in pods}) == len(pods) > 1
    for client in pods:
        for server in pods:
            name = server["metadata"]["name"]
            url = f"http://{name}.default.svc.cluster.local:8080/"
            asked = ("exec", client["metadata"]["name"], "--", "/probe", "get", url)
            answer = eventually(partial(lab.kubectl, scenario, *asked), what=url)
            assert answer.startswith(f"{name} "), answer
            if client is not server:
                assert answer.split()[1].startswith(f"{client['status']['podIP']}:"), answer
                lab.timeline.note(f"{client['metadata']['name']} got from {url}: {answer}")


def _write_probe(lab: Lab, node: str) -> Path:
    labels = {"app": f"probe-{node}"}
    container = {"name": "probe", "image": PROBE_IMAGE, "command": ["/probe"]}
    ready = {"httpGet": {"path": "/", "port": 8080}}
    spec = {
        "nodeName": node,
        "containers": [{**container, "readinessProbe": ready}],
        "tolerations": [{"operator": "Exists"}],
    }
    metadata = {"name": labels["app"], "labels": labels}
    items = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": labels["app"]},
            "spec": {"selector": labels, "ports": [{"port": 8080}]},
        },
    ]
    file = lab.stack.folder / f"{node}.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return file


def _ready_probes(scenario: Scenario, lab: Lab) -> list[JSON]:
    pods = list_objects(scenario, lab, "pods", "--namespace=default")
    if not all(is_ready(each) for each in pods):
        raise NotYet(f"{[each['status'] for each in pods]}")
    return pods
