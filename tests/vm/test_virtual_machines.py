"""A cluster whose machines are virtual ones: they boot, join, and leave nothing behind."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON, ApiError
from capsmith.clusters.processes.tools.build import find_kubectl
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.harness.report import Report
from tests.e2e.releases import NEWEST
from tests.e2e.scenario import Scenario, condition, one_scenario
from tests.e2e.stack import Combination, Site, Stack
from tests.vm.acceleration import choose_domain_type
from tests.vm.hypervisor import Hypervisor, Machines, wait_gone
from tests.vm.image.build import IMAGE, Image
from tests.vm.provider import build_libvirt_provider

COMBINATION = Combination(NEWEST, "v1beta2", "libvirt", "vm")
MACHINE_SECONDS = 1800.0
"""Without KVM, and beside other work, the first control plane takes many minutes."""
_COMMAND_LINE = "root=/dev/vda console=ttyS0 mitigations=off quiet"
_SENTINEL = "node: the sentinel exists"


@dataclass
class Timeline:
    """What happened when, printed as it happens."""

    file: Path
    began: float = field(default_factory=time.monotonic)
    seen: set[str] = field(default_factory=set)

    def note(self, text: str) -> None:
        """Print a line once."""
        if text not in self.seen:
            self.seen.add(text)
            line = f"{time.monotonic() - self.began:7.1f} s  {text}"
            print(line, flush=True)
            with self.file.open("a") as log:
                log.write(line + "\n")


@dataclass(frozen=True)
class Lab:
    """The stack, and libvirt behind it."""

    stack: Stack
    site: Site
    hypervisor: Hypervisor
    image: Image
    timeline: Timeline


@pytest.fixture(scope="module")
def lab(base: Base, hypervisor: Hypervisor, image: Image, report: Report) -> Iterator[Lab]:
    folder = base.folder / str(COMBINATION)
    with report.phase("vm", "build the provider"):
        provider = build_libvirt_provider(folder)
    hypervisor.add_images(image.folder)
    cloud = Machines(folder / "cloud", hypervisor)
    with ExitStack() as ends:
        stack = Stack(base, None, COMBINATION, provider, report, None, cloud)
        ends.callback(stack.stop)
        timeline = Timeline(base.folder / "timeline.log")
        yield Lab(stack, stack.start(), hypervisor, image, timeline)


@pytest.fixture
def scenario(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Scenario]:
    with one_scenario(lab.stack, lab.site, request.node.originalname) as made:
        yield made


def test_boots(scenario: Scenario, lab: Lab, base: Base) -> None:
    documents = [_on_this_host(each, lab, base.folder) for each in scenario.render(1, 0)]
    report, timeline = lab.stack.report, lab.timeline
    with report.phase("vm", "control plane, its manager killed when the domain exists"):
        timeline.note(f"the Cluster is applied, for machines that run by {choose_domain_type()}")
        scenario.create(documents)
        eventually(lab.hypervisor.domains, what="a domain", timeout=MACHINE_SECONDS)
        timeline.note("the domain exists; the manager of the infrastructure is killed")
        lab.site.controllers.kill()
        lab.site.controllers.start()
        _wait_running(scenario, lab, 1)
    with report.phase("vm", "a worker"):
        scenario.scale_workers(1)
        _wait_running(scenario, lab, 2)
    timeline.note(f"QEMU has MiB of memory: {sorted(lab.hypervisor.memory_mib().values())}")
    for name in lab.hypervisor.domains():
        assert _SENTINEL in lab.hypervisor.console(name)
    with report.phase("vm", "delete, the manager killed meanwhile"):
        timeline.note("the Cluster is deleted")
        scenario.client.delete(scenario.cluster())
        eventually(lambda: len(lab.hypervisor.domains()) < 2, what="a domain less", timeout=600.0)
        timeline.note("a domain is gone; the manager of the infrastructure is killed")
        lab.site.controllers.kill()
        lab.site.controllers.start()
        scenario.delete(timeout=MACHINE_SECONDS)
        wait_gone(lab.hypervisor)
        assert list((base.folder / "machines").iterdir()) == []
        timeline.note("no domain, volume, pool, network or lease is left")


def _on_this_host(document: JSON, lab: Lab, folder: Path) -> JSON:
    """What the user of this computer says in the cluster's template."""
    if document["kind"] == "LibvirtCluster":
        document["spec"]["folder"] = str(folder / "machines")
    if document["kind"] == "LibvirtMachineTemplate":
        is_control_plane = document["metadata"]["name"].endswith("control-plane")
        document["spec"]["template"]["spec"] = {
            "image": IMAGE,
            "cpus": 2,
            "memoryMiB": 1536 if is_control_plane else 768,
            "diskGiB": 4,
            "domainType": choose_domain_type(),
            "directBoot": {
                "kernel": str(lab.image.kernel),
                "initrd": str(lab.image.initrd),
                "commandLine": _COMMAND_LINE,
            },
        }
    return document


def _wait_running(scenario: Scenario, lab: Lab, count: int) -> None:
    """Until so many Machines are Running, whose Nodes are the kubelets of the machines."""

    def running() -> bool:
        _observe(scenario, lab)
        machines = scenario.machines()
        phases = {
            each["metadata"]["name"]: each.get("status", {}).get("phase") for each in machines
        }
        if list(phases.values()) != ["Running"] * count:
            raise NotYet(f"{phases}")
        nodes = {each["metadata"]["name"]: each for each in _nodes(scenario, lab)}
        for machine in machines:
            node = nodes[machine["status"]["nodeRef"]["name"]]
            assert node["spec"]["providerID"] == machine["spec"]["providerID"]
            ready = condition(node, "Ready")
            assert ready is not None
            assert ready["status"] == "True", ready
        return True

    eventually(running, what=f"{count} machines", timeout=MACHINE_SECONDS, interval=2.0)
    lab.timeline.note(f"{count} Machines are Running, their Nodes are Ready")


def _observe(scenario: Scenario, lab: Lab) -> None:
    """Note what is new of the machines: in Kubernetes, and on their consoles."""
    for machine in scenario.machines():
        name, status = machine["metadata"]["name"], machine.get("status", {})
        lab.timeline.note(f"{name}: Machine {status.get('phase')}")
        if "nodeRef" in status:
            lab.timeline.note(f"{name}: Node {status['nodeRef']['name']}")
        with suppress(ApiError, KeyError):
            found = scenario.infrastructure_of(machine)
            ready, state = condition(found, "Ready"), found["status"].get("domainState")
            lab.timeline.note(f"{name}: domain {state}, {ready and ready['reason']}")
            for each in found["status"].get("addresses", []):
                lab.timeline.note(f"{name}: {each['type']} {each['address']}")
            for line in lab.hypervisor.console(found["status"]["domain"]).splitlines():
                if line.startswith("node: ") or " node: " in line:
                    lab.timeline.note(f"{name}: console: {line.strip()}")


def _nodes(scenario: Scenario, lab: Lab) -> list[JSON]:
    """The Nodes that the cluster's own API server has."""
    secret = scenario.client.get("v1", "Secret", f"{scenario.name}-kubeconfig", scenario.namespace)
    file = lab.stack.folder / f"{scenario.name}.kubeconfig"
    file.write_bytes(base64.b64decode(secret["data"]["value"]))
    command = [find_kubectl(), "--kubeconfig", str(file), "--request-timeout=60s", "get", "nodes"]
    done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise NotYet(done.stderr)
    items: list[JSON] = json.loads(done.stdout)["items"]
    return items
