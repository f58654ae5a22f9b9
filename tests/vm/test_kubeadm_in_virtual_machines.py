"""Virtual machines that kubeadm boots, with the kernel of their own; they need no KVM."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from tests.e2e.harness.report import Report
from tests.e2e.scenario import Scenario
from tests.vm.hypervisor import Hypervisor
from tests.vm.image.build import Image
from tests.vm.kubeadm import FLAVOR, apply_documents, finish_cluster, open_kubeadm_lab, wait_pods
from tests.vm.lab import MACHINE_SECONDS, Lab
from tests.vm.pods import check_pods

_CONTROL_PLANE_MIB, _WORKER_MIB = 2048, 1024
_WAITS = (
    "controlPlaneComponentHealthCheckSeconds",
    "discoverySeconds",
    "etcdAPICallSeconds",
    "kubeletHealthCheckSeconds",
    "kubernetesAPICallSeconds",
    "tlsBootstrapSeconds",
)
"""What kubeadm waits for, 1 to 5 minutes by default: an emulated machine takes longer."""
_PATCHES = "/etc/kubernetes/patches"
_STATIC_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_PROBES = ("livenessProbe", "startupProbe")
"""By these, the kubelet ends an API server that has not answered for 80 s while it starts."""
_KEEPALIVED = {
    "--max-time 2 ": "--max-time 30 ",
    "interval 2": "interval 10",
    "timeout 3": "timeout 35",
    "fall 3": "fall 30",
}
"""The check of the API server, which answers it after some seconds."""
_ARGUMENTS = {
    "etcd": {"unsafe-no-fsync": "true"},
    "apiServer": {"etcd-healthcheck-timeout": "30s", "etcd-readycheck-timeout": "30s"},
    "controllerManager": {"leader-elect": "false"},
    "scheduler": {"leader-elect": "false"},
}
"""By default, the API server is not ready if etcd takes 2 s, and controllers that cannot renew
their lease within 10 s end."""
_JOIN_AGAIN = (
    "until [ -e /etc/kubernetes/kubelet.conf ]; do"
    " kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml --ignore-preflight-errors=all"
    " && echo success > /run/cluster-api/bootstrap-success.complete; done"
)
"""`kubeadm join` gives up if the API server does not answer one of its questions within 10 s."""
_UPTIME = "echo node: {}, $(cut -d. -f1 /proc/uptime) s after the start of the kernel"

pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


@pytest.fixture(scope="module")
def lab(base: Base, hypervisor: Hypervisor, image: Image, report: Report) -> Iterator[Lab]:
    with open_kubeadm_lab("vm-kubeadm-virtual", base, hypervisor, image, report) as made:
        yield made


def test_two_virtual_machines(scenario: Scenario, lab: Lab) -> None:
    report, timeline = lab.stack.report, lab.timeline
    with report.phase("vm", "kubeadm: virtual control plane and worker"):
        documents = [_adapt(lab, each) for each in scenario.render(1, 1, FLAVOR)]
        apply_documents(scenario, lab, documents)
        finish_cluster(scenario, lab, 2)
        wait_pods(scenario, lab)
    lab.note_memory()
    with report.phase("vm", "kubeadm: Pods of two virtual machines"):
        check_pods(scenario, lab)
    with report.phase("vm", "kubeadm: delete virtual machines"):
        timeline.note("the Cluster is deleted")
        scenario.delete(timeout=MACHINE_SECONDS)
        lab.wait_gone()


def _adapt(lab: Lab, document: JSON) -> JSON:
    """Return an object of the flavor for containers with what emulated machines need instead."""
    lab.place(document, _CONTROL_PLANE_MIB, _WORKER_MIB)
    if document["kind"] == "KubeadmControlPlane":
        config = document["spec"]["kubeadmConfigSpec"]
        _give_time(config)
        config["initConfiguration"]["patches"] = {"directory": _PATCHES}
        for short, long in _KEEPALIVED.items():
            assert short in config["files"][0]["content"]
            config["files"][0]["content"] = config["files"][0]["content"].replace(short, long)
        config["clusterConfiguration"] = _components()
        config["files"] += [_without_probes(each) for each in _STATIC_PODS]
    if document["kind"] == "KubeadmConfigTemplate":
        config = document["spec"]["template"]["spec"]
        _give_time(config)
        config["postKubeadmCommands"].insert(0, _JOIN_AGAIN)
    if document["kind"] == "LibvirtMachineTemplate":
        is_worker = document["metadata"]["name"].endswith("md-0")
        document["spec"]["template"]["spec"]["cpus"] = 1 if is_worker else 2
    return document


def _components() -> JSON:
    """Return the configuration of the control plane, which waits longer and writes less."""
    found: JSON = {}
    for component, arguments in _ARGUMENTS.items():
        listed = [{"name": name, "value": value} for name, value in arguments.items()]
        found[component] = {"extraArgs": listed}
    return {**found, "etcd": {"local": found["etcd"]}}


def _without_probes(pod: str) -> JSON:
    """Return a file by which kubeadm leaves the probes out of a static Pod."""
    container = {"name": pod, **dict.fromkeys(_PROBES)}
    patch = {"spec": {"containers": [container]}}
    return {"path": f"{_PATCHES}/{pod}.json", "content": json.dumps(patch)}


def _give_time(config: JSON) -> None:
    """Let kubeadm wait, pull nothing, and note on the console when it begins and has ended."""
    for name in ("initConfiguration", "joinConfiguration"):
        if name in config:
            config[name]["timeouts"] = dict.fromkeys(_WAITS, int(MACHINE_SECONDS))
            config[name]["nodeRegistration"]["imagePullPolicy"] = "Never"
    begin, end = _UPTIME.format("kubeadm begins"), _UPTIME.format("kubeadm has ended")
    config["preKubeadmCommands"] = [*config["preKubeadmCommands"], begin]
    config["postKubeadmCommands"] = [end]
