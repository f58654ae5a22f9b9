"""A generated repository's end-to-end module, compiled, with machines that kubeadm boots.

They are system containers of libvirt; the specs are Cluster API's own, unmodified.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from capsmith.clusters.node.relay import serve
from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.tools.go import find_go
from tests.checkout import environment
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.harness.report import Report
from tests.e2e.upstream import read_results
from tests.vm.components import CURRENT, PREVIOUS
from tests.vm.hypervisor import HOST, Hypervisor
from tests.vm.image.build import Image, container_image
from tests.vm.kubeadm import FLAVOR, INIT, INIT_VARIABLE, open_lab_of, write_network
from tests.vm.lab import Lab
from tests.vm.provider import build_libvirt_provider

_UPGRADED = "upgraded"
_LIMIT = "30m"
_SAMPLE_SECONDS = 5.0
_GATES = "MachineTaintPropagation=true,RuntimeSDK=true,InPlaceUpdates=true"
_VARIABLES = {
    "KUBERNETES_VERSION": CURRENT.version,
    "KUBERNETES_VERSION_UPGRADE_FROM": PREVIOUS.version,
    "KUBERNETES_VERSION_UPGRADE_TO": CURRENT.version,
    "CONTROL_PLANE_MACHINE_TEMPLATE_UPGRADE_TO": _UPGRADED,
    "WORKERS_MACHINE_TEMPLATE_UPGRADE_TO": _UPGRADED,
    "CLUSTER_TOPOLOGY": "true",
    "SELF_HOSTED": "true",
    **INIT,
    "LIBVIRT_URI": f"lxc+tcp://{HOST}/system",
}


@dataclass(frozen=True)
class Suite:
    """The compiled specs, and the lab in which they run."""

    lab: Lab
    module: Path
    """The folder of the generated module."""
    binary: Path

    def run(self, title: str, clusterctl: Path | None = None) -> None:
        """Run one spec, which must pass and leave nothing in libvirt.

        ``clusterctl`` is the configuration with the releases that the spec installs: those of the
        lab unless given.
        """
        report = self.binary.with_name(f"{title.replace(' ', '-')}.json")
        flags = [
            "-test.timeout=0",
            "-ginkgo.no-color",
            "-ginkgo.v",
            f"-ginkgo.focus={title} (A node s|S)hould",
            f"-ginkgo.json-report={report}",
            "-e2e.machines-boot",
            f"-e2e.artifacts-folder={report.with_suffix('')}",
        ]
        variables = {
            "KUBECONFIG": str(self.lab.site.management.kubeconfig),
            "CLUSTERCTL_CONFIG": str(clusterctl or self.lab.stack.clusterctl.config),
        }
        with report.with_suffix(".log").open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                [self.binary, *flags],
                cwd=self.module,
                env=environment(**variables),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            memory = self._observe(process)
        assert report.exists(), output.name
        results = list(read_results(report))
        result = next((each for each in results if each.title == title), results[-1])
        self.lab.timeline.note(f"{result.describe()}; {memory}")
        assert result.state == "passed", f"{result.message}; see {output.name}"
        self.lab.wait_gone()

    def _observe(self, process: subprocess.Popen[bytes]) -> str:
        """Wait for the end of a process, and return how much the machines have had meanwhile."""
        most, peak = 0, 0
        while process.poll() is None:
            # A machine may go between being listed and being looked at.
            with suppress(ValueError, OSError):
                sizes = self.lab.hypervisor.memory_mib().values()
                most, peak = max(most, len(sizes)), max(peak, sum(sizes))
            with suppress(subprocess.TimeoutExpired):
                process.wait(_SAMPLE_SECONDS)
        return f"up to {most} machines with {peak} MiB together"


def build_provider_with_specs(folder: Path) -> ProviderUnderTest:
    """Make the release of the provider, and configure the specs in its repository."""
    provider = build_libvirt_provider(folder, with_helpers=False, with_specs=True)
    _configure(provider, folder)
    return provider


def download_modules() -> None:
    """Compile the specs once: the tests have no network, from which Go would get their modules."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        provider = build_libvirt_provider(folder / "made", with_helpers=False, with_specs=True)
        _compile(provider.repository / "e2e", folder)


@contextmanager
def open_suite(
    name: str,
    base: Base,
    containers: Hypervisor,
    image: Image,
    provider: ProviderUnderTest,
    report: Report,
) -> Iterator[Suite]:
    """Provide the specs of a provider, in a lab whose machines have the disks of ``image``."""
    with report.phase("vm", "compile the specs"):
        module = provider.repository / "e2e"
        binary = _compile(module, base.folder / name)
    with open_lab_of(name, base, containers, image, provider, report, _GATES) as lab:
        _publish(lab)
        yield Suite(lab, module, binary)


def _write_upgraded(folder: Path) -> Path:
    """Write a template of machines of the release that is upgraded to.

    Specs that upgrade a cluster without a class name one, which each of their namespaces gets.
    """
    machine = {"image": container_image(CURRENT), "domainType": "lxc", "init": INIT[INIT_VARIABLE]}
    template = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "LibvirtMachineTemplate",
        "metadata": {"name": _UPGRADED},
        "spec": {"template": {"spec": machine}},
    }
    file = folder / "upgraded.yaml"
    file.write_text(yaml.safe_dump(template), encoding="utf-8")
    return file


def _configure(provider: ProviderUnderTest, folder: Path) -> None:
    """Write what is the author's in the module."""
    module = provider.repository / "e2e"
    settings = yaml.safe_load((module / "settings.yaml").read_text())
    settings["objects"] = [str(_write_upgraded(folder))]
    settings["templates"] = {"default": FLAVOR, "topology": f"topology-{FLAVOR}"}
    settings["network"] = str(write_network(folder))
    settings["timeout"] = _LIMIT
    (module / "settings.yaml").write_text(yaml.safe_dump(settings))
    config = yaml.safe_load((module / "lab.yaml").read_text())
    config["variables"] |= _VARIABLES
    config["providers"] = [{"name": provider.name, "type": "InfrastructureProvider"}]
    for name, (_, interval) in config["intervals"].items():
        if "resource-versions" not in name:
            config["intervals"][name] = [_LIMIT, interval]
    (module / "lab.yaml").write_text(yaml.safe_dump(config))


def _compile(module: Path, folder: Path) -> Path:
    binary = folder / "e2e.test"
    flags = ("-c", "-vet", "off", "-tags", "e2e", "-o", str(binary))
    command = (find_go().command, "test", *flags, ".")
    done = subprocess.run(command, cwd=module, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return binary


def _publish(lab: Lab) -> None:
    """Let machines reach the API server, at the address that kubeadm's `cluster-info` has."""
    management = lab.site.management
    inner = int(management.apiserver.url.rpartition(":")[2])
    listener = socket.create_server(("0.0.0.0", 0))
    url = f"https://{HOST}:{listener.getsockname()[1]}"
    threading.Thread(target=lambda: asyncio.run(serve(listener, inner)), daemon=True).start()
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "", "cluster": {"server": url}}],
    }
    client = management.client
    namespace = "kube-public"
    client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    config: JSON = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-info", "namespace": namespace},
        "data": {"kubeconfig": yaml.safe_dump(kubeconfig)},
    }
    client.apply(config)
