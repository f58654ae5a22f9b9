"""What the tests share: a stack with libvirt behind it, and what they note while machines boot."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from capsmith.clusters.processes.kube import JSON, ApiError
from capsmith.clusters.processes.tools.build import find_kubectl
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.scenario import Scenario, condition
from tests.e2e.stack import Site, Stack
from tests.vm.acceleration import choose_domain_type
from tests.vm.hypervisor import Hypervisor, wait_gone
from tests.vm.image.build import DISK_GIB, IMAGE, Image

MACHINE_SECONDS = 1800.0
"""Without KVM, and beside other work, the first control plane takes many minutes."""
SENTINEL = "node: the sentinel exists"
_COMMAND_LINE = "root=/dev/vda console=ttyS0 mitigations=off net.ifnames=0 quiet"


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
    folder: Path
    """Where the clusters' disks are."""

    def place(self, document: JSON, control_plane_mib: int, worker_mib: int) -> JSON:
        """Return the document with what the user of this computer says in the template."""
        if document["kind"] == "LibvirtCluster":
            document["spec"]["folder"] = str(self.folder)
        if document["kind"] == "LibvirtMachineTemplate":
            is_control_plane = document["metadata"]["name"].endswith("control-plane")
            document["spec"]["template"]["spec"] = {
                "image": IMAGE,
                "cpus": 2,
                "memoryMiB": control_plane_mib if is_control_plane else worker_mib,
                "diskGiB": DISK_GIB,
                "domainType": choose_domain_type(),
                "directBoot": {
                    "kernel": str(self.image.kernel),
                    "initrd": str(self.image.initrd),
                    "commandLine": _COMMAND_LINE,
                },
            }
        return document

    def wait_running(self, scenario: Scenario, count: int) -> None:
        """Wait until so many Machines are Running, whose Nodes are the machines' kubelets."""

        def is_running() -> bool:
            self._observe(scenario)
            machines = scenario.machines()
            phases = {
                each["metadata"]["name"]: each.get("status", {}).get("phase") for each in machines
            }
            if list(phases.values()) != ["Running"] * count:
                raise NotYet(f"{phases}")
            nodes = {each["metadata"]["name"]: each for each in self._list_nodes(scenario)}
            for machine in machines:
                node = nodes[machine["status"]["nodeRef"]["name"]]
                assert node["spec"]["providerID"] == machine["spec"]["providerID"]
                ready = condition(node, "Ready")
                if ready is None or ready["status"] != "True":
                    raise NotYet(f"{node['metadata']['name']}: {ready}")
            return True

        eventually(is_running, what=f"{count} machines", timeout=MACHINE_SECONDS, interval=2.0)
        self.timeline.note(f"{count} Machines are Running, their Nodes are Ready")

    def console(self, domain: str) -> str:
        """Return what a machine has written to its serial console."""
        found = sorted(self.folder.glob(f"*/{domain}-console.log"))
        return found[0].read_text(errors="replace") if found else ""

    def note_memory(self) -> None:
        """Note the resident memory of each machine."""
        sizes = sorted(self.hypervisor.memory_mib().values())
        self.timeline.note(f"machines have MiB of memory: {sizes}")

    def wait_gone(self) -> None:
        """Wait until libvirt has nothing of a cluster; its folder is empty."""
        wait_gone(self.hypervisor)
        assert list(self.folder.iterdir()) == []
        self.timeline.note("no domain, volume, pool, network or lease is left")

    def apply(self, scenario: Scenario, manifest: Path) -> None:
        """Apply a manifest to the workload cluster, as soon as its API server answers."""
        # To validate, kubectl would download the schemas of all kinds.
        command = ("apply", "--validate=false", "--filename", str(manifest))
        eventually(
            lambda: self.kubectl(scenario, *command),
            what=f"applied {manifest.name}",
            timeout=MACHINE_SECONDS,
            interval=1.0,
        )

    def kubectl(self, scenario: Scenario, *command: str) -> str:
        """Return what kubectl prints of the workload cluster; raise NotYet if it fails."""
        secret = scenario.client.get(
            "v1", "Secret", f"{scenario.name}-kubeconfig", scenario.namespace
        )
        file = self.stack.folder / f"{scenario.name}.kubeconfig"
        file.write_bytes(base64.b64decode(secret["data"]["value"]))
        options = ["--kubeconfig", str(file), "--request-timeout=60s"]
        argv = [find_kubectl(), *options, *command]
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode != 0:
            raise NotYet(f"kubectl {' '.join(command)}: {done.stderr}")
        return done.stdout

    def _list_nodes(self, scenario: Scenario) -> list[JSON]:
        items: list[JSON] = json.loads(self.kubectl(scenario, "get", "nodes", "-o=json"))["items"]
        return items

    def _observe(self, scenario: Scenario) -> None:
        """Note what is new of the machines: in Kubernetes, and on their consoles.

        Raises ProcessError if the provider's manager has ended: no machine would come.
        """
        self.site.controllers.process.check()
        for machine in scenario.machines():
            name, status = machine["metadata"]["name"], machine.get("status", {})
            self.timeline.note(f"{name}: Machine {status.get('phase')}")
            if "nodeRef" in status:
                self.timeline.note(f"{name}: Node {status['nodeRef']['name']}")
            with suppress(ApiError, KeyError):
                found = scenario.infrastructure_of(machine)
                ready, state = condition(found, "Ready"), found["status"].get("domainState")
                self.timeline.note(f"{name}: domain {state}, {ready and ready['reason']}")
                for each in found["status"].get("addresses", []):
                    self.timeline.note(f"{name}: {each['type']} {each['address']}")
                self._observe_console(name, found["status"]["domain"])

    def _observe_console(self, machine: str, domain: str) -> None:
        for line in self.console(domain).splitlines():
            if line.startswith("node: ") or " node: " in line:
                self.timeline.note(f"{machine}: console: {line.strip()}")


@contextmanager
def open_lab(
    stack: Stack,
    hypervisor: Hypervisor,
    image: Image,
    driver: str | None = None,
    folder: Path | None = None,
) -> Iterator[Lab]:
    """Start a stack, and end it.

    ``driver`` says what runs the machines, in the timeline: the type of virtual machines unless
    given.  ``folder`` has their disks: one of the stack's own unless given.
    """
    with ExitStack() as ends:
        ends.callback(stack.stop)
        timeline = Timeline(stack.folder / "timeline.log")
        timeline.note(f"machines run by {driver or choose_domain_type()}")
        yield Lab(
            stack, stack.start(), hypervisor, image, timeline, folder or stack.folder / "machines"
        )
