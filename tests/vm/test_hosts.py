"""Hosts as failure domains: machines that kubeadm boots on three of them, one of which is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.harness.report import Report
from tests.e2e.scenario import Scenario, build_health_check, condition, one_scenario
from tests.e2e.whole import CONTROL_PLANE, members, workers
from tests.vm.hosts import ENDPOINT, NETWORK, Host, Hosts
from tests.vm.hypervisor import wait_gone
from tests.vm.image.build import Image
from tests.vm.kubeadm import (
    FLAVOR,
    apply_documents,
    finish_cluster,
    note_conditions,
    open_kubeadm_lab,
    wait_available,
    wait_deleted,
)
from tests.vm.lab import MACHINE_SECONDS, Lab

_NAMES = ("first", "second", "third")
_UNHEALTHY = {"type": "Ready", "status": "Unknown", "timeoutSeconds": 30}

pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


@pytest.fixture(scope="module")
def hosts(base: Base) -> Iterator[Hosts]:
    made = Hosts(base.folder / "hosts", _NAMES)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def lab(base: Base, hosts: Hosts, image: Image, report: Report) -> Iterator[Lab]:
    with open_kubeadm_lab("vm-hosts", base, hosts, image, report) as made:
        yield made


@pytest.fixture(scope="module")
def scenario(lab: Lab) -> Iterator[Scenario]:
    """A cluster of three control plane machines and a worker."""
    with one_scenario(lab.stack, lab.site, "test_hosts") as made:
        yield made


def test_control_plane_machines_are_on_different_hosts(
    scenario: Scenario, lab: Lab, hosts: Hosts
) -> None:
    documents = scenario.render(3, 1, FLAVOR)
    for each in documents:
        _use_hosts(each, hosts)
    apply_documents(scenario, lab, documents)
    finish_cluster(scenario, lab, 4)
    wait_available(scenario, lab, 3)
    assert sorted(_host_of(scenario, hosts, each).name for each in members(scenario)) == [*_NAMES]


def test_a_host_loses_its_power(scenario: Scenario, lab: Lab, hosts: Hosts) -> None:
    """Its machine is given up and replaced once the host answers; the other hosts go on."""
    (worker,) = workers(scenario)
    near = _host_of(scenario, hosts, worker)
    lost = next(each for each in members(scenario) if _host_of(scenario, hosts, each) is not near)
    host, name = _host_of(scenario, hosts, lost), str(lost["metadata"]["name"])
    checks = {"checks": {"unhealthyNodeConditions": [_UNHEALTHY]}}
    scenario.client.apply(build_health_check(scenario, {CONTROL_PLANE: ""}, checks))
    host.power_off()
    lab.timeline.note(f"the host of {name} has lost its power")
    _wait_deletion(scenario, lost)
    note_conditions(scenario, lab, "a host is lost")
    scenario.scale_workers(0)
    wait_deleted(scenario, lab, str(worker["metadata"]["name"]))
    assert name in {each["metadata"]["name"] for each in scenario.machines()}
    host.power_on()
    lab.timeline.note("the host has its power again")
    wait_deleted(scenario, lab, name)
    lab.wait_running(scenario, 3)
    wait_available(scenario, lab, 3)
    assert sorted(_host_of(scenario, hosts, each).name for each in members(scenario)) == [*_NAMES]


def test_nothing_is_left(scenario: Scenario, lab: Lab, hosts: Hosts) -> None:
    lab.timeline.note("the Cluster is deleted")
    scenario.delete(timeout=MACHINE_SECONDS)
    wait_gone(hosts)
    assert [list((each.disks / "cluster-api").iterdir()) for each in hosts.all] == [[], [], []]
    lab.timeline.note("no domain, pool or volume is left on any host")


def _use_hosts(document: JSON, hosts: Hosts) -> None:
    """Let an object of the flavor use the hosts and their network."""
    if document["kind"] == "LibvirtCluster":
        document["spec"] |= {
            "hosts": [{"name": each.name, "uri": each.uri} for each in hosts.all],
            "network": NETWORK,
            "controlPlaneEndpoint": {"host": ENDPOINT, "port": 6443},
        }


def _host_of(scenario: Scenario, hosts: Hosts, machine: JSON) -> Host:
    """Return the host that has a machine's domain: the failure domain of both objects."""
    found = scenario.infrastructure_of(machine)
    (host,) = (each for each in hosts.all if found["status"]["domain"] in each.list("list"))
    assert found["status"]["failureDomain"] == found["status"]["host"] == host.name
    if CONTROL_PLANE in machine["metadata"]["labels"]:
        assert machine["spec"]["failureDomain"] == host.name
    return host


def _wait_deletion(scenario: Scenario, machine: JSON) -> None:
    """Wait until the provider reports that it cannot delete a machine now."""

    def is_reported() -> bool:
        current = scenario.infrastructure_of(machine)
        found = condition(current, "Ready")
        if "deletionTimestamp" not in current["metadata"] or found is None:
            raise NotYet(f"{current['metadata']}: {found}")
        if found["reason"] != "LibvirtError":
            raise NotYet(f"{found}")
        return True

    eventually(is_reported, what="a deletion that waits", timeout=MACHINE_SECONDS, interval=1.0)
