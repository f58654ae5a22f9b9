"""libvirt's daemon with folders of its own, in the namespaces that `python -m tests.vm` makes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from capsmith.clusters.lab.simulated.kubelet import Server
from capsmith.clusters.processes.process import Process
from capsmith.clusters.processes.wait import eventually
from tests.e2e.harness.cloud import CloudCluster, Event, SimulatedCloud

MACHINES, CONTAINERS = "qemu:///system", "lxc:///system"
"""Virtual machines, and system containers."""
_CGROUPS = Path("/sys/fs/cgroup")
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
_INSTANCES = 8192
"""Each container's systemd, kubelet and containerd have some, and the usual 128 are for all."""
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
_LISTENING = """
listen_tls = 0
listen_tcp = 1
auth_tcp = "none"
"""
"""Pods in the machines connect to the daemon, inside the namespaces of the tests."""
HOST: Final = "10.131.0.1"
"""This computer, for machines in whatever network and their Pods."""


class Hypervisor:
    """One daemon, and what exists in it in the words of virsh."""

    def __init__(self, folder: Path, uri: str = MACHINES) -> None:
        self.folder = folder
        self.uri = uri
        self._mounted: list[str] = []
        self._instances = _INOTIFY.read_text()
        argv = ["/usr/sbin/libvirtd", "--listen", "--pid-file", str(folder / "libvirtd.pid")]
        self.process = Process("libvirtd", argv, folder / "libvirtd.log")

    def start(self) -> None:
        """Start the daemon, without networks, pools or domains."""
        self._prepare_computer()
        for source, place in write_folders(self.folder, _LISTENING).items():
            place.mkdir(parents=True, exist_ok=True)
            self._mount(source, str(place), "--bind")
        add_address(HOST, 32, "lo")
        self.process.start()
        self.process.wait_ready(self._answers)

    def _prepare_computer(self) -> None:
        # What /sys says of interfaces is true only for the namespace that mounted it.
        self._mount("sysfs", "/sys", "-t", "sysfs")
        if self.has_containers:
            self._mount_cgroups()
            _INOTIFY.write_text(str(max(_INSTANCES, int(self._instances))))

    def stop(self) -> None:
        """Stop the daemon, and whatever still runs."""
        for domain in self._names("list"):
            self.virsh("destroy", domain)
        self.process.stop()
        self._restore_computer()

    def _restore_computer(self) -> None:
        if self.has_containers:
            _INOTIFY.write_text(self._instances)
            self._remove_cgroups()
        for place in reversed(self._mounted):
            run("umount", "--lazy", place)

    @property
    def has_containers(self) -> bool:
        """Return whether machines are system containers."""
        return self.uri.startswith("lxc")

    def restart(self) -> None:
        """Start the daemon again after its process has ended; machines kept running."""
        self.process.start()
        self.process.wait_ready(self._answers)

    def virsh(self, *command: str | Path) -> str:
        """Run a command of virsh, which must succeed."""
        return run("virsh", "--connect", self.uri, *command)

    def domains(self) -> list[str]:
        return self._names("list", "--all")

    def networks(self) -> list[str]:
        return self._names("net-list", "--all")

    def pools(self) -> list[str]:
        return self._names("pool-list", "--all")

    def volumes(self) -> list[str]:
        """Return the volumes of all pools except that of images."""
        pools = [name for name in self.pools() if name != "default"]
        rows = [row for name in pools for row in self.virsh("vol-list", name).splitlines()[2:]]
        return sorted(row.split()[0] for row in rows if row.strip())

    def leases(self) -> list[str]:
        """Return the files of dnsmasq, which has one for each network."""
        folder = Path("/var/lib/libvirt/dnsmasq")
        return sorted(path.name for path in folder.glob("*.status"))

    def add_images(self, folder: Path) -> None:
        """Offer the images of a folder."""
        self.virsh("pool-define-as", "default", "dir", "--target", folder)
        self.virsh("pool-start", "default")

    def inside(self, domain: str, *command: str) -> str:
        """Return what a command prints in a container; it must succeed."""
        return run("nsenter", f"--target={find_first_process(domain)}", "--all", *command)

    def memory_mib(self) -> dict[str, int]:
        """Return the resident memory in MiB of QEMU, or of all processes inside, by domain."""
        resident = _resident_inside_mib if self.has_containers else _resident_mib
        return {name: resident(name) for name in self.domains()}

    def _mount(self, source: str | Path, place: str, *options: str) -> None:
        run("mount", *options, source, place)
        self._mounted.append(place)

    def _mount_cgroups(self) -> None:
        """Mount the hierarchies of version 1 that the computer has, as they are in its own /sys."""
        rows = [line.split() for line in Path("/proc/cgroups").read_text().splitlines()[1:]]
        found: dict[str, list[str]] = {}
        for controller, hierarchy, *_ in rows:
            found.setdefault(hierarchy, []).append(controller)
        # Controllers of version 2, and those that are not used, have this one.
        found.pop("0", None)
        self._mount("tmpfs", str(_CGROUPS), "-t", "tmpfs")
        for options in ("none,name=systemd", *(",".join(each) for each in found.values())):
            place = _CGROUPS / options.rpartition("=")[2]
            place.mkdir()
            self._mount("cgroup", str(place), "-t", "cgroup", "-o", options)

    def _remove_cgroups(self) -> None:
        """Remove what containers made where libvirt removes nothing."""
        for machine in _CGROUPS.glob("*/machine"):
            folders = [each for each in machine.rglob("*") if each.is_dir()]
            for each in [*sorted(folders, reverse=True), machine]:
                each.rmdir()

    def _answers(self) -> bool:
        command = ["virsh", "--connect", self.uri, "uri"]
        return subprocess.run(command, capture_output=True).returncode == 0

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


def list_loop_devices() -> list[str]:
    """Return the files behind loop devices, which containers' file systems have while they run."""
    return sorted(
        path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")
    )


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


def write_folders(folder: Path, listening: str) -> dict[Path, Path]:
    """Write a daemon's settings; return its own folders, each with the place to mount it."""
    folders = {folder / str(index): Path(name) for index, name in enumerate(_FOLDERS)}
    for own in folders:
        own.mkdir(parents=True)
    settings = folder / "etc"
    settings.mkdir()
    (settings / "qemu.conf").write_text(_SETTINGS)
    (settings / "libvirtd.conf").write_text(listening)
    return {**folders, settings: Path("/etc/libvirt")}


def add_address(address: str, prefix: int, device: str) -> None:
    """Give this computer an address, unless it has it."""
    if address not in run("ip", "-brief", "address", "show", "dev", device):
        run("ip", "address", "add", f"{address}/{prefix}", "dev", device)


def find_first_process(domain: str) -> int:
    """Return the process id of a container's first process."""
    supervisor = _supervisor_of(_group_of(domain))
    (init,) = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return int(init)


def list_groups(domain: str) -> list[Path]:
    """Return the folder of a running container in the memory hierarchy; empty if it has ended."""
    found = (_CGROUPS / "memory/machine").glob(f"lxc-*-{domain}.libvirt-lxc")
    # A container that was killed leaves its folder.
    return [each for each in found if Path("/proc", _supervisor_of(each)).exists()]


def _group_of(domain: str) -> Path:
    (group,) = list_groups(domain)
    return group


def _supervisor_of(group: Path) -> str:
    """Return the process id in the name of a container's folder."""
    return group.name.split("-")[1]


def _resident_inside_mib(domain: str) -> int:
    lines = (_group_of(domain) / "memory.stat").read_text().splitlines()
    (resident,) = (line.split()[1] for line in lines if line.startswith("total_rss "))
    return int(resident) // 1024**2


def run(*command: str | Path) -> str:
    """Return what a program prints; it must succeed."""
    program = shutil.which(str(command[0]))
    assert program is not None, f"{command[0]} is missing"
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
