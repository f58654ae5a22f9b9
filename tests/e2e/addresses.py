"""Pools of addresses, and clusters whose machines claim some."""

from __future__ import annotations

from ipaddress import ip_network

from capsmith.clusters.processes.kube import JSON
from tests.e2e.scenario import Scenario

GROUP = "ipam.cluster.x-k8s.io"
POOLS = f"{GROUP}/v1alpha1"
FOUR, SIX = "SkiffIPPool", "GlobalSkiffIPPool"
NETWORKS = {FOUR: "10.20.0.0/24", SIX: "2001:db8:20::/64"}


def add_pools(scenario: Scenario) -> None:
    """Create a pool of each kind and family."""
    for kind, name in ((FOUR, "four"), (SIX, "six")):
        metadata = {"name": name}
        if kind == FOUR:
            metadata["namespace"] = scenario.namespace
        prefix = ip_network(NETWORKS[kind]).prefixlen
        spec = {"addresses": [NETWORKS[kind]], "prefix": prefix}
        scenario.client.apply(
            {"apiVersion": POOLS, "kind": kind, "metadata": metadata, "spec": spec}
        )


def pools(scenario: Scenario) -> list[JSON]:
    """Return the existing pools."""
    inside = scenario.client.list(POOLS, FOUR, scenario.namespace)
    return [*inside, *scenario.client.list(POOLS, SIX)]


def with_addresses(scenario: Scenario, control_planes: int, workers: int) -> list[JSON]:
    """Return a rendered cluster whose machines claim an address from each pool."""
    documents = scenario.render(control_planes, workers)
    references = [
        {"apiGroup": GROUP, "kind": kind, "name": name}
        for kind, name in ((FOUR, "four"), (SIX, "six"))
    ]
    for document in documents:
        if document["kind"] == "SkiffMachineTemplate":
            document["spec"]["template"]["spec"]["addressesFromPools"] = references
    return documents
