"""Several hosts of system containers: daemons of libvirt that share a kernel and a bridge."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Final

from capsmith.clusters.processes.process import Process
from capsmith.clusters.processes.wait import eventually
from tests.vm.hypervisor import (
    CONTAINERS,
    Hypervisor,
    add_address,
    find_first_process,
    list_groups,
    run,
    write_folders,
)

NETWORK: Final = "shared"
"""Each host has this network, the same bridge."""
ENDPOINT: Final = "10.132.0.2"
"""The address of the API server on it."""
_ADDRESSES: Final = IPv4Network("10.132.0.0/24")
_BRIDGE: Final = "hosts0"
_FIRST: Final = IPv4Address("10.131.0.11")
"""The address of the first host's daemon."""
_XML: Final = (
    f"<network><name>{NETWORK}</name><forward mode='bridge'/><bridge name='{_BRIDGE}'/></network>"
)


class Host:
    """A daemon of libvirt with folders of its own."""

    def __init__(self, name: str, address: str, folder: Path) -> None:
        self.name, self.address, self.folder = name, address, folder
        self.uri = f"lxc+tcp://{address}/system"
        self._process: Process | None = None

    @property
    def disks(self) -> Path:
        """Return the folder that is /var/lib/libvirt on this host."""
        return self.folder / "1"

    @property
    def _run(self) -> Path:
        """Return the folder that is /run/libvirt on this host."""
        return self.folder / "0"

    def start(self) -> None:
        """Create the folders, and start the daemon with the shared network."""
        listening = [f'listen_addr = "{self.address}"', "listen_tls = 0", "listen_tcp = 1"]
        settings = "\n".join([*listening, 'auth_tcp = "none"', ""])
        mounts = []
        for source, place in write_folders(self.folder, settings).items():
            place.mkdir(parents=True, exist_ok=True)
            mounts.append(f"mount --bind {shlex.quote(str(source))} {place}")
        daemon = f"exec /usr/sbin/libvirtd --listen --pid-file {self.folder / 'libvirtd.pid'}"
        script = " && ".join([*mounts, daemon])
        add_address(self.address, 32, "lo")
        command = ["unshare", "--mount", "sh", "-c", script]
        self._process = Process(f"libvirtd-{self.name}", command, self.folder / "libvirtd.log")
        self.power_on()
        network = self.folder / "network.xml"
        network.write_text(_XML)
        self.virsh("net-define", network)
        self.virsh("net-start", NETWORK)
        self.virsh("net-autostart", NETWORK)

    def stop(self) -> None:
        """Stop the daemon, and whatever still runs."""
        for domain in self.list("list"):
            self.virsh("destroy", domain)
        self.process.stop()

    def power_on(self) -> None:
        """Start the daemon, which starts the machines that it had."""
        self.process.start()
        self.process.wait_ready(self._answers)

    def power_off(self) -> None:
        """End the daemon and the machines at once, and forget what was in /run."""
        domains = self.list("list")
        self.process.stop()
        for each in domains:
            os.kill(find_first_process(each), signal.SIGKILL)
        eventually(lambda: not any(map(list_groups, domains)), what="no machine runs")
        shutil.rmtree(self._run)
        self._run.mkdir()

    @property
    def process(self) -> Process:
        assert self._process is not None
        return self._process

    def list(self, *command: str) -> list[str]:
        """Return names that virsh prints."""
        return self.virsh(*command, "--name").split()

    def virsh(self, *command: str | Path) -> str:
        """Run a command of virsh, which must succeed."""
        return run("virsh", "--connect", self.uri, *command)

    def _answers(self) -> bool:
        self.virsh("uri")
        return True


class Hosts(Hypervisor):
    """All hosts as one hypervisor: a machine may be on any of them."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        super().__init__(folder, CONTAINERS)
        self.all = [
            Host(name, str(_FIRST + index), folder / name) for index, name in enumerate(names)
        ]
        leases, pid = folder / "leases", folder / "dnsmasq.pid"
        dhcp = [f"--dhcp-range={_ADDRESSES[10]},{_ADDRESSES[-2]},12h", f"--dhcp-leasefile={leases}"]
        bound = [f"--interface={_BRIDGE}", "--except-interface=lo", "--bind-interfaces", "--port=0"]
        own = ["--conf-file=/dev/null", "--keep-in-foreground", f"--pid-file={pid}", "--user=root"]
        self._dhcp = Process("dnsmasq", ["dnsmasq", *own, *bound, *dhcp], folder / "dnsmasq.log")

    def start(self) -> None:
        """Create the bridge, and start all hosts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._prepare_computer()
        run("ip", "link", "add", _BRIDGE, "type", "bridge")
        run("ip", "link", "set", _BRIDGE, "up")
        add_address(str(_ADDRESSES[1]), _ADDRESSES.prefixlen, _BRIDGE)
        self._dhcp.start()
        for each in self.all:
            each.start()

    def stop(self) -> None:
        """Stop all hosts, and remove the bridge."""
        for each in self.all:
            each.stop()
        self._dhcp.stop()
        run("ip", "link", "delete", _BRIDGE)
        self._restore_computer()

    def virsh(self, *command: str | Path) -> str:
        """Run a command about a domain, its second word, on the host that has it."""
        (host,) = (each for each in self.all if command[1] in each.list("list", "--all"))
        return host.virsh(*command)

    def networks(self) -> list[str]:
        """Return the networks except the one that connects the hosts."""
        return [each for each in self._names("net-list", "--all") if each != NETWORK]

    def pools(self) -> list[str]:
        """Return the names of pools, whichever hosts have them."""
        return sorted(set(self._names("pool-list", "--all")))

    def leases(self) -> list[str]:
        """Return an empty list, because libvirt gives no leases here."""
        return []

    def add_images(self, folder: Path) -> None:
        """Offer the images of a folder on each host."""
        for each in self.all:
            each.virsh("pool-define-as", "default", "dir", "--target", folder)
            each.virsh("pool-start", "default")
            each.virsh("pool-autostart", "default")

    def _names(self, *command: str) -> list[str]:
        return sorted(name for each in self.all for name in each.list(*command))
