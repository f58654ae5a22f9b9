"""Addresses on a real API server, with core's CRDs: hundreds of claims, a leader that dies.

With `--exhaustive` they are a thousand, some are made on the oldest core, and some of a pool that
reserves addresses in an annotation.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address

import pytest

from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.wait import eventually
from capsmith.commands.generate import generate
from tests.e2e.releases import NEWEST, OLDEST
from tests.e2e.tools.required import required_toolbox
from tests.exhaustive import exhaustive
from tests.realapi.conftest import NewServer
from tests.realapi.managers import Installation, install_core_crds

GROUP = "ipam.cluster.x-k8s.io"
POOL = f"{GROUP}/v1alpha1", "PlanIPPool"
FIRST = IPv4Address("10.64.0.1")
NAMESPACE = "default"
REQUESTS_AN_ADDRESS = 3.5
"""Finalizer, IPAddress, status, and a share of the writes of the pool."""
DESCRIPTION = """
capsmith: 1
name: plan
repository: https://github.com/example/cluster-api-provider-plan
contracts: [{contract}]
releases: {{v0.1: {contract}}}
ipam:
  PlanIPPool: {{implements: IPPool{further}}}
"""
ANNOTATED = ", contractFields: {without: [status.allocation]}"
"""What makes the manager reserve addresses in an annotation."""


@dataclass(frozen=True)
class Core:
    """A release series of core, and how many claims are made on it."""

    series: str
    contract: str
    claims: int
    further: str = ""
    """What else the kind of pools has in provider.yaml."""

    def __str__(self) -> str:
        storage = "-annotated" if self.further else ""
        return f"core-{self.series}-{self.claims}{storage}"


CORES = (
    Core(NEWEST, "v1beta2", 300),
    # tests/runtime/contract/test_ipam_shapes.py has the shapes of the older contract.
    *exhaustive(
        Core(NEWEST, "v1beta2", 1000),
        Core(NEWEST, "v1beta2", 300, ANNOTATED),
        Core(OLDEST, "v1beta1", 100),
    ),
)


@dataclass(frozen=True)
class Place:
    """An API server with core's CRDs and the provider installed."""

    client: KubeClient
    installation: Installation
    core: Core

    @property
    def version(self) -> str:
        return f"{GROUP}/{self.core.contract}"

    def add_pool(self, name: str, size: int) -> None:
        spec = {"addresses": [f"{FIRST}-{FIRST + size - 1}"], "prefix": 16}
        self.client.create(_object(*POOL, name, spec))

    def add_claims(self, pool: str, numbers: range) -> list[str]:
        names = [f"{pool}-{number}" for number in numbers]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda name: self.add_claim(pool, name), names))
        return names

    def add_claim(self, pool: str, name: str) -> None:
        reference = {"apiGroup": GROUP, "kind": POOL[1], "name": pool}
        claim = _object(self.version, "IPAddressClaim", name, {"poolRef": reference})
        self.client.create(claim)

    def claim(self, name: str) -> JSON:
        return self.client.get(self.version, "IPAddressClaim", name, NAMESPACE)

    def remove_claim(self, name: str) -> None:
        self.client.delete(self.claim(name))

    def told(self, pool: str) -> dict[str, str]:
        """Return the name of the IPAddress in the status of each claim on a pool, by claim."""
        claims = self.client.list(self.version, "IPAddressClaim", NAMESPACE)
        return {
            claim["metadata"]["name"]: claim["status"]["addressRef"]["name"]
            for claim in claims
            if claim["spec"]["poolRef"]["name"] == pool and "addressRef" in claim.get("status", {})
        }

    def given(self, pool: str) -> dict[str, str]:
        """Return the address of each IPAddress of a pool, by name."""
        found = self.client.list(self.version, "IPAddress", NAMESPACE)
        return {
            each["metadata"]["name"]: each["spec"]["address"]
            for each in found
            if each["spec"]["poolRef"]["name"] == pool
        }

    def pool(self, name: str) -> JSON:
        return self.client.get(*POOL, name, NAMESPACE)

    def used(self, pool: str) -> int:
        """Return the number of used addresses that the pool reports.

        Listing the claims would cost far more.
        """
        addresses = self.pool(pool).get("status", {}).get("addresses", {})
        return int(addresses.get("used", 0))


@pytest.fixture(scope="module", params=CORES, ids=str)
def place(
    request: pytest.FixtureRequest, new_server: NewServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    core: Core = request.param
    tools = required_toolbox("the tests with core's CRDs", ["k8s", f"capi-{core.series}"])
    folder = tmp_path_factory.mktemp(f"ipam-{core}")
    repository, pki = folder / "repository", Pki(folder / "pki")
    description = folder / "provider.yaml"
    description.write_text(DESCRIPTION.format(contract=core.contract, further=core.further))
    assert generate(description, repository).exit_code == 0
    server = new_server(f"ipam-{core}", pki)
    server.start()
    try:
        names = [f"{kind}.{GROUP}" for kind in ("ipaddressclaims", "ipaddresses")]
        install_core_crds(server.client, tools, core.series, "clusters.cluster.x-k8s.io", *names)
        yield Place(server.client, Installation(server, pki, repository, "ipam/config"), core)
    finally:
        server.stop()


def test_a_leader_crashes_in_the_middle(place: Place) -> None:
    """As many claims as addresses, two managers; the one that leads is killed.

    Proves: IP-05, IP-06, IP-07, IP-08, IP-09, IP-10, IP-14, SM-09, RB-04, MG-02.
    """
    count = place.core.claims
    with place.installation.managers(2) as (leader, other):
        place.add_pool("full", count)
        began = time.monotonic()
        with ThreadPoolExecutor(1) as meanwhile:
            # The last ones come when it is dead, so that it has not done everything in any case.
            many = meanwhile.submit(place.add_claims, "full", range(count * 3 // 4))
            eventually(lambda: place.used("full") > count // 3, timeout=300, interval=0.1)
            leader.process.kill()
            names = many.result()
        place.installation.expire_lease()
        before = len(place.told("full"))
        names += place.add_claims("full", range(count * 3 // 4, count))
        eventually(lambda: place.used("full") == count, timeout=600)
        eventually(lambda: len(place.told("full")) == count, timeout=600, interval=0.5)
        print(f"{count} claims, {before} of them before the leader died: {_since(began)}")
        assert other.leads

        given = place.given("full")
        assert place.told("full") == {name: name for name in names}
        assert given.keys() == set(names)
        assert set(given.values()) == {str(FIRST + number) for number in range(count)}

        _check_the_end(place, given)
        assert other.complaints() == []


def test_addresses_cost_few_requests(place: Place) -> None:
    """Proves: IP-14."""
    count = min(place.core.claims, 250)  # what one costs does not depend on how many there are
    with place.installation.managers(1) as (manager,):
        place.add_pool("cheap", count)
        eventually(lambda: "status" in place.pool("cheap"), timeout=120)
        sent, used = manager.requests(), manager.process.usage().cpu_seconds
        began = time.monotonic()
        names = place.add_claims("cheap", range(count))
        eventually(lambda: place.used("cheap") == count, timeout=600)
        eventually(lambda: len(place.told("cheap")) == count, timeout=600, interval=0.5)
        took, seconds = _since(began), time.monotonic() - began
        requests = {verb: n - sent.get(verb, 0) for verb, n in manager.requests().items()}
        writes = sum(number for verb, number in requests.items() if verb not in ("watch", "list"))
        cpu = 1000 * (manager.process.usage().cpu_seconds - used) / count
        print(f"{count} claims: {took}; each {writes / count:.3f} requests, {cpu:.1f} ms CPU")
        # Its own lease is no part of it: one write a second.
        assert (writes - (seconds + 2)) / count <= REQUESTS_AN_ADDRESS, requests
        assert len(set(place.given("cheap").values())) == len(names)

        began = time.monotonic()
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(place.remove_claim, names))
        eventually(lambda: place.used("cheap") == 0, timeout=600)
        eventually(lambda: not place.given("cheap"), timeout=600, interval=0.5)
        print(f"{count} addresses back: {_since(began)}")
        assert manager.complaints() == []


def _check_the_end(place: Place, given: dict[str, str]) -> None:
    """Nothing is left; the surplus claim reports it, and gets the first free address."""
    place.add_claim("full", "late")
    eventually(lambda: _ready(place.claim("late")) == ("False", "PoolExhausted"), timeout=120)
    eventually(lambda: _ready(place.pool("full")) == ("False", "PoolExhausted"), timeout=120)
    counts = {"total": len(given), "used": len(given), "free": 0}
    eventually(lambda: place.pool("full")["status"]["addresses"] == counts, timeout=120)
    place.remove_claim("full-7")
    eventually(lambda: "late" in place.told("full"), timeout=120)
    assert place.given("full")["late"] == given["full-7"]


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"


def _ready(obj: JSON) -> tuple[str, str]:
    for entry in (obj.get("status") or {}).get("conditions") or ():
        if entry["type"] == "Ready":
            return entry["status"], entry.get("reason", "")
    return "", ""


def _object(api_version: str, kind: str, name: str, spec: JSON) -> JSON:
    metadata = {"namespace": NAMESPACE, "name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
