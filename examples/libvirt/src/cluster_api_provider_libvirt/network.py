"""The network of a cluster, found again by its name."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

import libvirt

from .connections import ignored_errors
from .xml import element, text_of

_RESERVED = 10
"""Addresses that no machine gets: network, host, API server, and some for load balancers."""


@dataclass(frozen=True, slots=True)
class AddressPlan:
    """Who has which address of a network."""

    network: IPv4Network

    @property
    def gateway(self) -> IPv4Address:
        """Return the address of the host."""
        return self.network[1]

    @property
    def endpoint(self) -> IPv4Address:
        """Return the address of the API server, which one of its machines takes."""
        return self.network[2]

    @property
    def machines(self) -> tuple[IPv4Address, IPv4Address]:
        """Return the first and the last address of machines."""
        return self.network[_RESERVED], self.network[-2]


def find_network(host: libvirt.virConnect, name: str) -> libvirt.virNetwork | None:
    """Return the network of a name, if there is one."""
    with ignored_errors(libvirt.VIR_ERR_NO_NETWORK):
        return host.networkLookupByName(name)
    return None


def ensure_network(host: libvirt.virConnect, name: str, plan: AddressPlan) -> None:
    """Create and start a network with NAT, unless it exists and is active."""
    network = find_network(host, name) or host.networkDefineXML(_network_xml(name, plan))
    network.setAutostart(1)
    if not network.isActive():
        network.create()


def delete_network(host: libvirt.virConnect, name: str) -> None:
    """Delete a network with its leases, if it exists."""
    network = find_network(host, name)
    if network is None:
        return
    if network.isActive():
        network.destroy()
    network.undefine()


def _network_xml(name: str, plan: AddressPlan) -> str:
    first, last = plan.machines
    addresses = element("dhcp", element("range", start=str(first), end=str(last)))
    gateway, mask = str(plan.gateway), str(plan.network.netmask)
    root = element(
        "network",
        element("name", text=name),
        element("forward", mode="nat"),
        # By default a machine's first packets are lost: only machines are connected, so no loops.
        element("bridge", stp="off"),
        element("ip", addresses, address=gateway, netmask=mask),
    )
    return text_of(root)
