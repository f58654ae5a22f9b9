"""libvirt's daemon with folders of its own, in the namespaces that `python -m tests.vm` makes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from capsmith.clusters.lab.simulated.kubelet import Server
from capsmith.clusters.processes.process import Process
from capsmith.clusters.processes.wait import eventually
from tests.e2e.harness.cloud import CloudCluster, Event, SimulatedCloud

URI = "qemu:///system"
_FOLDERS = ("/run/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt")
_SETTINGS = """
user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = []
namespaces = []
dynamic_ownership = 0
remember_owner = 0
stdio_handler = "file"
"""
"""Without systemd there are no cgroups for machines and no daemon for logs."""


class Hypervisor:
    """One daemon, and what exists in it in the words of virsh."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        argv = ["/usr/sbin/libvirtd", "--pid-file", str(folder / "libvirtd.pid")]
        self.process = Process("libvirtd", argv, folder / "libvirtd.log")

    def start(self) -> None:
        """Start the daemon, without networks, pools or domains."""
        # What /sys says of interfaces is true only for the namespace that mounted it.
        _run("mount", "-t", "sysfs", "sysfs", "/sys")
        for index, name in enumerate(_FOLDERS):
            own = self.folder / str(index)
            own.mkdir(parents=True)
            Path(name).mkdir(parents=True, exist_ok=True)
            _run("mount", "--bind", own, name)
        settings = self.folder / "etc"
        settings.mkdir()
        _run("mount", "--bind", settings, "/etc/libvirt")
        (settings / "qemu.conf").write_text(_SETTINGS)
        self.process.start()
        self.process.wait_ready(_answers)

    def stop(self) -> None:
        """Stop the daemon, and whatever still runs."""
        for domain in self.domains():
            self.virsh("destroy", domain)
        self.process.stop()

    def virsh(self, *command: str | Path) -> str:
        """Run a command of virsh, which must succeed."""
        return _run("virsh", "--connect", URI, *command)

    def domains(self) -> list[str]:
        return self._names("list", "--all")

    def networks(self) -> list[str]:
        return self._names("net-list", "--all")

    def pools(self) -> list[str]:
        return self._names("pool-list", "--all")

    def leases(self) -> list[str]:
        """Return the files of dnsmasq, which has one for each network."""
        folder = Path("/var/lib/libvirt/dnsmasq")
        return sorted(path.name for path in folder.glob("*.status"))

    def add_images(self, folder: Path) -> None:
        """Offer the images of a folder."""
        self.virsh("pool-define-as", "default", "dir", "--target", folder)
        self.virsh("pool-start", "default")

    def console(self, domain: str) -> str:
        """Return what a machine has written to its serial console."""
        found = sorted(self.folder.parent.glob(f"*/machines/*/{domain}-console.log"))
        return found[0].read_text(errors="replace") if found else ""

    def memory_mib(self) -> dict[str, int]:
        """Return QEMU's resident memory in MiB by domain."""
        return {name: _resident_mib(name) for name in self.domains()}

    def _names(self, *command: str) -> list[str]:
        return sorted(self.virsh(*command, "--name").split())


class Machines(SimulatedCloud):
    """Domains as servers, for what the end-to-end tests share."""

    def __init__(self, folder: Path, hypervisor: Hypervisor) -> None:
        super().__init__(folder)
        self._hypervisor = hypervisor

    def servers(self, cluster: str | None = None) -> list[Server]:
        """Return all domains; there is only one cluster."""
        found = self._hypervisor.domains()
        titles = {name: self._hypervisor.virsh("desc", name, "--title").strip() for name in found}
        return [Server(name, titles[name].partition("/")[2], "", "", None) for name in found]

    def clusters(self) -> list[CloudCluster]:
        """Return networks, and all pools except the images' one."""
        names = [*self._hypervisor.networks(), *self._hypervisor.pools()]
        return [CloudCluster(name, name) for name in names if name != "default"]

    def journal(self) -> list[Event]:
        """Return an empty list, because libvirt keeps no journal."""
        return []


def wait_gone(hypervisor: Hypervisor) -> None:
    """Wait until no domain, network or lease is left, and no pool except that of the images."""

    def gone() -> bool:
        assert hypervisor.domains() == []
        assert hypervisor.networks() == []
        assert hypervisor.pools() == ["default"]
        assert hypervisor.leases() == []
        return True

    eventually(gone, what="nothing left in libvirt", interval=1.0)


def _resident_mib(domain: str) -> int:
    process = Path(f"/run/libvirt/qemu/{domain}.pid").read_text().strip()
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (resident,) = (line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(resident) // 1024


def _answers() -> bool:
    return subprocess.run(["virsh", "--connect", URI, "uri"], capture_output=True).returncode == 0


def _run(*command: str | Path) -> str:
    program = shutil.which(str(command[0]))
    assert program is not None, f"{command[0]} is missing"
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
