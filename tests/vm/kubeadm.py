"""Clusters that kubeadm boots: a lab with system containers or virtual machines, and a cluster."""

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
from tests.e2e.whole import control_plane
from tests.vm.components import FLANNEL_IMAGE
from tests.vm.hypervisor import CONTAINERS, Hypervisor, Machines
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
    name: str, base: Base, hypervisor: Hypervisor, image: Image, report: Report
) -> Iterator[Lab]:
    """Provide a lab with the providers for kubeadm and that for libvirt."""
    variables = INIT if hypervisor.uri == CONTAINERS else {"LIBVIRT_URI": hypervisor.uri}
    with report.phase("vm", "build the provider"):
        folder = base.folder / name
        provider = build_libvirt_provider(folder, with_helpers=False, variables=variables)
    with open_lab_of(name, base, hypervisor, image, provider, report) as made:
        yield made


@contextmanager
def open_lab_of(
    name: str,
    base: Base,
    hypervisor: Hypervisor,
    image: Image,
    provider: ProviderUnderTest,
    report: Report,
    gates: str = "",
) -> Iterator[Lab]:
    """Provide a lab with the providers for kubeadm and a release of that for libvirt."""
    hypervisor.add_images(image.folder)
    cloud = Machines(base.folder / name / "cloud", hypervisor)
    combination = Combination(NEWEST, "v1beta2", "libvirt", name, gates=gates)
    stack = KubeadmProviders(base, None, combination, provider, report, None, cloud)
    driver = "lxc" if hypervisor.uri == CONTAINERS else None
    with open_lab(stack, hypervisor, image, driver, FOLDER) as made:
        yield made


def create_cluster(scenario: Scenario, lab: Lab, *, control_planes: int) -> None:
    """Create a cluster with a worker, and wait until all its Machines are Running."""
    apply_cluster(scenario, lab, control_planes=control_planes)
    finish_cluster(scenario, lab, control_planes + 1)


def apply_cluster(scenario: Scenario, lab: Lab, *, control_planes: int) -> None:
    """Apply the objects of a cluster with a worker."""
    apply_documents(scenario, lab, scenario.render(control_planes, 1, FLAVOR))


def apply_documents(scenario: Scenario, lab: Lab, documents: list[JSON]) -> None:
    """Apply the objects of a cluster, the Cluster itself last."""
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

    def has_kubeconfig() -> bool:
        name = f"{scenario.name}-kubeconfig"
        if scenario.client.find("v1", "Secret", name, scenario.namespace) is None:
            raise NotYet("the control plane has no kubeconfig")
        return True

    eventually(has_kubeconfig, what="a kubeconfig", timeout=MACHINE_SECONDS, interval=1.0)
    lab.apply(scenario, manifest)
    lab.timeline.note("flannel is applied")


def wait_deleted(scenario: Scenario, lab: Lab, lost: str) -> None:
    """Wait until a Machine is gone."""

    def is_gone() -> bool:
        if lost in {each["metadata"]["name"] for each in scenario.machines()}:
            raise NotYet(f"{lost} exists")
        return True

    eventually(is_gone, what=f"{lost} is gone", timeout=MACHINE_SECONDS, interval=1.0)
    lab.timeline.note(f"{lost}: the Machine is gone")


def wait_available(scenario: Scenario, lab: Lab, count: int) -> None:
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


def note_conditions(scenario: Scenario, lab: Lab, what: str) -> None:
    """Note what each object says."""
    lab.timeline.note(what)
    cluster = scenario.cluster()
    objects = [cluster]
    for machine in scenario.machines():
        objects += [machine, scenario.infrastructure_of(machine)]
    for each in objects:
        for kind in ("Available", "Ready", "InfrastructureReady", "NodeHealthy"):
            found = condition(each, kind)
            if found is not None and found["status"] != "True":
                text = " ".join(str(found.get("message") or "").split())
                title = f"{each['kind']} {each['metadata']['name']}"
                lab.timeline.note(f"  {what}: {title}: {kind} {found['reason']}: {text}")
