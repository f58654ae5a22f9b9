"""Clusters that kubeadm boots: a lab with system containers, and a cluster in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.harness.report import Report
from tests.e2e.kubeadm import KubeadmProviders
from tests.e2e.releases import NEWEST
from tests.e2e.scenario import Scenario, condition
from tests.e2e.stack import Combination
from tests.vm.components import FLANNEL_IMAGE
from tests.vm.hypervisor import Hypervisor, Machines
from tests.vm.image.build import Image
from tests.vm.lab import MACHINE_SECONDS, Lab, open_lab
from tests.vm.provider import build_libvirt_provider

FLAVOR = "lxc"
FOLDER = Path("/var/lib/libvirt/cluster-api")
"""The default; it is in the namespace of the tests."""
INIT_VARIABLE = "LIBVIRT_MACHINE_INIT"
INIT = {INIT_VARIABLE: "/usr/local/sbin/container-init"}
_FLANNEL = Path(__file__).with_name("flannel.yaml")


@contextmanager
def open_kubeadm_lab(
    name: str, base: Base, containers: Hypervisor, image: Image, report: Report
) -> Iterator[Lab]:
    """Provide a lab with the providers for kubeadm and that for libvirt."""
    with report.phase("vm", "build the provider"):
        provider = build_libvirt_provider(base.folder / name, with_helpers=False, variables=INIT)
    with open_lab_of(name, base, containers, image, provider, report) as made:
        yield made


@contextmanager
def open_lab_of(
    name: str,
    base: Base,
    containers: Hypervisor,
    image: Image,
    provider: ProviderUnderTest,
    report: Report,
    gates: str = "",
) -> Iterator[Lab]:
    """Provide a lab with the providers for kubeadm and a release of that for libvirt."""
    containers.add_images(image.folder)
    cloud = Machines(base.folder / name / "cloud", containers)
    combination = Combination(NEWEST, "v1beta2", "libvirt", name, gates=gates)
    stack = KubeadmProviders(base, None, combination, provider, report, None, cloud)
    with open_lab(stack, containers, image, "lxc", FOLDER) as made:
        yield made


def create_cluster(scenario: Scenario, lab: Lab, *, control_planes: int) -> None:
    """Create a cluster with a worker, and wait until all its Machines are Running."""
    apply_cluster(scenario, lab, control_planes=control_planes)
    finish_cluster(scenario, lab, control_planes + 1)


def apply_cluster(scenario: Scenario, lab: Lab, *, control_planes: int) -> None:
    """Apply the objects of a cluster with a worker."""
    documents = scenario.render(control_planes, 1, FLAVOR)
    lab.timeline.note(f"{scenario.name}: the Cluster is applied")
    for each in sorted(documents, key=lambda each: str(each["kind"]) == "Cluster"):
        scenario.client.apply(each)


def finish_cluster(scenario: Scenario, lab: Lab, machines: int) -> None:
    """Install the network of Pods, and wait until so many Machines are Running."""
    _add_network(scenario, lab)
    lab.wait_running(scenario, machines)


def list_objects(scenario: Scenario, lab: Lab, *what: str) -> list[JSON]:
    """Return objects of the workload cluster, as kubectl selects them."""
    items: list[JSON] = json.loads(lab.kubectl(scenario, "get", *what, "-o=json"))["items"]
    return items


def is_ready(pod: JSON) -> bool:
    """Return whether a Pod is ready."""
    found = condition(pod, "Ready")
    return found is not None and found["status"] == "True"


def wait_pods(scenario: Scenario, lab: Lab) -> None:
    """Wait until all Pods run, CoreDNS and flannel among them."""

    def are_ready() -> bool:
        pods = list_objects(scenario, lab, "pods", "--namespace=kube-system")
        late = [each["metadata"]["name"] for each in pods if not is_ready(each)]
        if late:
            raise NotYet(f"not ready: {late}")
        apps = {str(each["metadata"]["labels"].get("k8s-app")) for each in pods}
        return "kube-dns" in apps

    eventually(are_ready, what="all Pods", timeout=MACHINE_SECONDS, interval=1.0)
    lab.timeline.note("CoreDNS and all other Pods are ready")


def write_network(folder: Path) -> Path:
    """Write the manifest of the network of Pods."""
    manifest = folder / "flannel.yaml"
    manifest.write_text(_FLANNEL.read_text().replace("FLANNEL_IMAGE", FLANNEL_IMAGE))
    return manifest


def _add_network(scenario: Scenario, lab: Lab) -> None:
    """Install the network of Pods as soon as there is an API server, as a user does."""
    manifest = write_network(lab.stack.folder)

    def is_applied() -> bool:
        name = f"{scenario.name}-kubeconfig"
        if scenario.client.find("v1", "Secret", name, scenario.namespace) is None:
            raise NotYet("the control plane has no kubeconfig")
        return bool(lab.kubectl(scenario, "apply", "--filename", str(manifest)))

    eventually(is_applied, what="flannel", timeout=MACHINE_SECONDS, interval=1.0)
    lab.timeline.note("flannel is applied")
