"""Domains of machines, found again by UUIDs that their external ids decide.

A domain is a virtual machine or a system container, which libvirt treats alike once it is defined.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from capsmith_runtime.infrastructure import Address

import libvirt

from ._generated.api.libvirt_machine import LibvirtMachineSpec
from .cloud_init import SEED_FOLDER
from .connections import ignored_errors
from .xml import element, text_of

_NAMESPACE: Final = uuid.UUID("5c1c9e0e-5d9b-4f0b-9a52-5b8a1b0c2f77")
CONTAINER: Final = "lxc"
_CONTAINER_OS: Final = "exe"
_UNDEFINE: Final = (
    libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
)
_STATES: Final = {
    libvirt.VIR_DOMAIN_RUNNING: "running",
    libvirt.VIR_DOMAIN_PAUSED: "paused",
    libvirt.VIR_DOMAIN_SHUTDOWN: "shutting down",
    libvirt.VIR_DOMAIN_SHUTOFF: "shut off",
    libvirt.VIR_DOMAIN_CRASHED: "crashed",
}


@dataclass(frozen=True, slots=True)
class Parts:
    """What a domain is made of besides processors and memory.

    ``disk`` is the path of a disk, or of a container's root file system; ``seed`` that of
    cloud-init's disk, or of its folder; a container uses no ``console``.
    """

    uuid: str
    name: str
    title: str
    network: str
    disk: str
    seed: str
    console: str


def uuid_of(external_id: str) -> str:
    """Return the UUID of a machine's domain, which is the same at each call."""
    return str(uuid.uuid5(_NAMESPACE, external_id))


def provider_id(host: str, domain: str) -> str:
    """Return the id of a domain on a host."""
    return f"libvirt:///{host}/{domain}"


def find_domain(host: libvirt.virConnect, id: str) -> libvirt.virDomain | None:
    """Return the domain of a UUID, if there is one."""
    with ignored_errors(libvirt.VIR_ERR_NO_DOMAIN):
        return host.lookupByUUIDString(id)
    return None


def start_domain(domain: libvirt.virDomain) -> None:
    """Start a domain, now and with its host, unless it runs."""
    domain.setAutostart(1)
    if not domain.isActive():
        domain.create()


def delete_domain(domain: libvirt.virDomain) -> None:
    """Stop a domain at once, and delete it."""
    # It may end by itself between two calls.
    with ignored_errors(libvirt.VIR_ERR_OPERATION_INVALID):
        if domain.isActive():
            domain.destroy()
    # A container has neither snapshots nor a saved state, and its driver refuses to hear of them.
    domain.undefineFlags(0 if domain.OSType() == _CONTAINER_OS else _UNDEFINE)


def state_of(domain: libvirt.virDomain) -> str:
    """Return the state of a domain in the words of virsh."""
    return _STATES.get(domain.state()[0], "unknown")


def addresses_of(domain: libvirt.virDomain, *, has_leases: bool) -> list[Address]:
    """Return what a running domain has of a network's leases.

    On a network without leases, return the addresses that the host has seen the domain use.  These
    may be none: a host without an address on a bridge sees none, and libvirt 9.0 cannot read them
    from recent kernels.
    """
    lease, arp = (
        libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE,
        libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_ARP,
    )
    ignored = () if has_leases else (libvirt.VIR_ERR_INTERNAL_ERROR,)
    found = {}
    with ignored_errors(*ignored):
        found = domain.interfaceAddresses(lease if has_leases else arp)
    texts = {
        str(each["addr"])
        for interface in found.values()
        if isinstance(addresses := interface["addrs"], Sequence)
        for each in addresses
    }
    return [Address("InternalIP", text) for text in sorted(texts)]


def domain_xml(spec: LibvirtMachineSpec, parts: Parts) -> str:
    """Return a virtual machine or a container, as the type in ``spec`` says."""
    is_container = spec.domain_type == CONTAINER
    return text_of(_container(spec, parts) if is_container else _virtual_machine(spec, parts))


def _container(spec: LibvirtMachineSpec, parts: Parts) -> Element:
    """Return a container with a root file system, cloud-init's folder and an interface."""
    kind = element("type", text=_CONTAINER_OS)
    return element(
        "domain",
        *_identity(spec, parts),
        element("os", kind, element("init", text=spec.init)),
        # containerd and the kubelet inside mount file systems and create devices.
        element("features", element("capabilities", policy="allow")),
        element("on_poweroff", text="destroy"),
        element("on_reboot", text="restart"),
        element(
            "devices",
            element(
                "filesystem",
                element("driver", type="loop", format="raw"),
                element("source", file=parts.disk),
                element("target", dir="/"),
                type="file",
            ),
            element(
                "filesystem",
                element("source", dir=parts.seed),
                element("target", dir=SEED_FOLDER),
                element("readonly"),
                type="mount",
            ),
            element("interface", element("source", network=parts.network), type="network"),
            element("console", type="pty"),
        ),
        type=CONTAINER,
    )


def _virtual_machine(spec: LibvirtMachineSpec, parts: Parts) -> Element:
    """Return a machine with a disk, cloud-init's disk, an interface and a console."""
    return element(
        "domain",
        *_identity(spec, parts),
        _boot(spec),
        element("features", element("acpi"), element("apic")),
        # The emulator's default lacks x86-64-v2, without which some distributions do not start.
        element("cpu", mode="host-passthrough" if spec.domain_type == "kvm" else "maximum"),
        element("clock", offset="utc"),
        element("on_poweroff", text="destroy"),
        element("on_reboot", text="restart"),
        element("on_crash", text="restart"),
        element(
            "devices",
            _disk(parts.disk, "qcow2", "vda"),
            _disk(parts.seed, "raw", "vdb", element("readonly")),
            element(
                "interface",
                element("source", network=parts.network),
                element("model", type="virtio"),
                type="network",
            ),
            element(
                "serial",
                element("source", path=parts.console, append="on"),
                element("target", port="0"),
                type="file",
            ),
            element("rng", element("backend", text="/dev/urandom", model="random"), model="virtio"),
        ),
        type=spec.domain_type,
    )


def _identity(spec: LibvirtMachineSpec, parts: Parts) -> list[Element]:
    return [
        element("uuid", text=parts.uuid),
        element("name", text=parts.name),
        element("title", text=parts.title),
        element("memory", text=str(spec.memory_mib), unit="MiB"),
        element("vcpu", text=str(spec.cpus)),
    ]


def _boot(spec: LibvirtMachineSpec) -> Element:
    kind = element("type", text="hvm", machine="q35")
    boot = spec.direct_boot
    if boot is None:
        return element("os", kind, element("boot", dev="hd"))
    initrd = [element("initrd", text=boot.initrd)] if boot.initrd else []
    kernel, command_line = element("kernel", text=boot.kernel), boot.command_line
    return element("os", kind, kernel, *initrd, element("cmdline", text=command_line))


def _disk(path: str, format: str, device: str, *more: Element) -> Element:
    return element(
        "disk",
        element("driver", name="qemu", type=format),
        element("source", file=path),
        element("target", dev=device, bus="virtio"),
        *more,
        type="file",
        device="disk",
    )
